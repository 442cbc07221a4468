// The operations as XLA calls them on a CPU: shapes are checked here, members and tiles shared between threads.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "calls.h"
#include "cpu/kernels.h"
#include "cpu/share.h"
#include "xla/ffi/api/ffi.h"

namespace headcount::cpu {
namespace {

// A call in tiles of samples.
struct Tiles {
  PoolSizes sizes;
  int64_t batch, count;

  explicit Tiles(const PoolCall& call)
      : sizes{int32_t(call.length), int32_t(call.dim),    int32_t(call.hidden), int32_t(call.heads),
              call.bias_rows > 1,   call.offset_rows > 0, call.masks},
        batch(call.batch),
        count((call.batch + tile_samples - 1) / tile_samples) {}
  int samples(int64_t tile) const {
    return static_cast<int>(std::min<int64_t>(tile_samples, batch - tile * tile_samples));
  }
};

ffi::Error pool(ffi::ThreadPool threads, Floats tokens, Floats weight, Floats bias, Floats direction, Floats offset,
                FloatResult pooled, FloatResult weights, int64_t masks) {
  Checks checks;
  const PoolCall call(checks, tokens, bias, *pooled, offset, *pooled, masks);
  if (checks.failed()) return checks.error();
  const OfMembers all_tokens = call.argument(checks, "tokens", tokens, call.tokens);
  const OfMembers all_weights = call.argument(checks, "weight", weight, call.weight);
  const OfMembers all_biases = call.argument(checks, "bias", bias, call.bias);
  const OfMembers all_directions = call.argument(checks, "direction", direction, call.direction);
  const OfMembers all_offsets = call.argument(checks, "offset", offset, call.offset);
  const OfMembers all_pooled = call.result(checks, "pooled", *pooled, call.pooled);
  const OfMembers all_attention = call.result(checks, "weights", *weights, call.weights);
  if (checks.failed()) return checks.error();

  const Tiles tiles(call);
  const PoolSizes& s = tiles.sizes;
  const Kernels& kernels = chosen_kernels();
  const size_t bytes = kernels.pool_bytes(s);
  const bool done = share(threads, call.member_count * tiles.count, bytes, [&](int64_t piece, void* memory) {
    const int64_t member = piece / tiles.count, tile = piece % tiles.count, first = tile * tile_samples;
    const PoolWeights of_member = {all_weights.at(member), s.dim, all_biases.at(member), all_directions.at(member),
                                   s.has_offset ? all_offsets.at(member) : nullptr};
    kernels.pool(s, of_member, all_tokens.at(member) + first * s.length * s.dim, tiles.samples(tile),
                 all_pooled.at(member) + first * s.heads * s.hidden,
                 all_attention.at(member) + first * s.length * s.heads, memory);
  });
  return done ? ffi::Error::Success() : no_memory(bytes);
}

ffi::Error pool_gradient(ffi::ThreadPool threads, Floats tokens, Floats weight, Floats bias, Floats direction,
                         Floats weights, Floats d_pooled, Floats d_weights, FloatResult d_weight, FloatResult d_bias,
                         FloatResult d_direction, FloatResult d_offset, int64_t masks) {
  Checks checks;
  const PoolCall call(checks, tokens, bias, d_pooled, *d_offset, *d_weight, masks);
  if (checks.failed()) return checks.error();
  const OfMembers all_tokens = call.argument(checks, "tokens", tokens, call.tokens);
  const OfMembers all_weights = call.argument(checks, "weight", weight, call.weight);
  const OfMembers all_biases = call.argument(checks, "bias", bias, call.bias);
  const OfMembers all_directions = call.argument(checks, "direction", direction, call.direction);
  const OfMembers all_attention = call.argument(checks, "weights", weights, call.weights);
  const OfMembers all_d_pooled = call.argument(checks, "d_pooled", d_pooled, call.pooled);
  const OfMembers all_d_attention = call.argument(checks, "d_weights", d_weights, call.weights);
  const OfMembers results[] = {
      call.result(checks, "d_weight", *d_weight, call.weight),
      call.result(checks, "d_bias", *d_bias, call.bias),
      call.result(checks, "d_direction", *d_direction, call.direction),
      call.result(checks, "d_offset", *d_offset, call.offset),
  };
  if (checks.failed()) return checks.error();

  // Tiles of a member are added up in their order, whichever thread computed them.
  const Tiles tiles(call);
  const PoolSizes& s = tiles.sizes;
  const int64_t sizes[] = {call.hidden * call.dim, call.bias_rows * call.hidden, call.heads * call.hidden,
                           call.offset_rows * call.heads};
  const int64_t size = sizes[0] + sizes[1] + sizes[2] + sizes[3];
  const Kernels& kernels = chosen_kernels();
  const size_t bytes = kernels.pool_gradient_bytes(s);
  std::unique_ptr<float[]> parts(new (std::nothrow) float[call.member_count * tiles.count * size]);
  if (!parts) return no_memory(sizeof(float) * call.member_count * tiles.count * size);
  const bool done = share(threads, call.member_count * tiles.count, bytes, [&](int64_t piece, void* memory) {
    const int64_t member = piece / tiles.count, tile = piece % tiles.count, first = tile * tile_samples;
    const PoolWeights of_member = {all_weights.at(member), s.dim, all_biases.at(member), all_directions.at(member),
                                   nullptr};
    float* part = parts.get() + piece * size;
    const PoolGradients gradients = {part, part + sizes[0], part + sizes[0] + sizes[1],
                                     s.has_offset ? part + sizes[0] + sizes[1] + sizes[2] : nullptr};
    kernels.pool_gradient(
        s, of_member, all_tokens.at(member) + first * s.length * s.dim,
        all_attention.at(member) + first * s.length * s.heads,
        all_d_pooled.at(member) + first * s.heads * s.hidden, all_d_attention.at(member) + first * s.length * s.heads,
        tiles.samples(tile), gradients, memory);
  });
  if (!done) return no_memory(bytes);
  for (int64_t member = 0; member < call.member_count; member++) {
    const float* part = parts.get() + member * tiles.count * size;
    for (int array = 0; array < 4; part += sizes[array], array++) {
      float* sum = results[array].at(member);
      std::fill(sum, sum + sizes[array], 0.0f);
      for (int64_t tile = 0; tile < tiles.count; tile++) {
        for (int64_t k = 0; k < sizes[array]; k++) sum[k] += part[tile * size + k];
      }
    }
  }
  return ffi::Error::Success();
}

ffi::Error advance(ffi::ThreadPool threads, Floats weights, Floats mean, Floats square, Integers step, Integers heads,
                   Integers count, Floats rates, Integers chosen, Floats tokens, Floats targets,
                   FloatResult new_weights, FloatResult new_mean, FloatResult new_square, FloatResult error,
                   AdvanceAttributes given) {
  Checks checks;
  const AdvanceCall call(checks, given,
                         {weights, mean, square, step, heads, count, rates, chosen, tokens, targets, *new_weights,
                          *new_mean, *new_square, *error});
  if (checks.failed()) return checks.error();
  const int64_t members = call.members, room = call.room, batch = call.batch, size = call.size;

  AdvanceTask task{};
  task.sizes = given.sizes();
  task.objective = static_cast<Objective>(given.objective);
  task.masks = given.masks == 1;
  task.beta = given.beta;
  task.clip = given.clip;
  task.second_moment_decay = given.second_moment_decay;
  task.weight_decay = given.weight_decay;
  task.batch = static_cast<int32_t>(batch);
  task.tokens = tokens.typed_data();
  task.targets = targets.typed_data();
  const int32_t steps = *count.typed_data();
  checks.require(steps >= 0 && steps <= room,
                 "count is " + std::to_string(steps) + "; it must be 0 to " + std::to_string(room) + ".");
  for (int64_t m = 0; m < members && !checks.failed(); m++) {
    const int32_t of_member = heads.typed_data()[m];
    checks.require(of_member >= 0 && of_member <= given.heads,
                   "heads has " + std::to_string(of_member) + "; it must be 0 to " + std::to_string(given.heads) + ".");
    const int32_t* first = chosen.typed_data() + m * room * batch;
    for (int64_t k = 0; of_member > 0 && steps > 0 && k < steps * batch && !checks.failed(); k++) {
      if (first[k] >= 0 && first[k] < call.examples) continue;
      checks.require(false, "chosen has " + std::to_string(first[k]) + "; it must be 0 to " +
                                std::to_string(call.examples - 1) + ".");
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

}  // namespace
}  // namespace headcount::cpu

#define HEADCOUNT_EXPORTED extern "C" __attribute__((visibility("default")))
HEADCOUNT_EXPORTED XLA_FFI_Error* HeadcountPoolCpu(XLA_FFI_CallFrame*);
HEADCOUNT_EXPORTED XLA_FFI_Error* HeadcountPoolGradientCpu(XLA_FFI_CallFrame*);
HEADCOUNT_EXPORTED XLA_FFI_Error* HeadcountAdvanceCpu(XLA_FFI_CallFrame*);

using headcount::Floats;
using headcount::Integers;

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
                                  .Attrs<headcount::AdvanceAttributes>());
