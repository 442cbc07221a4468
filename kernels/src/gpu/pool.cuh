// The pooling of tokens alone, and its gradient, for members with any leading axes.
#pragma once
#include "tokens_gradient.cuh"

namespace headcount {

template <class Block>
__device__ Encoder load(const Pool& run, const Block& block, int member) {
  const int four = padded_heads(run.heads);
  const float* weight = run.weight + run.start(member, run.weight_strides);
  const float* given = run.bias + run.start(member, run.bias_strides);
  const float* towards = run.direction + run.start(member, run.direction_strides);
  float* flat = reinterpret_cast<float*>(block.rows);
  for (int index = threadIdx.x; index < run.hidden * 4 * Block::QUADS; index += THREADS) {
    const int j = index / (4 * Block::QUADS), k = index % (4 * Block::QUADS);
    flat[index] = k < run.dim ? weight[j * run.dim + k] : 0.f;
  }
  for (int index = threadIdx.x; index < run.hidden * four; index += THREADS) {
    const int head = index / run.hidden, j = index % run.hidden;
    block.direction[j * four + head] = head < run.heads ? towards[head * run.hidden + j] : 0.f;
  }
  for (int j = threadIdx.x; j < run.hidden; j += THREADS) block.bias[j] = given[j];
  const float* offset = run.offset_rows ? run.offset + run.start(member, run.offset_strides) : nullptr;
  const bool places = run.bias_rows > 1;
  return {block.rows, places ? given : block.bias, block.direction,          offset,
          run.hidden, run.heads,                   four, places ? run.hidden : 0};
}

__device__ inline Sequences sequences_of(const Pool& run, int member, int tile) {
  constexpr int TILE = WARPS * MOST_PER_WARP;
  const int first = tile * TILE;
  return {run.tokens + run.start(member, run.tokens_strides),
          nullptr,
          first,
          min(TILE, run.batch - first),
          MOST_PER_WARP,
          run.length,
          run.dim,
          run.masks != 0};
}

template <int QUADS>
__device__ void pool_tiles(const Pool& run) {
  extern __shared__ float4 memory[];
  const PoolBlock<QUADS, false> block(run, false, reinterpret_cast<float*>(memory), nullptr);
  for (int64_t turn = blockIdx.x; turn < int64_t(run.members) * run.tiles; turn += gridDim.x) {
    const int member = turn / run.tiles, tile = turn % run.tiles;
    const Encoder encoder = load(run, block, member);
    __syncthreads();
    const Sequences sequences = sequences_of(run, member, tile);
    const int64_t first = int64_t(member) * run.batch + tile * block.TILE;
    const Pooled pooled{run.pooled + first * run.heads * run.hidden, run.heads * run.hidden, 1, run.hidden};
    float* weights = run.weights + first * run.length * run.heads;
    for_head_groups(run.heads, [&](int head, auto group) {
      attend<QUADS, group.value>(sequences, encoder, head, weights, pooled, block.staged[threadIdx.x / 32]);
    });
    __syncthreads();
  }
}

template <int QUADS, bool LARGE>
__device__ void pool_gradient_tiles(const Pool& run) {
  extern __shared__ float4 memory[];
  const PoolBlock<QUADS, LARGE> block(run, true, reinterpret_cast<float*>(memory),
                                      run.scratch + blockIdx.x * run.block_scratch);
  const int heads = run.heads, hidden = run.hidden, four = padded_heads(heads);
  const int numbers = (4 * QUADS + 1 + heads) * hidden;
  for (int64_t turn = blockIdx.x; turn < int64_t(run.members) * run.tiles; turn += gridDim.x) {
    const int member = turn / run.tiles, tile = turn % run.tiles;
    const Encoder encoder = load(run, block, member);
    const Sequences sequences = sequences_of(run, member, tile);
    const int first = tile * block.TILE;
    const float* wanted = run.d_pooled + run.start(member, run.d_pooled_strides) + int64_t(first) * heads * hidden;
    for (int index = threadIdx.x; index < sequences.count * four * hidden; index += THREADS) {
      const int j = index % hidden, head = index / hidden % four, s = index / hidden / four;
      block.d_pooled[s * block.stride + j * four + head] = head < heads ? wanted[(s * heads + head) * hidden + j] : 0.f;
    }
    __syncthreads();
    const int64_t place = int64_t(first) * run.length * heads;
    const float* weights = run.weights_in + run.start(member, run.weights_strides) + place;
    const float* extra = run.d_weights + run.start(member, run.d_weights_strides) + place;
    float* sums = block.sums + threadIdx.x / 32 * numbers;
    for_head_groups(heads, [&](int head, auto group) {
      attend_gradient<QUADS, group.value>(sequences, encoder, head, weights, extra, block.slopes, block.d_pooled,
                                          block.stride, block.staged[threadIdx.x / 32], sums);
    });
    __syncthreads();
    float* partial = run.partials + turn * run.numbers(QUADS);
    const int warps = (sequences.count + MOST_PER_WARP - 1) / MOST_PER_WARP;
    for (int index = threadIdx.x; index < numbers; index += THREADS) {
      float sum = 0.f;
      for (int k = 0; k < warps; ++k) sum += block.sums[k * numbers + index];
      partial[index] = sum;
    }
    if (run.bias_rows > 1)
      bias_gradient<QUADS>(sequences, encoder, weights, block.slopes, block.d_pooled, block.stride, partial + numbers);
    float* d_offset = partial + numbers + (run.bias_rows > 1 ? run.length * hidden : 0);
    for (int index = threadIdx.x; index < run.offset_rows * heads; index += THREADS) {
      float sum = 0.f;
      for (int s = 0; s < sequences.count; ++s) sum += block.slopes[int64_t(s) * run.length * heads + index];
      d_offset[index] = sum;
    }
    __syncthreads();
  }
}

// The sums over tiles, in their order, as the gradients that were asked for.
template <int QUADS>
__device__ void pool_gradient_sums(const Pool& run) {
  const int numbers = run.numbers(QUADS), heads = run.heads, hidden = run.hidden;
  const int after = (4 * QUADS + 1 + heads) * hidden, places = run.bias_rows > 1 ? run.length * hidden : 0;
  for (int64_t index = int64_t(blockIdx.x) * THREADS + threadIdx.x; index < int64_t(run.members) * numbers;
       index += int64_t(gridDim.x) * THREADS) {
    const int64_t member = index / numbers;
    const int k = index % numbers;
    float sum = 0.f;
    for (int tile = 0; tile < run.tiles; ++tile) sum += run.partials[(member * run.tiles + tile) * numbers + k];
    const int row = k / hidden, j = k % hidden;
    if (k >= after + places)
      run.d_offset[member * run.offset_rows * heads + k - after - places] = sum;
    else if (k >= after)
      run.d_bias[member * places + k - after] = sum;
    else if (row > 4 * QUADS)
      run.d_direction[(member * heads + row - 4 * QUADS - 1) * hidden + j] = sum;
    else if (row == 4 * QUADS) {
      if (!places) run.d_bias[member * hidden + j] = sum;
    } else if (row < run.dim)
      run.d_weight[(member * hidden + j) * run.dim + row] = sum;
  }
}

}  // namespace headcount
