// `advance` on a GPU as XLA calls it: shapes are checked, memory is laid out, and the kernels are launched on XLA's
// stream or beside it.
#include <atomic>
#include <limits>
#include <mutex>
#include <string>

#include "calls.h"
#include "gpu/launch.h"

namespace headcount {
namespace {

// Fills in `run` but for how it is spread over the GPU, or says what is wrong with the call.
ffi::Error describe(Advance& run, const AdvanceAttributes& given, const AdvanceArrays& arrays) {
  Checks checks;
  checks.require(quads_of(given.dim), "tokens of more than 16 numbers are not done on a GPU, got " +
                                          std::to_string(given.dim) + ".");
  const AdvanceCall call(checks, given, arrays);
  const double places = 1.0 * given.length * (given.hidden + given.heads * (given.head_dim + 1.0) + given.dim);
  checks.require(places < std::numeric_limits<int32_t>::max(), "length, hidden, heads and head_dim are too large.");
  if (checks.failed()) return checks.error();
  run.sizes = given.sizes();
  run.objective = Objective(int32_t(given.objective));
  run.masks = int32_t(given.masks);
  run.members = int32_t(call.members), run.room = int32_t(call.room), run.batch = int32_t(call.batch);
  run.target_width = int32_t(arrays.targets.dimensions().back());
  run.beta = given.beta, run.clip = given.clip;
  run.second_moment_decay = given.second_moment_decay, run.second_moment_rest = rest_of(given.second_moment_decay);
  run.weight_decay = given.weight_decay;
  run.tokens = arrays.tokens.typed_data(), run.targets = arrays.targets.typed_data();
  run.chosen = arrays.chosen.typed_data(), run.rates = arrays.rates.typed_data();
  run.step = arrays.step.typed_data(), run.heads = arrays.heads.typed_data(), run.count = arrays.count.typed_data();
  run.weights = arrays.new_weights.typed_data(), run.mean = arrays.new_mean.typed_data();
  run.square = arrays.new_square.typed_data(), run.error = arrays.error.typed_data();
  return ffi::Error::Success();
}

// What all calls that run at the same time have to do; see `work_of`. 0: a call has the GPU to itself.
std::atomic<int64_t> work_together{0};

// What a step of a call has to do, in tokens, where the readout and the update of a sequence count for some.
int64_t work_of(int64_t members, int64_t batch, int64_t length) { return members * batch * (length + 24); }

// XLA usually gives results the memory of the arguments they take the place of.
void copy_unless_shared(OnStream& on, const Advance& run, Floats weights, Floats mean, Floats square) {
  on.copy(run.weights, weights.typed_data(), weights.size_bytes());
  on.copy(run.mean, mean.typed_data(), mean.size_bytes());
  on.copy(run.square, square.typed_data(), square.size_bytes());
}

ffi::Error advance(void* stream, ffi::ScratchAllocator allocator, Floats weights, Floats mean, Floats square,
                   Integers step, Integers heads, Integers count, Floats rates, Integers chosen, Floats tokens,
                   Floats targets, FloatResult new_weights, FloatResult new_mean, FloatResult new_square,
                   FloatResult error, AdvanceAttributes given) {
  Advance run{};
  if (auto failure = describe(run, given,
                              {weights, mean, square, step, heads, count, rates, chosen, tokens, targets, *new_weights,
                               *new_mean, *new_square, *error});
      failure.failure())
    return failure;
  OnStream on(stream);
  if (!on.ok()) return on.error();
  copy_unless_shared(on, run, weights, mean, square);
  if (!run.members) return on.ok() ? ffi::Error::Success() : on.error();
  on.clear(run.error, run.members);
  Launch launch{};
  if (auto failure = plan(run, on, launch, 1.0); failure.failure()) return failure;
  auto memory = allocator.Allocate(4 * launch.floats());
  if (!memory) return no_memory(4 * launch.words);
  start(run, on, launch, static_cast<float*>(*memory));
  return on.ok() ? ffi::Error::Success() : on.error();
}

// The same beside XLA's stream: the results are there once `join` has been called. All arrays, the scratch memory among
// the results, are the caller's and must live until then. Errors are added to those given.
ffi::Error advance_aside(void* stream, Floats weights, Floats mean, Floats square, Floats totals, Integers step,
                         Integers heads, Integers count, Floats rates, Integers chosen, Floats tokens, Floats targets,
                         FloatResult new_weights, FloatResult new_mean, FloatResult new_square, FloatResult new_totals,
                         FloatResult scratch, AdvanceAttributes given) {
  Advance run{};
  if (auto failure = describe(run, given,
                              {weights, mean, square, step, heads, count, rates, chosen, tokens, targets, *new_weights,
                               *new_mean, *new_square, *new_totals});
      failure.failure())
    return failure;
  Checks checks;
  checks.shape("totals", totals, {run.members});
  if (checks.failed()) return checks.error();
  OnStream on(stream);
  if (!on.ok()) return on.error();
  copy_unless_shared(on, run, weights, mean, square);
  on.copy(run.error, totals.typed_data(), totals.size_bytes());
  if (!run.members) return on.ok() ? ffi::Error::Success() : on.error();
  const int64_t own = work_of(run.members, run.batch, run.sizes.length), all = work_together;
  Launch launch{};
  if (auto failure = plan(run, on, launch, all > own ? double(own) / all : 1.0); failure.failure()) return failure;
  if (launch.floats() > scratch->element_count()) return invalid("the scratch memory is too small.");
  Asides& asides = Asides::of(on.context());
  const std::lock_guard<std::mutex> guard(asides.calls);
  on.onto(asides.fork(on, stream));
  start(run, on, launch, scratch->typed_data());
  asides.mark(on);
  return on.ok() ? ffi::Error::Success() : on.error();
}

// XLA's stream goes on when everything beside it is done.
ffi::Error join(void* stream, Integers token, ffi::Result<Integers> same) {
  Checks checks;
  checks.shape("the result of join", *same, shape_of(token));
  if (checks.failed()) return checks.error();
  OnStream on(stream);
  if (!on.ok()) return on.error();
  on.copy(same->typed_data(), token.typed_data(), token.size_bytes());
  Asides::of(on.context()).join(on, stream);
  return on.ok() ? ffi::Error::Success() : on.error();
}

}  // namespace
}  // namespace headcount

