// From a member's weights to the folded ones that a batch is computed with, and from the gradients of those back.
//
// Symbols as in models/class_token/folded.py: W2 encoder_out, W3 readout_in, Q, K, V, O the four maps of the attention.
#pragma once
#include "readout.cuh"

namespace headcount {

struct Member {
  const Advance& run;
  const Layout at;
  float* weights;
  int heads, total;  // those it really has

  __device__ Member(const Advance& run, int member)
      : run(run), at(run.sizes), weights(run.weights + size_t(member) * at.size), heads(run.heads[member]),
        total(heads * run.sizes.head_dim) {}

  __device__ int width() const { return run.sizes.total(); }  // of a row of E numbers
  __device__ int group(int head) const { return head % run.sizes.groups; }
  __device__ const float* query(int head, int r) const {
    return weights + at.query + (head * run.sizes.rank + r) * width();
  }
  __device__ const float* key(int head, int r) const {
    return weights + at.key + (group(head) * run.sizes.rank + r) * width();
  }
  __device__ const float* value(int e) const {
    const int n = run.sizes.head_dim;
    return weights + at.value + (group(e / n) * n + e % n) * width();
  }
  __device__ const float* encoder_out(int e) const { return weights + at.encoder_out_weight + e * run.sizes.hidden; }
  __device__ const float* readout_in(int j) const { return weights + at.readout_in_weight + j * width(); }
  __device__ const float* place(int t) const { return weights + at.position_table + t * run.sizes.code; }
  __device__ float output(int e, int column) const { return weights[at.output + e * width() + column]; }
};

// <a, b> by a warp, the same in all its lanes.
__device__ __forceinline__ float warp_dot(const float* a, const float* b, int count) {
  float sum = 0.f;
  for (int k = threadIdx.x % 32; k < count; k += 32) sum = fmaf(a[k], b[k], sum);
  return warp_sum(sum);
}

template <class Block>
__device__ __noinline__ void fold(const Member& member, const Block& block) {
  const Sizes& s = member.run.sizes;
  const float* w = member.weights;
  const Layout& at = member.at;
  const int total = member.total, heads = member.heads, hidden = s.hidden, four = padded_heads(s.heads);
  const int quads = Block::QUADS;
  float* rows = reinterpret_cast<float*>(block.rows);
  for (int index = threadIdx.x; index < hidden * 4 * quads; index += THREADS) {
    const int j = index / (4 * quads), k = index % (4 * quads);
    rows[index] = k < s.dim ? w[at.encoder_in_weight + j * s.read() + k] : 0.f;
  }
  for (int j = threadIdx.x; j < hidden; j += THREADS) block.bias[j] = w[at.encoder_in_bias + j];
  const int warp = threadIdx.x / 32;
  const bool first_lane = threadIdx.x % 32 == 0;
#pragma unroll 4
  for (int j = warp; j < hidden; j += WARPS) {
    const float sum = warp_dot(member.readout_in(j), w + at.class_token, total);
    if (first_lane) block.output_bias[j] = w[at.readout_in_bias + j] + sum;
  }
  if (s.positions == Positions::concatenated) {
    for (int index = threadIdx.x; index < s.length * hidden; index += THREADS) {
      const int t = index / hidden, j = index % hidden;
      float sum = w[at.encoder_in_bias + j];
      for (int c = 0; c < s.code; ++c)
        sum = fmaf(member.place(t)[c], w[at.encoder_in_weight + j * s.read() + s.dim + c], sum);
      block.place_bias[index] = sum;
    }
  }
#pragma unroll 4
  for (int index = warp; index < heads * s.rank; index += WARPS) {
    const float sum = warp_dot(member.query(index / s.rank, index % s.rank), w + at.class_token, total);
    if (first_lane) block.queries[index] = sum;
  }
  // (V_i W2)^T and V_i b2
  for (int index = threadIdx.x; index < hidden * ((total + 3) / 4); index += THREADS) {
    const int m = index % hidden, first = index / hidden * 4;
    const float* row[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) row[q] = member.value(min(first + q, total - 1));
    float sum[4] = {};
#pragma unroll 8
    for (int e = 0; e < total; ++e) {
      const float weight = member.encoder_out(e)[m];
#pragma unroll
      for (int q = 0; q < 4; ++q) sum[q] = fmaf(row[q][e], weight, sum[q]);
    }
#pragma unroll
    for (int q = 0; q < 4; ++q)
      if (first + q < total) block.values[m * (s.total() + 1) + first + q] = sum[q];
  }
#pragma unroll 4
  for (int e = warp; e < total; e += WARPS) {
    const float sum = warp_dot(member.value(e), w + at.encoder_out_bias, total);
    if (first_lane) block.value_bias[e] = sum;
  }
  // (W3 O)^T
  for (int index = threadIdx.x; index < total * ((hidden + 3) / 4); index += THREADS) {
    const int column = index % total, first = index / total * 4;
    const float* row[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) row[q] = member.readout_in(min(first + q, hidden - 1));
    float sum[4] = {};
#pragma unroll 8
    for (int e = 0; e < total; ++e) {
      const float weight = member.output(e, column);
#pragma unroll
      for (int q = 0; q < 4; ++q) sum[q] = fmaf(row[q][e], weight, sum[q]);
    }
#pragma unroll
    for (int q = 0; q < 4; ++q)
      if (first + q < hidden) block.outputs[column * (hidden + 1) + first + q] = sum[q];
  }
  __syncthreads();
  for (int index = threadIdx.x; index < heads * total; index += THREADS) {
    const int head = index / total, e = index % total;
    float sum = 0.f;
#pragma unroll 8
    for (int r = 0; r < s.rank; ++r) sum = fmaf(block.queries[head * s.rank + r], member.key(head, r)[e], sum);
    block.towards[head * s.total() + e] = member.run.beta * sum;
  }
  __syncthreads();
  for (int index = threadIdx.x; index < four * hidden; index += THREADS) {
    const int head = index / hidden, m = index % hidden;
    float sum = 0.f;
    if (head < heads)
#pragma unroll 8
      for (int e = 0; e < total; ++e) sum = fmaf(block.towards[head * s.total() + e], member.encoder_out(e)[m], sum);
    block.direction[m * four + head] = sum;
  }
  if (s.positions == Positions::additive) {
    for (int index = threadIdx.x; index < s.length * (heads + total); index += THREADS) {
      const int t = index / (heads + total), k = index % (heads + total);
      const float* with = k < heads ? block.towards + k * s.total() : member.value(k - heads);
      float sum = 0.f;
      for (int e = 0; e < total; ++e) sum = fmaf(with[e], member.place(t)[e], sum);
      if (k < heads)
        block.place_score[t * heads + k] = sum;
      else
        block.place_value[t * s.total() + k - heads] = sum;
    }
  }
}

// What the gradients of keys, queries and class token have in common; ends with all threads of the block in step.
template <class Block>
__device__ __noinline__ void unfold_scores(const Member& member, const Block& block) {
  const Sizes& s = member.run.sizes;
  const Partial sum_of(s, Block::QUADS);
  const int total = member.total, heads = member.heads, hidden = s.hidden;
  const float* d_direction = block.gradient + sum_of.direction;
  // The second layer of the encoder, transposed: lanes walk along E.
  float* turned = block.turned;
  for (int index = threadIdx.x; index < hidden * total; index += THREADS) {
    const int e = index / hidden, m = index % hidden;
    turned[m * (s.total() + 1) + e] = member.encoder_out(e)[m];
  }
  __syncthreads();
  for (int index = threadIdx.x; index < heads * total; index += THREADS) {
    const int head = index / total, e = index % total;
    float sum = 0.f;
#pragma unroll 8
    for (int m = 0; m < hidden; ++m) sum = fmaf(turned[m * (s.total() + 1) + e], d_direction[head * hidden + m], sum);
    if (s.positions == Positions::additive)
      for (int t = 0; t < s.length; ++t)
        sum = fmaf(block.gradient[sum_of.places + t * heads + head], member.place(t)[e], sum);
    block.d_towards[head * s.total() + e] = sum;
  }
  __syncthreads();
  for (int index = threadIdx.x / 32; index < heads * s.rank; index += WARPS) {
    const int head = index / s.rank, r = index % s.rank;
    const float sum = warp_dot(member.key(head, r), block.d_towards + head * s.total(), total);
    if (threadIdx.x % 32 == 0) block.d_queries[index] = member.run.beta * sum;
  }
  __syncthreads();
}

// The gradient of every weight from the sums over the batch. A team's blocks share the elements; of each array a thread
// takes every `threads`-th, so that whoever computes an element computes it alike.
template <class Block>
__device__ __noinline__ void unfold(const Member& member, const Block& block, float* gradient, int thread,
                                    int threads) {
  const Sizes& s = member.run.sizes;
  const Layout& at = member.at;
  const Partial sum_of(s, Block::QUADS);
  const float* w = member.weights;
  const float* g = block.gradient;
  const float* turned = block.turned;
  const int total = member.total, heads = member.heads, hidden = s.hidden, n = s.head_dim, wide = s.total();
  const float beta = member.run.beta;
  const bool concatenated = s.positions == Positions::concatenated, additive = s.positions == Positions::additive;
  const float* d_place_bias = g + sum_of.places;                      // [length, hidden]
  const float* d_place_score = g + sum_of.places;                     // [length, heads]
  const float* d_place_value = g + sum_of.places + s.length * heads;  // [length, total]

  for (int index = thread; index < hidden * s.read(); index += threads) {
    const int j = index / s.read(), k = index % s.read();
    float sum = 0.f;
    if (k < s.dim)
      sum = g[sum_of.rows + k * hidden + j];
    else
      for (int t = 0; t < s.length; ++t) sum = fmaf(d_place_bias[t * hidden + j], member.place(t)[k - s.dim], sum);
    gradient[at.encoder_in_weight + index] = sum;
  }
  for (int j = thread; j < hidden; j += threads) {
    float sum = 0.f;
    if (concatenated)
      for (int t = 0; t < s.length; ++t) sum += d_place_bias[t * hidden + j];
    else
      sum = g[sum_of.bias + j];
    gradient[at.encoder_in_bias + j] = sum;
    gradient[at.readout_in_bias + j] = g[sum_of.output_bias + j];
  }
  // W2: through the values, and through the scores.
  for (int index = thread; index < hidden * ((total + 3) / 4); index += threads) {
    const int m = index % hidden, first = index / hidden * 4;
    float sum[4] = {};
    const int last = min(3, total - 1 - first);
    for (int head = 0; head < heads; ++head) {
      const float* row = member.value(head * n) + first;
      const float* slope = g + sum_of.values + head * n * hidden + m;
#pragma unroll 8
      for (int k = 0; k < n; ++k, row += wide, slope += hidden) {
#pragma unroll
        for (int q = 0; q < 4; ++q) sum[q] = fmaf(row[min(q, last)], *slope, sum[q]);
      }
      const float d = g[sum_of.direction + head * hidden + m];
#pragma unroll
      for (int q = 0; q < 4; ++q)
        sum[q] = fmaf(block.towards[head * wide + min(first + q, total - 1)], d, sum[q]);
    }
#pragma unroll
    for (int q = 0; q < 4; ++q)
      if (first + q < total) gradient[at.encoder_out_weight + (first + q) * hidden + m] = sum[q];
  }
  for (int index = thread; index < 2 * total; index += threads) {
    const int e = index % total;
    float sum = 0.f;
    if (index < total) {
      for (int head = 0; head < heads; ++head) {
        const float* row = member.value(head * n) + e;
#pragma unroll 8
        for (int k = 0; k < n; ++k) sum = fmaf(row[k * wide], g[sum_of.value_bias + head * n + k], sum);
      }
    } else {
#pragma unroll 8
      for (int j = 0; j < hidden; ++j) sum = fmaf(member.readout_in(j)[e], g[sum_of.output_bias + j], sum);
      const float* query = w + at.query + e;
#pragma unroll 8
      for (int k = 0; k < heads * s.rank; ++k) sum = fmaf(block.d_queries[k], query[k * wide], sum);
    }
    gradient[(index < total ? at.encoder_out_bias : at.class_token) + e] = sum;
  }
  for (int index = thread; index < s.length * s.code; index += threads) {
    const int t = index / s.code, c = index % s.code;
    float sum = 0.f;
    if (concatenated)
      for (int j = 0; j < hidden; ++j)
        sum = fmaf(d_place_bias[t * hidden + j], w[at.encoder_in_weight + j * s.read() + s.dim + c], sum);
    if (additive && c < total) {
      for (int head = 0; head < heads; ++head)
        sum = fmaf(d_place_score[t * heads + head], block.towards[head * wide + c], sum);
      for (int column = 0; column < total; ++column)
        sum = fmaf(d_place_value[t * total + column], member.value(column)[c], sum);
    }
    gradient[at.position_table + index] = sum;
  }
  for (int index = thread; index < heads * s.rank * total; index += threads) {
    const int e = index % total, k = index / total;
    gradient[at.query + k * wide + e] = block.d_queries[k] * w[at.class_token + e];
  }
  const int groups = min(s.groups, heads);  // where every head has its own, padding heads have theirs
  for (int index = thread; index < groups * s.rank * total; index += threads) {
    const int e = index % total, r = index / total % s.rank, group = index / total / s.rank;
    float sum = 0.f;
    for (int head = group; head < heads; head += s.groups)
      sum = fmaf(block.queries[head * s.rank + r], block.d_towards[head * wide + e], sum);
    gradient[at.key + (group * s.rank + r) * wide + e] = beta * sum;
  }
  for (int index = thread; index < groups * n * total; index += threads) {
    const int e = index % total, k = index / total % n, group = index / total / n;
    float sum = 0.f;
    for (int head = group; head < heads; head += s.groups) {
      const int column = head * n + k;
#pragma unroll 8
      for (int m = 0; m < hidden; ++m)
        sum = fmaf(g[sum_of.values + column * hidden + m], turned[m * (wide + 1) + e], sum);
      sum = fmaf(g[sum_of.value_bias + column], w[at.encoder_out_bias + e], sum);
      if (additive)
        for (int t = 0; t < s.length; ++t) sum = fmaf(d_place_value[t * total + column], member.place(t)[e], sum);
    }
    gradient[at.value + (group * n + k) * wide + e] = sum;
  }
  for (int index = thread; index < total * ((total + 3) / 4); index += threads) {
    const int e = index % total, first = index / total * 4;
    float sum[4] = {};
#pragma unroll 8
    for (int j = 0; j < hidden; ++j) {
      const float weight = member.readout_in(j)[e];
#pragma unroll
      for (int q = 0; q < 4; ++q)
        sum[q] = fmaf(g[sum_of.outputs + min(first + q, total - 1) * hidden + j], weight, sum[q]);
    }
#pragma unroll
    for (int q = 0; q < 4; ++q)
      if (first + q < total) gradient[at.output + e * wide + first + q] = sum[q];
  }
  for (int index = thread; index < hidden * total; index += threads) {
    const int j = index % hidden, e = index / hidden;
    float sum = g[sum_of.output_bias + j] * w[at.class_token + e];
#pragma unroll 8
    for (int column = 0; column < total; ++column)
      sum = fmaf(g[sum_of.outputs + column * hidden + j], member.output(e, column), sum);
    gradient[at.readout_in_weight + j * wide + e] = sum;
  }
  for (int index = thread; index < s.outputs * hidden; index += threads)
    gradient[at.readout_out_weight + index] = g[sum_of.last + index];
  for (int o = thread; o < s.outputs; o += threads) gradient[at.readout_out_bias + o] = g[sum_of.last_bias + o];
}

}  // namespace headcount
