// The operations as XLA calls them on a CPU: shapes are checked here, members and tiles shared between threads.
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "cpu/checks.h"
#include "cpu/kernels.h"
#include "cpu/share.h"
#include "xla/ffi/api/ffi.h"

namespace headcount::cpu {
namespace {

ffi::Error no_memory(size_t bytes) {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted,
                    "headcount: a thread needs " + std::to_string(bytes) + " bytes, and there is no such memory.");
}

ffi::Error pool(ffi::ThreadPool threads, Floats tokens, Floats weight, Floats bias, Floats direction, Floats offset,
                FloatResult pooled, FloatResult weights, int64_t masks) {
  Checks checks;
  PoolCall call(checks, tokens, bias, *pooled, offset, masks);
  if (checks.failed()) return checks.error();
  call.take_members(*pooled);
  const PoolSizes& s = call.sizes;
  const auto& members = call.members;
  const OfMembers all_tokens(checks, "tokens", tokens, members, {call.batch, s.length, s.dim});
  const OfMembers all_weights(checks, "weight", weight, members, {s.hidden, s.dim});
  const OfMembers all_biases(checks, "bias", bias, members, {call.bias_rows, s.hidden});
  const OfMembers all_directions(checks, "direction", direction, members, {s.heads, s.hidden});
  const OfMembers all_offsets(checks, "offset", offset, members, {s.has_offset ? s.length : 0, s.heads});
  const OfMembers all_pooled(checks, "pooled", *pooled, members, {call.batch, s.heads, s.hidden});
  const OfMembers all_attention(checks, "weights", *weights, members, {call.batch, s.length, s.heads});
  if (checks.failed()) return checks.error();

  const Kernels& kernels = chosen_kernels();
  const size_t bytes = kernels.pool_bytes(s);
  const bool done = share(threads, call.member_count * call.tiles, bytes, [&](int64_t piece, void* memory) {
    const int64_t member = piece / call.tiles, tile = piece % call.tiles, first = tile * tile_samples;
    const PoolWeights of_member = {all_weights.at(member), s.dim, all_biases.at(member), all_directions.at(member),
                                   s.has_offset ? all_offsets.at(member) : nullptr};
    kernels.pool(s, of_member, all_tokens.at(member) + first * s.length * s.dim, call.samples(tile),
                 all_pooled.at(member) + first * s.heads * s.hidden,
                 all_attention.at(member) + first * s.length * s.heads, memory);
  });
  return done ? ffi::Error::Success() : no_memory(bytes);
}

ffi::Error pool_gradient(ffi::ThreadPool threads, Floats tokens, Floats weight, Floats bias, Floats direction,
                         Floats pooled, Floats weights, Floats d_pooled, Floats d_weights, FloatResult d_weight,
                         FloatResult d_bias, FloatResult d_direction, FloatResult d_offset, int64_t masks) {
  Checks checks;
  PoolCall call(checks, tokens, bias, pooled, *d_offset, masks);
  if (checks.failed()) return checks.error();
  call.take_members(*d_weight);
  const PoolSizes& s = call.sizes;
  const auto& members = call.members;
  const int64_t offset_rows = s.has_offset ? s.length : 0;
  const OfMembers all_tokens(checks, "tokens", tokens, members, {call.batch, s.length, s.dim});
  const OfMembers all_weights(checks, "weight", weight, members, {s.hidden, s.dim});
  const OfMembers all_biases(checks, "bias", bias, members, {call.bias_rows, s.hidden});
  const OfMembers all_directions(checks, "direction", direction, members, {s.heads, s.hidden});
  const OfMembers all_pooled(checks, "pooled", pooled, members, {call.batch, s.heads, s.hidden});
  const OfMembers all_attention(checks, "weights", weights, members, {call.batch, s.length, s.heads});
  const OfMembers all_d_pooled(checks, "d_pooled", d_pooled, members, {call.batch, s.heads, s.hidden});
  const OfMembers all_d_attention(checks, "d_weights", d_weights, members, {call.batch, s.length, s.heads});
  const OfMembers results[] = {
      OfMembers(checks, "d_weight", *d_weight, members, {s.hidden, s.dim}),
      OfMembers(checks, "d_bias", *d_bias, members, {call.bias_rows, s.hidden}),
      OfMembers(checks, "d_direction", *d_direction, members, {s.heads, s.hidden}),
      OfMembers(checks, "d_offset", *d_offset, members, {offset_rows, s.heads}),
  };
  if (checks.failed()) return checks.error();

  // Tiles of a member are added up in their order, whichever thread computed them.
  const int64_t sizes[] = {int64_t{s.hidden} * s.dim, call.bias_rows * s.hidden, int64_t{s.heads} * s.hidden,
                           offset_rows * s.heads};
  const int64_t size = sizes[0] + sizes[1] + sizes[2] + sizes[3];
  const Kernels& kernels = chosen_kernels();
  const size_t bytes = kernels.pool_gradient_bytes(s);
  std::unique_ptr<float[]> parts(new (std::nothrow) float[call.member_count * call.tiles * size]);
  if (!parts) return no_memory(sizeof(float) * call.member_count * call.tiles * size);
  const bool done = share(threads, call.member_count * call.tiles, bytes, [&](int64_t piece, void* memory) {
    const int64_t member = piece / call.tiles, tile = piece % call.tiles, first = tile * tile_samples;
    const PoolWeights of_member = {all_weights.at(member), s.dim, all_biases.at(member), all_directions.at(member),
                                   nullptr};
    float* part = parts.get() + piece * size;
    const PoolGradients gradients = {part, part + sizes[0], part + sizes[0] + sizes[1],
                                     s.has_offset ? part + sizes[0] + sizes[1] + sizes[2] : nullptr};
    kernels.pool_gradient(
        s, of_member, all_tokens.at(member) + first * s.length * s.dim,
        all_pooled.at(member) + first * s.heads * s.hidden, all_attention.at(member) + first * s.length * s.heads,
        all_d_pooled.at(member) + first * s.heads * s.hidden, all_d_attention.at(member) + first * s.length * s.heads,
        call.samples(tile), gradients, memory);
  });
  if (!done) return no_memory(bytes);
  for (int64_t member = 0; member < call.member_count; member++) {
    const float* part = parts.get() + member * call.tiles * size;
    for (int array = 0; array < 4; part += sizes[array], array++) {
      float* sum = results[array].at(member);
      std::fill(sum, sum + sizes[array], 0.0f);
      for (int64_t tile = 0; tile < call.tiles; tile++) {
        for (int64_t k = 0; k < sizes[array]; k++) sum[k] += part[tile * size + k];
      }
    }
  }
  return ffi::Error::Success();
}

struct AdvanceAttributes {
  int64_t length, dim, code, hidden, heads, groups, rank, head_dim, outputs, positions, objective, masks;
  float beta, clip, second_moment_decay, weight_decay;
};

// The numbers of all arrays, in 64 bits.
double size_of(const AdvanceAttributes& a) {
  const double total = 1.0 * a.heads * a.head_dim, read = a.dim + (a.positions == 2 ? a.code : 0);
  return a.hidden * (read + 2 * total + a.outputs + 2) + a.length * a.code + 2 * total + a.outputs +
         total * (1.0 * a.heads * a.rank + 1.0 * a.groups * (a.rank + a.head_dim) + total);
}

void check_attributes(Checks& checks, const AdvanceAttributes& a) {
  const auto at_least = [&](const char* name, int64_t given, int64_t least) {
    checks.require(given >= least && given < 1 << 24, std::string(name) + " is " + std::to_string(given) +
                                                          "; it must be at least " + std::to_string(least) + ".");
  };
  const auto at_most = [&](const char* name, int64_t given, int64_t most) {
    checks.require(given >= 0 && given <= most, std::string(name) + " is " + std::to_string(given) +
                                                    "; it must be 0 to " + std::to_string(most) + ".");
  };
  at_least("length", a.length, 1);
  at_least("dim", a.dim, 1);
  at_least("hidden", a.hidden, 1);
  at_least("heads", a.heads, 1);
  at_least("groups", a.groups, 1);
  at_least("rank", a.rank, 1);
  at_least("head_dim", a.head_dim, 1);
  at_least("outputs", a.outputs, 1);
  at_most("groups", a.groups, a.heads);
  at_most("positions", a.positions, 2);
  at_most("objective", a.objective, 1);
  at_most("masks", a.masks, 1);
  const int64_t code = a.positions == 0 ? 0 : a.positions == 1 ? a.heads * a.head_dim : a.code;
  checks.require(a.code == code, "code is " + std::to_string(a.code) + "; it must be " + std::to_string(code) + ".");
  if (a.positions == 2) at_least("code", a.code, 1);
  checks.require(size_of(a) < std::numeric_limits<int32_t>::max() / 64,
                 "heads, head_dim, hidden and length are too large.");
}

ffi::Error advance_members(ffi::ThreadPool threads, Floats weights, Floats mean, Floats square, Integers step,
                           Integers heads, Integers count, Floats rates, Integers chosen, Floats tokens, Floats targets,
                           FloatResult new_weights, FloatResult new_mean, FloatResult new_square, FloatResult error,
                           const AdvanceAttributes& a) {
  Checks checks;
  check_attributes(checks, a);
  const auto chosen_shape = shape_of(chosen), token_shape = shape_of(tokens);
  checks.require(chosen_shape.size() == 3,
                 "chosen has shape " + text_of(chosen_shape) + "; it must be (members, steps, batch).");
  checks.require(token_shape.size() == 3,
                 "tokens has shape " + text_of(token_shape) + "; it must be (examples, length, dim).");
  if (checks.failed()) return checks.error();

  const auto narrow = [](int64_t number) { return static_cast<int32_t>(number); };
  AdvanceTask task{};
  task.sizes = {
      narrow(a.length), narrow(a.dim),  narrow(a.code),     narrow(a.hidden),  narrow(a.heads),
      narrow(a.groups), narrow(a.rank), narrow(a.head_dim), narrow(a.outputs), static_cast<Positions>(a.positions)};
  task.objective = static_cast<Objective>(a.objective);
  task.masks = a.masks == 1;
  task.beta = a.beta;
  task.clip = a.clip;
  task.second_moment_decay = a.second_moment_decay;
  task.weight_decay = a.weight_decay;
  const int64_t members = chosen_shape[0], room = chosen_shape[1], batch = chosen_shape[2], examples = token_shape[0];
  const int64_t size = Layout(task.sizes).size;
  checks.require(batch > 0 && batch < 1 << 30,
                 "chosen has shape " + text_of(chosen_shape) + "; a batch must have an example.");
  checks.require(examples > 0 && examples < 1 << 30,
                 "tokens has shape " + text_of(token_shape) + "; there must be an example.");
  checks.shape("weights", weights, {members, size});
  checks.shape("mean", mean, {members, size});
  checks.shape("square", square, {members, size});
  checks.shape("step", step, {members});
  checks.shape("heads", heads, {members});
  checks.shape("count", count, {});
  checks.shape("rates", rates, {members, room});
  checks.shape("tokens", tokens, {examples, a.length, a.dim});
  checks.shape("targets", targets, {examples, a.objective == 1 ? 1 : a.outputs});
  checks.shape("weights of the results", *new_weights, {members, size});
  checks.shape("mean of the results", *new_mean, {members, size});
  checks.shape("square of the results", *new_square, {members, size});
  checks.shape("error", *error, {members});
  if (checks.failed()) return checks.error();
  task.batch = narrow(batch);
  task.tokens = tokens.typed_data();
  task.targets = targets.typed_data();
  const int32_t steps = *count.typed_data();
  checks.require(steps >= 0 && steps <= room,
                 "count is " + std::to_string(steps) + "; it must be 0 to " + std::to_string(room) + ".");
  for (int64_t m = 0; m < members && !checks.failed(); m++) {
    const int32_t of_member = heads.typed_data()[m];
    checks.require(of_member >= 0 && of_member <= a.heads,
                   "heads has " + std::to_string(of_member) + "; it must be 0 to " + std::to_string(a.heads) + ".");
    const int32_t* first = chosen.typed_data() + m * room * batch;
    for (int64_t k = 0; of_member > 0 && steps > 0 && k < steps * batch && !checks.failed(); k++) {
      if (first[k] >= 0 && first[k] < examples) continue;
      checks.require(
          false, "chosen has " + std::to_string(first[k]) + "; it must be 0 to " + std::to_string(examples - 1) + ".");
    }
  }
  if (checks.failed()) return checks.error();

  // XLA may give a result the memory of its argument; otherwise the argument is copied there first.
  const auto copy = [](const Floats& from, Floats& to) {
    if (from.typed_data() != to.typed_data()) std::memcpy(to.typed_data(), from.typed_data(), to.size_bytes());
    return to.typed_data();
  };
  float* all_weights = copy(weights, *new_weights);
  float* all_means = copy(mean, *new_mean);
  float* all_squares = copy(square, *new_square);
  const Kernels& kernels = chosen_kernels();
  const size_t bytes = kernels.advance_bytes(task);
  const bool done = share(threads, members, bytes, [&](int64_t m, void* memory) {
    float& sum = error->typed_data()[m];
    sum = 0;
    if (heads.typed_data()[m] == 0 || steps == 0) return;
    const AdvanceMember member = {heads.typed_data()[m],
                                  step.typed_data()[m],
                                  steps,
                                  rates.typed_data() + m * room,
                                  chosen.typed_data() + m * room * batch,
                                  all_weights + m * size,
                                  all_means + m * size,
                                  all_squares + m * size};
    sum = kernels.advance(task, member, memory);
  });
  return done ? ffi::Error::Success() : no_memory(bytes);
}

ffi::Error advance(ffi::ThreadPool threads, Floats weights, Floats mean, Floats square, Integers step, Integers heads,
                   Integers count, Floats rates, Integers chosen, Floats tokens, Floats targets,
                   FloatResult new_weights, FloatResult new_mean, FloatResult new_square, FloatResult error,
                   int64_t length, int64_t dim, int64_t code, int64_t hidden, int64_t room_for_heads, int64_t groups,
                   int64_t rank, int64_t head_dim, int64_t outputs, int64_t positions, int64_t objective, int64_t masks,
                   float beta, float clip, float second_moment_decay, float weight_decay) {
  return advance_members(threads, weights, mean, square, step, heads, count, rates, chosen, tokens, targets,
                         new_weights, new_mean, new_square, error,
                         {length, dim, code, hidden, room_for_heads, groups, rank, head_dim, outputs, positions,
                          objective, masks, beta, clip, second_moment_decay, weight_decay});
}

}  // namespace
}  // namespace headcount::cpu

