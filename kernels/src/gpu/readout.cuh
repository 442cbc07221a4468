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
  const float phi = 0.5f * erfcf(-x * 0.70710678118654752f);
  return make_float2(x * phi, fmaf(x, 0.39894228040143268f * expf(-0.5f * x * x), phi));
}

// v_i = V_i W2 pooled_i + V_i b2, and what the places add.
template <class Block>
__device__ void values_of_tile(const Advance& run, const Block& block, int heads, int count) {
  const Sizes& s = run.sizes;
  const int total = heads * s.head_dim, stride = s.total() + 1, four = padded_heads(s.heads);
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * PER_WARP;
  for (int e = lane; e < total; e += 32) {
    const int head = e / s.head_dim;
    float sum[PER_WARP];
#pragma unroll
    for (int k = 0; k < PER_WARP; ++k) sum[k] = block.value_bias[e];
#pragma unroll 4
    for (int m = 0; m < s.hidden; ++m) {
      const float weight = block.values[m * stride + e];
#pragma unroll
      for (int k = 0; k < PER_WARP; ++k)
        sum[k] = fmaf(weight, block.pooled[(first + k) * block.pooled_stride + m * four + head], sum[k]);
    }
    if (s.positions == Positions::additive) {
      for (int t = 0; t < s.length; ++t) {
        const float added = block.place_value[t * s.total() + e];
#pragma unroll
        for (int k = 0; k < PER_WARP; ++k)
          if (first + k < count) sum[k] = fmaf(added, block.weights[(size_t(first + k) * s.length + t) * heads + head], sum[k]);
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
  const int total = heads * s.head_dim, stride = s.hidden + 1;
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * PER_WARP;
  for (int j = lane; j < s.hidden; j += 32) {
    float sum[PER_WARP];
#pragma unroll
    for (int k = 0; k < PER_WARP; ++k) sum[k] = block.output_bias[j];
#pragma unroll 4
    for (int e = 0; e < total; ++e) {
      const float weight = block.outputs[e * stride + j];
#pragma unroll
      for (int k = 0; k < PER_WARP; ++k) sum[k] = fmaf(weight, block.value[(first + k) * block.total4 + e], sum[k]);
    }
#pragma unroll
    for (int k = 0; k < PER_WARP; ++k) {
      const float2 both = gelu(sum[k]);
      block.activation[(first + k) * s.hidden + j] = both.x;
      block.d_before[(first + k) * s.hidden + j] = both.y;
    }
  }
}

// The answers, their loss, and the gradient of the loss. Sequences beyond the batch get none.
template <class Block>
__device__ void losses_of_tile(const Advance& run, const Block& block, const float* weights, const Layout& at,
                               const Sequences& sequences) {
  const Sizes& s = run.sizes;
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * PER_WARP;
  for (int k = first; k < first + PER_WARP; ++k) {
    const bool inside = k < sequences.count;
    for (int o = 0; o < s.outputs; ++o) {
      float sum = 0.f;
      for (int j = lane; j < s.hidden; j += 32)
        sum = fmaf(weights[at.readout_out_weight + o * s.hidden + j], block.activation[k * s.hidden + j], sum);
      sum = warp_sum(sum);
      if (lane == 0) block.d_answer[k * s.outputs + o] = sum + weights[at.readout_out_bias + o];
    }
    __syncwarp();
    if (lane == 0) {
      float* answer = block.d_answer + k * s.outputs;
      float loss = 0.f;
      const float* target =
          inside ? run.targets + size_t(sequences.chosen[sequences.first + k]) * run.target_width : nullptr;
      if (!inside) {
        for (int o = 0; o < s.outputs; ++o) answer[o] = 0.f;
      } else if (run.objective == Objective::regression) {
        const float scale = 2.f / (float(run.batch) * s.outputs);
        for (int o = 0; o < s.outputs; ++o) {
          const float difference = answer[o] - target[o];
          loss = fmaf(difference, difference, loss);
          answer[o] = scale * difference;
        }
        loss /= s.outputs;
      } else {
        const int label = int(target[0]);
        float largest = -INFINITY, total = 0.f;
        bool right = true;
        for (int o = 0; o < s.outputs; ++o) {
          largest = fmaxf(largest, answer[o]);
          right &= o == label || answer[o] < answer[label];
        }
        right &= !isnan(answer[label]);
        for (int o = 0; o < s.outputs; ++o) total += expf(answer[o] - largest);
        for (int o = 0; o < s.outputs; ++o)
          answer[o] = (expf(answer[o] - largest) / total - (o == label ? 1.f : 0.f)) / run.batch;
        loss = right ? 0.f : 1.f;
      }
      block.loss[k] = loss;
    }
  }
}

// Back to the values and to what was pooled.
template <class Block>
__device__ void readout_gradient(const Advance& run, const Block& block, const float* weights, const Layout& at,
                                 int heads) {
  const Sizes& s = run.sizes;
  const int total = heads * s.head_dim, four = padded_heads(s.heads);
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * PER_WARP;
  for (int j = lane; j < s.hidden; j += 32) {
#pragma unroll
    for (int k = first; k < first + PER_WARP; ++k) {
      float sum = 0.f;
      for (int o = 0; o < s.outputs; ++o)
        sum = fmaf(block.d_answer[k * s.outputs + o], weights[at.readout_out_weight + o * s.hidden + j], sum);
      block.d_before[k * s.hidden + j] *= sum;
    }
  }
  __syncwarp();
  for (int e = lane; e < total; e += 32) {
    float sum[PER_WARP] = {};
#pragma unroll 4
    for (int j = 0; j < s.hidden; ++j) {
      const float weight = block.outputs[e * (s.hidden + 1) + j];
#pragma unroll
      for (int k = 0; k < PER_WARP; ++k) sum[k] = fmaf(weight, block.d_before[(first + k) * s.hidden + j], sum[k]);
    }
#pragma unroll
    for (int k = 0; k < PER_WARP; ++k) block.d_value[(first + k) * block.total4 + e] = sum[k];
  }
  __syncwarp();
  for (int m = lane; m < s.hidden; m += 32) {
    for (int head = 0; head < heads; ++head) {
      float sum[PER_WARP] = {};
      for (int k = 0; k < s.head_dim; ++k) {
        const int e = head * s.head_dim + k;
        const float weight = block.values[m * (s.total() + 1) + e];
#pragma unroll
        for (int q = 0; q < PER_WARP; ++q) sum[q] = fmaf(weight, block.d_value[(first + q) * block.total4 + e], sum[q]);
      }
#pragma unroll
      for (int q = 0; q < PER_WARP; ++q) block.d_pooled[(first + q) * block.pooled_stride + m * four + head] = sum[q];
    }
  }
}

// The sums over the tile of the gradients of the folded readout, into `partial`.
template <class Block>
__device__ void readout_sums(const Advance& run, const Block& block, int heads, int count, float* partial) {
  const Sizes& s = run.sizes;
  const Partial at(s, Block::QUADS);
  const int total = heads * s.head_dim, four = padded_heads(s.heads);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int j = lane; j < s.hidden; j += 32) {
    for (int e = 4 * warp; e < total; e += 4 * WARPS) {  // four coordinates at a time: total4 leaves room
      float sum[4] = {};
      for (int k = 0; k < count; ++k) {
        const float d = block.d_before[k * s.hidden + j];
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
      for (int q = 0; q < 4; ++q) head[q] = min(e + q, total - 1) / s.head_dim;
      for (int k = 0; k < count; ++k) {
        const float4 d = *reinterpret_cast<const float4*>(block.d_value + k * block.total4 + e);
        const float* pooled = block.pooled + k * block.pooled_stride + j * four;
        sum[0] = fmaf(d.x, pooled[head[0]], sum[0]);
        sum[1] = fmaf(d.y, pooled[head[1]], sum[1]);
        sum[2] = fmaf(d.z, pooled[head[2]], sum[2]);
        sum[3] = fmaf(d.w, pooled[head[3]], sum[3]);
      }
#pragma unroll
      for (int q = 0; q < 4; ++q)
        if (e + q < total) partial[at.values + (e + q) * s.hidden + j] = sum[q];
    }
  }
  for (int e = threadIdx.x; e < total; e += THREADS) {
    float sum = 0.f;
    for (int k = 0; k < count; ++k) sum += block.d_value[k * block.total4 + e];
    partial[at.value_bias + e] = sum;
  }
  for (int index = threadIdx.x; index < (s.outputs + 1) * s.hidden; index += THREADS) {
    const int o = index / s.hidden, j = index % s.hidden;  // the last row is that of the first bias
    float sum = 0.f;
    for (int k = 0; k < count; ++k)
      sum = o < s.outputs ? fmaf(block.d_answer[k * s.outputs + o], block.activation[k * s.hidden + j], sum)
                          : sum + block.d_before[k * s.hidden + j];
    partial[(o < s.outputs ? at.last + o * s.hidden : at.output_bias) + j] = sum;
  }
  for (int o = threadIdx.x; o < s.outputs + 1; o += THREADS) {
    float sum = 0.f;
    for (int k = 0; k < count; ++k) sum += o < s.outputs ? block.d_answer[k * s.outputs + o] : block.loss[k];
    partial[o < s.outputs ? at.last_bias + o : at.error] = sum;
  }
}

}  // namespace headcount
