// From the pooled hidden vectors of a tile to its loss, and back to the gradient of what was pooled.
#pragma once
#include "tokens.cuh"

namespace headcount {

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int distance = 16; distance; distance /= 2) x += __shfl_xor_sync(ALL, x, distance);
  return x;
}

// gelu(x) = x Phi(x), and its derivative Phi(x) + x phi(x).
__device__ __forceinline__ float2 gelu(float x) {
  const float phi = 0.5f * erfcf(-x * 0.70710678118654752f);  // not 1 + erf: the tail keeps its digits
  return make_float2(x * phi, fmaf(x, 0.39894228040143268f * expf(-0.5f * x * x), phi));
}

__device__ __forceinline__ float4 four_at(const float* numbers) { return *reinterpret_cast<const float4*>(numbers); }

// Adds to `sum[k]` the product of a column of weights, `stride` apart, with the row of sequence k; rows are read four
// numbers at a time.
template <int ROWS>
__device__ __forceinline__ void add_products(float (&sum)[ROWS], const float* column, int stride, const float* rows,
                                             int row_stride, int count) {
  int k = 0;
  for (; k + 4 <= count; k += 4) {
    const float a = column[k * stride], b = column[(k + 1) * stride];
    const float c = column[(k + 2) * stride], d = column[(k + 3) * stride];
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
      const float4 x = four_at(rows + row * row_stride + k);
      sum[row] = fmaf(d, x.w, fmaf(c, x.z, fmaf(b, x.y, fmaf(a, x.x, sum[row]))));
    }
  }
  for (; k < count; ++k) {
#pragma unroll
    for (int row = 0; row < ROWS; ++row) sum[row] = fmaf(column[k * stride], rows[row * row_stride + k], sum[row]);
  }
}

// v_i = V_i W2 pooled_i + V_i b2, and what the places add.
template <class Block>
__device__ void values_of_tile(const Advance& run, const Block& block, int heads, int count) {
  const Sizes& s = run.sizes;
  const int total = heads * s.head_dim;
  constexpr int PER_WARP = Block::PER_WARP;
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * PER_WARP;
  for (int e = lane; e < total; e += 32) {
    const int head = e / s.head_dim;
    float sum[PER_WARP];
#pragma unroll
    for (int k = 0; k < PER_WARP; ++k) sum[k] = block.value_bias[e];
    const float* pooled = block.pooled + first * block.pooled_stride + head * (block.hidden4 + 4);
    add_products(sum, block.values + e, s.total() + 1, pooled, block.pooled_stride, s.hidden);
    if (s.positions == Positions::additive) {
      for (int t = 0; t < s.length; ++t) {
        const float added = block.place_value[t * s.total() + e];
#pragma unroll
        for (int k = 0; k < PER_WARP; ++k)
          if (first + k < count)
            sum[k] = fmaf(added, block.weights[(size_t(first + k) * s.length + t) * heads + head], sum[k]);
      }
    }
#pragma unroll
    for (int k = 0; k < PER_WARP; ++k) block.value[(first + k) * block.total4 + e] = sum[k];
  }
}

// gelu(W3 c + b3); the derivative of the GELU is left in `d_before`.
template <class Block>
__device__ void activations_of_tile(const Advance& run, const Block& block, int heads) {
  const Sizes& s = run.sizes;
  constexpr int PER_WARP = Block::PER_WARP;
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * PER_WARP;
  for (int j = lane; j < s.hidden; j += 32) {
    float sum[PER_WARP];
#pragma unroll
    for (int k = 0; k < PER_WARP; ++k) sum[k] = block.output_bias[j];
    add_products(sum, block.outputs + j, s.hidden + 1, block.value + first * block.total4, block.total4,
                 heads * s.head_dim);
#pragma unroll
    for (int k = 0; k < PER_WARP; ++k) {
      const float2 both = gelu(sum[k]);
      block.activation[(first + k) * block.hidden4 + j] = both.x;
      block.d_before[(first + k) * block.hidden4 + j] = both.y;
    }
  }
}

