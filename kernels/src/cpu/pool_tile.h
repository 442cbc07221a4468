// The pool operation on its own: arrays as JAX has them, a tile of samples at a time.
#pragma once
#include "cpu/pool.h"

namespace headcount::HEADCOUNT_INSTRUCTIONS {

struct PoolMemory {
  LaneTokens tokens;
  Lanes* attention;    // [T, h]
  Lanes* pooled;       // [h, N]
  Lanes* d_pooled;     // [h, N]
  Lanes* d_attention;  // [T, h]
  float* zeros;        // the gradient of a sample that is not there
  Hidden hidden;
  PoolSums sums;

  PoolMemory(Memory& memory, const PoolSizes& sizes, bool backward) {
    const size_t length = sizes.length, of_pooled = static_cast<size_t>(sizes.heads) * sizes.hidden;
    const size_t of_attention = length * sizes.heads;
    tokens = {{memory.lanes(length * sizes.dim), sizes.dim, 1}, sizes.masks ? memory.masks(length) : nullptr};
    attention = memory.lanes(of_attention);
    pooled = memory.lanes(of_pooled);
    hidden.block = tokens_per_block(sizes);
    hidden.first = memory.lanes(static_cast<size_t>(hidden.block) * sizes.hidden);
    if (!backward) return;
    d_pooled = memory.lanes(of_pooled);
    d_attention = memory.lanes(of_attention);
    zeros = memory.floats(of_pooled > of_attention ? of_pooled : of_attention);
    sums = PoolSums(memory, sizes);
  }
};

inline size_t pool_bytes(const PoolSizes& sizes) {
  Memory counted(nullptr);
  PoolMemory(counted, sizes, false);
  return counted.bytes();
}

inline size_t pool_gradient_bytes(const PoolSizes& sizes) {
  Memory counted(nullptr);
  PoolMemory(counted, sizes, true);
  return counted.bytes();
}

inline void pool(const PoolSizes& sizes, const PoolWeights& weights, const float* tokens, int samples, float* pooled,
                 float* attention, void* memory) {
  Memory parts(memory);
  const PoolMemory room(parts, sizes, false);
  const ptrdiff_t of_tokens = static_cast<ptrdiff_t>(sizes.length) * sizes.dim;
  const ptrdiff_t of_pooled = static_cast<ptrdiff_t>(sizes.heads) * sizes.hidden;
  const ptrdiff_t of_attention = static_cast<ptrdiff_t>(sizes.length) * sizes.heads;
  const Grid<Lanes> lane_attention = {room.attention, sizes.heads, 1};
  for (int first = 0; first < samples; first += lane_count) {
    const int some = smaller(lane_count, samples - first);
    read_lane_tokens(sizes, rows_of(tokens + first * of_tokens, of_tokens, some), room.tokens);
    pool_lanes(sizes, weights, room.tokens, lane_attention, room.pooled, room.hidden);
    from_lanes(pooled + first * of_pooled, of_pooled, some, room.pooled, of_pooled);
    from_lanes(attention + first * of_attention, of_attention, some, room.attention, of_attention);
  }
}

inline void pool_gradient(const PoolSizes& sizes, const PoolWeights& weights, const float* tokens,
                          const float* attention, const float* d_pooled, const float* d_attention, int samples,
                          const PoolGradients& gradients, void* memory) {
  Memory parts(memory);
  const PoolMemory room(parts, sizes, true);
  const ptrdiff_t of_tokens = static_cast<ptrdiff_t>(sizes.length) * sizes.dim;
  const ptrdiff_t of_pooled = static_cast<ptrdiff_t>(sizes.heads) * sizes.hidden;
  const ptrdiff_t of_attention = static_cast<ptrdiff_t>(sizes.length) * sizes.heads;
  const Grid<Lanes> lane_attention = {room.attention, sizes.heads, 1};
  const size_t bias_rows = sizes.bias_per_token ? sizes.length : 1;
  memset(gradients.weight, 0, sizeof(float) * sizes.hidden * sizes.dim);
  memset(gradients.bias, 0, sizeof(float) * bias_rows * sizes.hidden);
  memset(gradients.direction, 0, sizeof(float) * of_pooled);
  if (gradients.offset) memset(gradients.offset, 0, sizeof(float) * of_attention);
  room.sums.clear(sizes);
  for (int first = 0; first < samples; first += lane_count) {
    const int some = smaller(lane_count, samples - first);
    auto read = [&](Lanes* into, const float* from, ptrdiff_t stride, const float* beyond) {
      to_lanes(into, rows_of(from + first * stride, stride, some, beyond), stride);
    };
    read_lane_tokens(sizes, rows_of(tokens + first * of_tokens, of_tokens, some), room.tokens);
    read(room.attention, attention, of_attention, nullptr);
    read(room.d_pooled, d_pooled, of_pooled, room.zeros);
    read(room.d_attention, d_attention, of_attention, room.zeros);
    const LaneGradients given = {
        lane_attention, {room.d_attention, sizes.heads, 1}, {room.d_pooled, sizes.hidden, 1}};
    pool_lanes_gradient(sizes, weights, room.tokens, given, gradients, room.hidden, false, room.sums);
  }
  room.sums.add_to(sizes, gradients);
}

}  // namespace headcount::HEADCOUNT_INSTRUCTIONS
