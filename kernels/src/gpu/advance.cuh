// Many training steps of many members in one launch: forward, backward, clipping and Adam. A member is taken by one
// block, or by a team of blocks that meet at a barrier where there are fewer members than places for blocks.
//
// Sums over the batch run over tiles in their order, whoever computed them: a member's numbers depend neither on the
// team's size nor on other members.
#pragma once
#include "fold.cuh"
#include "readout.cuh"
#include "tokens_gradient.cuh"

namespace headcount {

constexpr float FIRST_MOMENT_DECAY = 0.9f, FIRST_MOMENT_REST = 0.1f;
constexpr float ADAM_EPSILON = 1e-8f;

// All blocks of a team wait for each other, and see what the others wrote. They must be on the GPU at the same time.
struct Team {
  int rank, size;
  int32_t* arrived;
  int32_t expected = 0;

  __device__ void wait() {
    __syncthreads();
    if (size == 1) return;
    if (threadIdx.x == 0) {
      expected += size;
      __threadfence();
      atomicAdd(arrived, 1);
      while (*static_cast<volatile int32_t*>(arrived) < expected) {
      }
      __threadfence();
    }
    __syncthreads();
  }
};

template <class Block>
__device__ Encoder encoder_of(const Sizes& s, const Block& block, int heads) {
  const bool concatenated = s.positions == Positions::concatenated;
  return {block.rows,
          concatenated ? block.place_bias : block.bias,
          block.direction,
          s.positions == Positions::additive ? block.place_score : nullptr,
          s.hidden,
          heads,
          padded_heads(s.heads),
          concatenated ? s.hidden : 0};
}

// The gradient of the attention weights through the values that places add, into `slopes`.
template <class Block>
__device__ void slopes_of_places(const Sizes& s, const Block& block, const Sequences& sequences, int heads) {
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * Block::PER_WARP;
  const int end = min(sequences.count, first + Block::PER_WARP);
  for (int k = first; k < end; ++k) {
    for (int index = lane; index < s.length * heads; index += 32) {
      const int t = index / heads, head = index % heads;
      float sum = 0.f;
      for (int e = head * s.head_dim; e < (head + 1) * s.head_dim; ++e)
        sum = fmaf(block.d_value[k * block.total4 + e], block.place_value[t * s.total() + e], sum);
      block.slopes[size_t(k) * s.length * heads + index] = sum;
    }
  }
}

// The sums over the tile for the scores and values of places: [length, heads], then [length, total].
template <class Block>
__device__ void sums_of_places(const Sizes& s, const Block& block, int count, int heads, float* d_score) {
  const int total = heads * s.head_dim;
  float* d_value = d_score + s.length * heads;
  for (int index = threadIdx.x; index < s.length * (heads + total); index += THREADS) {
    const int t = index / (heads + total), k = index % (heads + total);
    const int head = k < heads ? k : (k - heads) / s.head_dim;
    float sum = 0.f;
    for (int q = 0; q < count; ++q) {
      const size_t place = (size_t(q) * s.length + t) * heads + head;
      sum = k < heads ? sum + block.slopes[place]
                      : fmaf(block.weights[place], block.d_value[q * block.total4 + k - heads], sum);
    }
    if (k < heads)
      d_score[t * heads + k] = sum;
    else
      d_value[t * total + k - heads] = sum;
  }
}

// The sums over one tile of sequences, into `partial`.
template <class Block>
__device__ void tile_sums(const Member& member, const Block& block, const Sequences& sequences, float* partial) {
  constexpr int QUADS = Block::QUADS;
  const Advance& run = member.run;
  const Sizes& s = run.sizes;
  const Partial at(s, QUADS);
  const int heads = member.heads, warp = threadIdx.x / 32;
  const bool additive = s.positions == Positions::additive;
  const Encoder encoder = encoder_of(s, block, heads);
  Staged<QUADS>& staged = block.staged[warp];

  // A warp keeps to its own sequences from the tokens to the loss and back.
  const Pooled pooled{block.pooled, block.pooled_stride, 1, block.hidden4 + 4};
  for_head_groups(heads, [&](int head, auto group) {
    attend<QUADS, group.value>(sequences, encoder, head, block.weights, pooled, staged);
  });
  __syncwarp();
  values_of_tile(run, block, heads, sequences.count);
  __syncwarp();
  activations_of_tile(run, block, heads);
  __syncwarp();
  losses_of_tile(run, block, member.weights, member.at, sequences);
  __syncwarp();
  readout_gradient(run, block, member.weights, member.at, heads);
  if (additive) slopes_of_places(s, block, sequences, heads);
  __syncthreads();
  readout_sums(run, block, heads, sequences.count, partial);
  __syncthreads();  // `sums` takes the place of `pooled`
  const int numbers = (4 * QUADS + 1 + heads) * s.hidden;
  for_head_groups(heads, [&](int head, auto group) {
    attend_gradient<QUADS, group.value>(sequences, encoder, head, block.weights, additive ? block.slopes : nullptr,
                                        block.slopes, block.d_pooled, block.d_pooled_stride, staged,
                                        block.sums + warp * numbers);
  });
  __syncthreads();
  const int warps = (sequences.count + Block::PER_WARP - 1) / Block::PER_WARP;
  for (int index = threadIdx.x; index < numbers; index += THREADS) {
    float sum = 0.f;
    for (int k = 0; k < warps; ++k) sum += block.sums[k * numbers + index];
    partial[at.rows + index] = sum;
  }
  if (s.positions == Positions::concatenated)
    bias_gradient<QUADS>(sequences, encoder, block.weights, block.slopes, block.d_pooled, block.d_pooled_stride,
                         partial + at.places);
  if (additive) sums_of_places(s, block, sequences.count, heads, partial + at.places);
  __syncthreads();
}

// The norm of a vector, alike in every block.
__device__ inline float norm_of(const float* numbers, int count) {
  __shared__ float part[WARPS];
  float sum = 0.f;
#pragma unroll 8
  for (int index = threadIdx.x; index < count; index += THREADS) sum = fmaf(numbers[index], numbers[index], sum);
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.f;
  for (int k = 0; k < WARPS; ++k) sum += part[k];
  __syncthreads();
  return sqrtf(sum);
}

// optax.clip_by_global_norm, scale_by_adam, and a decoupled decay. Other blocks of the team wrote to `gradient` in this
// launch: it is not __restrict__, which would let it be read through a cache that does not see that.
__device__ __noinline__ void update(const Advance& run, int member, int count, int steps_taken, float rate,
                                    const float* gradient, int thread, int threads) {
  __shared__ float corrections[2];
  if (threadIdx.x == 0) {
    corrections[0] = -expm1f(steps_taken * logf(FIRST_MOMENT_DECAY));  // 1 - decay^steps
    corrections[1] = -expm1f(steps_taken * logf(run.second_moment_decay));
  }
  const float norm = norm_of(gradient, count);
  const bool small = norm < run.clip;
  const float first = 1.f / corrections[0], second = 1.f / corrections[1], decay = run.second_moment_decay;
  const size_t place = size_t(member) * count;
  float* means = run.mean + place;
  float* squares = run.square + place;
  float* weights = run.weights + place;
  constexpr int TOGETHER = 4;  // all are read before any is written: a thread waits for memory once for all of them
  for (int start = thread; start < count; start += TOGETHER * threads) {
    float g[TOGETHER], mean[TOGETHER], square[TOGETHER], weight[TOGETHER];
#pragma unroll
    for (int k = 0; k < TOGETHER; ++k) {
      const int index = start + k * threads;
      if (index >= count) continue;
      g[k] = gradient[index], mean[k] = means[index];
      square[k] = squares[index], weight[k] = weights[index];
    }
#pragma unroll
    for (int k = 0; k < TOGETHER; ++k) {
      const int index = start + k * threads;
      if (index >= count) break;
      const float clipped = small ? g[k] : g[k] / norm * run.clip;
      mean[k] = FIRST_MOMENT_REST * clipped + FIRST_MOMENT_DECAY * mean[k];
      square[k] = run.second_moment_rest * clipped * clipped + decay * square[k];
      means[index] = mean[k];
      squares[index] = square[k];
      const float change = mean[k] * first / (sqrtf(square[k] * second) + ADAM_EPSILON);
      weights[index] = (1.f - rate * run.weight_decay) * weight[k] - rate * change;
    }
  }
}

// Which examples a tile has, where every lane finds them quickly.
__device__ inline Sequences sequences_of(const Advance& run, int tile, int per_warp, const int32_t* batch) {
  __shared__ int32_t chosen[WARPS * MOST_PER_WARP];
  const int size = WARPS * per_warp, first = tile * size, count = min(size, run.batch - first);
  if (threadIdx.x < count) chosen[threadIdx.x] = batch[first + threadIdx.x];
  __syncthreads();
  return {run.tokens, chosen, 0, count, per_warp, run.sizes.length, run.sizes.dim, run.masks != 0};
}

template <class Block>
__device__ void advance_member(const Advance& run, const Block& block, Team& team, int member_index, float* partials,
                               float* gradient) {
  const Sizes& s = run.sizes;
  const Member member(run, member_index);
  const Partial at(s, Block::QUADS);
  const int thread = team.rank * THREADS + threadIdx.x, threads = team.size * THREADS;
  const int steps = *run.count, taken = run.step[member_index];
  float error = 0.f;
  for (int index = thread; index < member.at.size; index += threads) gradient[index] = 0.f;
  for (int step = 0; step < steps && member.heads; ++step) {
    fold(member, block);
    __syncthreads();
    const size_t turn = size_t(member_index) * run.room + step;
    for (int tile = team.rank; tile < run.tiles; tile += team.size) {
      const Sequences sequences = sequences_of(run, tile, Block::PER_WARP, run.chosen + turn * run.batch);
      tile_sums(member, block, sequences, partials + size_t(tile) * at.size);
    }
    team.wait();
    for (int index = threadIdx.x; index < at.size; index += THREADS) {
      float sum = 0.f;
#pragma unroll 8
      for (int tile = 0; tile < run.tiles; ++tile) sum += partials[size_t(tile) * at.size + index];
      block.gradient[index] = sum;
    }
    __syncthreads();
    error += block.gradient[at.error] / run.batch;
    unfold_scores(member, block);
    unfold(member, block, gradient, thread, threads);
    team.wait();
    update(run, member_index, member.at.size, taken + step + 1, run.rates[turn], gradient, thread, threads);
    team.wait();
  }
  if (thread == 0) run.error[member_index] += error;
}

template <int QUADS, int PER_WARP, bool LARGE>
__device__ void advance_members(const Advance& run) {
  extern __shared__ float4 memory[];
  __shared__ int32_t next;
  const int teams = gridDim.x / run.team;
  const int which = blockIdx.x / run.team;
  float* common = run.scratch + which * run.team_scratch;
  float* own = run.scratch + teams * run.team_scratch + blockIdx.x * run.block_scratch;
  const Block<QUADS, PER_WARP, LARGE> block(run, reinterpret_cast<float*>(memory), own);
  const int32_t partial = Partial(run.sizes, QUADS).size;
  float* gradient = common + size_t(run.tiles) * partial;
  Team team{int(blockIdx.x % run.team), run.team, run.turn + 1 + which};
  for (;;) {
    int member = which;
    if (run.team == 1) {  // who is done takes the next: heads differ, and so does the work
      if (threadIdx.x == 0) next = atomicAdd(run.turn, 1);
      __syncthreads();
      member = next;
      __syncthreads();
    }
    if (member >= run.members) return;
    advance_member(run, block, team, member, common, gradient);
    if (run.team > 1) return;
    __syncthreads();
  }
}

}  // namespace headcount