// The answers, their loss, and the gradient of the loss. Sequences beyond the batch get none.
template <class Block>
__device__ void losses_of_tile(const Advance& run, const Block& block, const float* weights, const Layout& at,
                               const Sequences& sequences) {
  const Sizes& s = run.sizes;
  constexpr int PER_WARP = Block::PER_WARP;
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * PER_WARP;
  for (int o = 0; o < s.outputs; ++o) {
    float sum[PER_WARP] = {};
    for (int j = lane; j < s.hidden; j += 32) {
      const float weight = weights[at.readout_out_weight + o * s.hidden + j];
#pragma unroll
      for (int k = 0; k < PER_WARP; ++k)
        sum[k] = fmaf(weight, block.activation[(first + k) * block.hidden4 + j], sum[k]);
    }
    const float bias = weights[at.readout_out_bias + o];
#pragma unroll
    for (int k = 0; k < PER_WARP; ++k) {
      sum[k] = warp_sum(sum[k]);
      if (lane == k) block.d_answer[(first + k) * s.outputs + o] = sum[k] + bias;
    }
  }
  if (lane >= PER_WARP) return;  // a lane per sequence
  const int k = first + lane;
  float* answer = block.d_answer + k * s.outputs;
  float loss = 0.f;
  if (k >= sequences.count) {
    for (int o = 0; o < s.outputs; ++o) answer[o] = 0.f;
  } else {
    const float* target = run.targets + size_t(sequences.chosen[sequences.first + k]) * run.target_width;
    if (run.objective == Objective::regression) {
      const float scale = 2.f / (float(run.batch) * s.outputs);
      for (int o = 0; o < s.outputs; ++o) {
        const float difference = answer[o] - target[o];
        loss = fmaf(difference, difference, loss);
        answer[o] = scale * difference;
      }
      loss /= s.outputs;
    } else {
      const int given = int(target[0]);
      const bool known = given >= 0 && given < s.outputs;
      const int label = known ? given : 0;
      float largest = -INFINITY, total = 0.f;
      bool right = !isnan(answer[label]);
      for (int o = 0; o < s.outputs; ++o) {
        largest = fmaxf(largest, answer[o]);
        right &= o == label || answer[o] < answer[label];
      }
      for (int o = 0; o < s.outputs; ++o) total += expf(answer[o] - largest);
      for (int o = 0; o < s.outputs; ++o)
        answer[o] = known ? (expf(answer[o] - largest) / total - (o == label ? 1.f : 0.f)) / run.batch : NAN;
      loss = right && known ? 0.f : 1.f;
    }
  }
  block.loss[k] = loss;
}

// Back to the values and to what was pooled.
template <class Block>
__device__ void readout_gradient(const Advance& run, const Block& block, const float* weights, const Layout& at,
                                 int heads) {
  const Sizes& s = run.sizes;
  const int total = heads * s.head_dim, four = padded_heads(s.heads);
  constexpr int PER_WARP = Block::PER_WARP;
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * PER_WARP;
  for (int j = lane; j < s.hidden; j += 32) {
    float sum[PER_WARP] = {};
    for (int o = 0; o < s.outputs; ++o) {
      const float weight = weights[at.readout_out_weight + o * s.hidden + j];
#pragma unroll
      for (int k = 0; k < PER_WARP; ++k) sum[k] = fmaf(block.d_answer[(first + k) * s.outputs + o], weight, sum[k]);
    }
#pragma unroll
    for (int k = 0; k < PER_WARP; ++k) block.d_before[(first + k) * block.hidden4 + j] *= sum[k];
  }
  __syncwarp();
  for (int e = lane; e < total; e += 32) {
    float sum[PER_WARP] = {};
    add_products(sum, block.outputs + e * (s.hidden + 1), 1, block.d_before + first * block.hidden4, block.hidden4,
                 s.hidden);
#pragma unroll
    for (int k = 0; k < PER_WARP; ++k) block.d_value[(first + k) * block.total4 + e] = sum[k];
  }
  __syncwarp();
  for (int m = lane; m < s.hidden; m += 32) {
    for (int head = 0; head < heads; ++head) {
      float sum[PER_WARP] = {};
      const int e = head * s.head_dim;
      const float* column = block.values + m * (s.total() + 1) + e;
      const float* rows = block.d_value + first * block.total4 + e;
      if (s.head_dim % 4 == 0)
        add_products(sum, column, 1, rows, block.total4, s.head_dim);
      else  // the rows of a head do not begin at four numbers
        for (int k = 0; k < s.head_dim; ++k)
#pragma unroll
          for (int q = 0; q < PER_WARP; ++q) sum[q] = fmaf(column[k], rows[q * block.total4 + k], sum[q]);
#pragma unroll
      for (int q = 0; q < PER_WARP; ++q) block.d_pooled[(first + q) * block.d_pooled_stride + m * four + head] = sum[q];
    }
  }
}