#define HEADCOUNT_EXPORTED extern "C" __attribute__((visibility("default")))
HEADCOUNT_EXPORTED XLA_FFI_Error* HeadcountPoolCpu(XLA_FFI_CallFrame*);
HEADCOUNT_EXPORTED XLA_FFI_Error* HeadcountPoolGradientCpu(XLA_FFI_CallFrame*);
HEADCOUNT_EXPORTED XLA_FFI_Error* HeadcountAdvanceCpu(XLA_FFI_CallFrame*);

using headcount::cpu::Floats;
using headcount::cpu::Integers;

XLA_FFI_DEFINE_HANDLER_SYMBOL(HeadcountPoolCpu, headcount::cpu::pool,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<Floats>()  // tokens
                                  .Arg<Floats>()  // weight
                                  .Arg<Floats>()  // bias
                                  .Arg<Floats>()  // direction
                                  .Arg<Floats>()  // offset
                                  .Ret<Floats>()  // pooled
                                  .Ret<Floats>()  // weights
                                  .Attr<int64_t>("masks"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(HeadcountPoolGradientCpu, headcount::cpu::pool_gradient,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<Floats>()  // tokens
                                  .Arg<Floats>()  // weight
                                  .Arg<Floats>()  // bias
                                  .Arg<Floats>()  // direction
                                  .Arg<Floats>()  // pooled
                                  .Arg<Floats>()  // weights
                                  .Arg<Floats>()  // d_pooled
                                  .Arg<Floats>()  // d_weights
                                  .Ret<Floats>()  // d_weight
                                  .Ret<Floats>()  // d_bias
                                  .Ret<Floats>()  // d_direction
                                  .Ret<Floats>()  // d_offset
                                  .Attr<int64_t>("masks"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(HeadcountAdvanceCpu, headcount::cpu::advance,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<Floats>()    // weights
                                  .Arg<Floats>()    // mean
                                  .Arg<Floats>()    // square
                                  .Arg<Integers>()  // step
                                  .Arg<Integers>()  // heads
                                  .Arg<Integers>()  // count
                                  .Arg<Floats>()    // rates
                                  .Arg<Integers>()  // chosen
                                  .Arg<Floats>()    // tokens
                                  .Arg<Floats>()    // targets
                                  .Ret<Floats>()    // weights
                                  .Ret<Floats>()    // mean
                                  .Ret<Floats>()    // square
                                  .Ret<Floats>()    // error
                                  .Attr<int64_t>("length")
                                  .Attr<int64_t>("dim")
                                  .Attr<int64_t>("code")
                                  .Attr<int64_t>("hidden")
                                  .Attr<int64_t>("heads")
                                  .Attr<int64_t>("groups")
                                  .Attr<int64_t>("rank")
                                  .Attr<int64_t>("head_dim")
                                  .Attr<int64_t>("outputs")
                                  .Attr<int64_t>("positions")
                                  .Attr<int64_t>("objective")
                                  .Attr<int64_t>("masks")
                                  .Attr<float>("beta")
                                  .Attr<float>("clip")
                                  .Attr<float>("second_moment_decay")
                                  .Attr<float>("weight_decay"));