namespace ffi = xla::ffi;
using headcount::Floats;
using headcount::Integers;

#pragma GCC visibility push(default)
XLA_FFI_DEFINE_HANDLER_SYMBOL(HeadcountAdvanceGpu, headcount::advance,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<void*>>()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Arg<Floats>().Arg<Floats>().Arg<Floats>()
                                  .Arg<Integers>().Arg<Integers>().Arg<Integers>()
                                  .Arg<Floats>().Arg<Integers>().Arg<Floats>().Arg<Floats>()
                                  .Ret<Floats>().Ret<Floats>().Ret<Floats>().Ret<Floats>()
                                  .Attrs<headcount::AdvanceAttributes>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(HeadcountAdvanceAsideGpu, headcount::advance_aside,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<void*>>()
                                  .Arg<Floats>().Arg<Floats>().Arg<Floats>().Arg<Floats>()
                                  .Arg<Integers>().Arg<Integers>().Arg<Integers>()
                                  .Arg<Floats>().Arg<Integers>().Arg<Floats>().Arg<Floats>()
                                  .Ret<Floats>().Ret<Floats>().Ret<Floats>().Ret<Floats>().Ret<Floats>()
                                  .Attrs<headcount::AdvanceAttributes>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    HeadcountJoinGpu, headcount::join,
    ffi::Ffi::Bind().Ctx<ffi::PlatformStream<void*>>().Arg<Integers>().Ret<Integers>());

extern "C" int64_t headcount_kernels_gpu_work(int64_t members, int64_t batch, int64_t length) {
  return headcount::work_of(members, batch, length);
}

extern "C" void headcount_kernels_gpu_together(int64_t work) { headcount::work_together = work; }

extern "C" int64_t headcount_kernels_gpu_scratch(int64_t length, int64_t dim, int64_t code, int64_t hidden,
                                                 int64_t heads, int64_t groups, int64_t rank, int64_t head_dim,
                                                 int64_t outputs, int64_t positions, int64_t members, int64_t batch) {
  const headcount::AdvanceAttributes given{length, dim,      code,    hidden,   heads, groups,
                                           rank,   head_dim, outputs, positions};
  return headcount::most_scratch(given.sizes(), members, batch);
}
#pragma GCC visibility pop
