// `pool` and its gradient on a GPU as XLA calls them: shapes are checked, memory is laid out, and the kernels are
// launched on XLA's stream.
#include <algorithm>
#include <string>

#include "calls.h"
#include "gpu/launch.h"

namespace headcount {
namespace {

Strides strides_of(const OfMembers& array) {
  Strides strides{};
  std::copy(array.strides().begin(), array.strides().end(), strides.of);
  return strides;
}

// Fills in what both directions have in common, or says what is wrong with the call.
void describe(Checks& checks, Pool& run, const PoolCall& call, const Floats& tokens, const Floats& weight,
              const Floats& bias, const Floats& direction) {
  checks.require(call.members.size() <= MAX_AXES, "there are " + std::to_string(call.members.size()) +
                                                      " axes of members; a GPU takes at most " +
                                                      std::to_string(MAX_AXES) + ".");
  checks.require(quads_of(call.dim), "tokens of more than 16 numbers are not done on a GPU, got " +
                                         std::to_string(call.dim) + ".");
  if (checks.failed()) return;
  run.axes = int32_t(call.members.size());
  std::copy(call.members.begin(), call.members.end(), run.size);
  run.members = int32_t(call.member_count);
  run.batch = int32_t(call.batch), run.length = int32_t(call.length), run.dim = int32_t(call.dim);
  run.hidden = int32_t(call.hidden), run.heads = int32_t(call.heads);
  run.bias_rows = int32_t(call.bias_rows), run.offset_rows = int32_t(call.offset_rows);
  run.masks = call.masks;
  const int tile = WARPS * MOST_PER_WARP;
  run.tiles = (run.batch + tile - 1) / tile;
  run.tokens = tokens.typed_data(), run.weight = weight.typed_data(), run.bias = bias.typed_data();
  run.direction = direction.typed_data();
  run.tokens_strides = strides_of(call.argument(checks, "tokens", tokens, call.tokens));
  run.weight_strides = strides_of(call.argument(checks, "weight", weight, call.weight));
  run.bias_strides = strides_of(call.argument(checks, "bias", bias, call.bias));
  run.direction_strides = strides_of(call.argument(checks, "direction", direction, call.direction));
}

ffi::Error pool(void* stream, Floats tokens, Floats weight, Floats bias, Floats direction, Floats offset,
                FloatResult pooled, FloatResult weights, int64_t masks) {
  Checks checks;
  const PoolCall call(checks, tokens, bias, *pooled, offset, *pooled, masks);
  Pool run{};
  describe(checks, run, call, tokens, weight, bias, direction);
  if (checks.failed()) return checks.error();
  run.offset = offset.typed_data();
  run.offset_strides = strides_of(call.argument(checks, "offset", offset, call.offset));
  run.pooled = call.result(checks, "pooled", *pooled, call.pooled).first();
  run.weights = call.result(checks, "weights", *weights, call.weights).first();
  if (checks.failed()) return checks.error();
  if (!run.members || !run.batch) return ffi::Error::Success();
  OnStream on(stream);
  if (!on.ok()) return on.error();
  const int quads = quads_of(run.dim);
  const int64_t shared = with_quads(
      quads, [&](auto q) { return 4 * PoolBlock<q.value, false>(run, false, nullptr, nullptr).shared_floats; });
  if (shared > on.most_shared - OnStream::RESERVED_SHARED)
    return invalid("too many hidden units and heads for this GPU.");
  const auto function = on.function("pool_" + std::to_string(quads));
  if (!on.ok()) return on.error();
  const int64_t turns = int64_t(run.members) * run.tiles;
  on.launch(function, int(std::min<int64_t>(turns, on.places(function, shared))), shared, &run, false);
  return on.ok() ? ffi::Error::Success() : on.error();
}

ffi::Error pool_gradient(void* stream, ffi::ScratchAllocator allocator, Floats tokens, Floats weight, Floats bias,
                         Floats direction, Floats weights, Floats d_pooled, Floats d_weights,
                         FloatResult d_weight, FloatResult d_bias, FloatResult d_direction, FloatResult d_offset,
                         int64_t masks) {
  Checks checks;
  const PoolCall call(checks, tokens, bias, d_pooled, *d_offset, *d_weight, masks);
  Pool run{};
  describe(checks, run, call, tokens, weight, bias, direction);
  if (checks.failed()) return checks.error();
  run.weights_in = weights.typed_data(), run.d_pooled = d_pooled.typed_data(), run.d_weights = d_weights.typed_data();
  run.weights_strides = strides_of(call.argument(checks, "weights", weights, call.weights));
  run.d_pooled_strides = strides_of(call.argument(checks, "d_pooled", d_pooled, call.pooled));
  run.d_weights_strides = strides_of(call.argument(checks, "d_weights", d_weights, call.weights));
  run.d_weight = call.result(checks, "d_weight", *d_weight, call.weight).first();
  run.d_bias = call.result(checks, "d_bias", *d_bias, call.bias).first();
  run.d_direction = call.result(checks, "d_direction", *d_direction, call.direction).first();
  run.d_offset = call.result(checks, "d_offset", *d_offset, call.offset).first();
  if (checks.failed()) return checks.error();
  if (!run.members) return ffi::Error::Success();
  OnStream on(stream);
  if (!on.ok()) return on.error();
  const int quads = quads_of(run.dim);
  const int64_t most = on.most_shared - OnStream::RESERVED_SHARED;
  int64_t shared = 0, scratch = 0;
  bool large = false;
  with_quads(quads, [&](auto q) {
    const PoolBlock<q.value, false> block(run, true, nullptr, nullptr);
    shared = 4 * block.shared_floats, scratch = block.scratch_floats;
    large = shared > most;
    if (!large) return;
    const PoolBlock<q.value, true> spilled(run, true, nullptr, nullptr);
    shared = 4 * spilled.shared_floats, scratch = spilled.scratch_floats;
  });
  if (shared > most) return invalid("too many hidden units and heads for this GPU.");
  const auto function = on.function((large ? "pool_gradient_large_" : "pool_gradient_") + std::to_string(quads));
  const auto sums = on.function("pool_sums_" + std::to_string(quads));
  if (!on.ok()) return on.error();
  const int64_t turns = int64_t(run.members) * run.tiles, numbers = run.numbers(quads);
  const int blocks = int(std::max<int64_t>(1, std::min<int64_t>(turns, on.places(function, shared))));
  run.block_scratch = scratch;
  const size_t words = size_t(turns) * numbers + 4 + size_t(blocks) * scratch;
  auto memory = allocator.Allocate(4 * words);
  if (!memory) return no_memory(4 * words);
  run.partials = static_cast<float*>(*memory);
  run.scratch = run.partials + fours(turns * numbers);
  if (turns) on.launch(function, blocks, shared, &run, false);
  const int64_t sum_blocks = (int64_t(run.members) * numbers + THREADS - 1) / THREADS;
  on.launch(sums, int(std::min<int64_t>(sum_blocks, 1 << 16)), 0, &run, false);
  return on.ok() ? ffi::Error::Success() : on.error();
}

}  // namespace
}  // namespace headcount

namespace ffi = xla::ffi;
using headcount::Floats;

#pragma GCC visibility push(default)
XLA_FFI_DEFINE_HANDLER_SYMBOL(HeadcountPoolGpu, headcount::pool,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<void*>>()
                                  .Arg<Floats>().Arg<Floats>().Arg<Floats>().Arg<Floats>().Arg<Floats>()
                                  .Ret<Floats>().Ret<Floats>().Attr<int64_t>("masks"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(HeadcountPoolGradientGpu, headcount::pool_gradient,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<void*>>()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Arg<Floats>().Arg<Floats>().Arg<Floats>().Arg<Floats>()
                                  .Arg<Floats>().Arg<Floats>().Arg<Floats>()
                                  .Ret<Floats>().Ret<Floats>().Ret<Floats>().Ret<Floats>()
                                  .Attr<int64_t>("masks"));
#pragma GCC visibility pop