// The sums over the tile of the gradients of the folded readout, into `partial`.
template <class Block>
__device__ __noinline__ void readout_sums(const Advance& run, const Block& block, int heads, int count,
                                          float* partial) {
  const Sizes& s = run.sizes;
  const Partial at(s, Block::QUADS);
  const int total = heads * s.head_dim, head_stride = block.hidden4 + 4;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int j = lane; j < s.hidden; j += 32) {
    for (int e = 4 * warp; e < total; e += 4 * WARPS) {  // four coordinates at a time: total4 leaves room
      float sum[4] = {};
#pragma unroll 4
      for (int k = 0; k < count; ++k) {
        const float d = block.d_before[k * block.hidden4 + j];
        const float4 value = *reinterpret_cast<const float4*>(block.value + k * block.total4 + e);
        sum[0] = fmaf(d, value.x, sum[0]);
        sum[1] = fmaf(d, value.y, sum[1]);
        sum[2] = fmaf(d, value.z, sum[2]);
        sum[3] = fmaf(d, value.w, sum[3]);
      }
#pragma unroll
      for (int q = 0; q < 4; ++q)
        if (e + q < total) partial[at.outputs + (e + q) * s.hidden + j] = sum[q];
    }
    for (int e = 4 * warp; e < total; e += 4 * WARPS) {
      float sum[4] = {};
      int head[4];
#pragma unroll
      for (int q = 0; q < 4; ++q) head[q] = min(e + q, total - 1) / s.head_dim * head_stride;
      const bool one = head[0] == head[3];
#pragma unroll 4
      for (int k = 0; k < count; ++k) {
        const float4 d = *reinterpret_cast<const float4*>(block.d_value + k * block.total4 + e);
        const float* pooled = block.pooled + k * block.pooled_stride + j;
        const float first = pooled[head[0]];
        sum[0] = fmaf(d.x, first, sum[0]);
        sum[1] = fmaf(d.y, one ? first : pooled[head[1]], sum[1]);
        sum[2] = fmaf(d.z, one ? first : pooled[head[2]], sum[2]);
        sum[3] = fmaf(d.w, one ? first : pooled[head[3]], sum[3]);
      }
#pragma unroll
      for (int q = 0; q < 4; ++q)
        if (e + q < total) partial[at.values + (e + q) * s.hidden + j] = sum[q];
    }
  }
  // The rest are sums of columns, of which two may be multiplied: one thread each.
  auto add_column = [&](const float* column, int stride, const float* by, int by_stride, float* place) {
    float sum = 0.f;
#pragma unroll 8
    for (int k = 0; k < count; ++k)
      sum = by ? fmaf(column[k * stride], by[k * by_stride], sum) : sum + column[k * stride];
    *place = sum;
  };
  const int products = s.outputs * s.hidden;
  for (int index = threadIdx.x; index < total + s.hidden + products + s.outputs + 1; index += THREADS) {
    int i = index;
    if (i < total) {
      add_column(block.d_value + i, block.total4, nullptr, 0, partial + at.value_bias + i);
    } else if ((i -= total) < s.hidden) {
      add_column(block.d_before + i, block.hidden4, nullptr, 0, partial + at.output_bias + i);
    } else if ((i -= s.hidden) < products) {
      const int o = i / s.hidden, j = i % s.hidden;
      add_column(block.activation + j, block.hidden4, block.d_answer + o, s.outputs, partial + at.last + i);
    } else if ((i -= products) < s.outputs) {
      add_column(block.d_answer + i, s.outputs, nullptr, 0, partial + at.last_bias + i);
    } else {
      add_column(block.loss, 1, nullptr, 0, partial + at.error);
    }
  }
}

}  // namespace headcount
