// Pooling the tokens of one tile of sequences under single-query attention. One warp takes a few sequences at a time;
// nothing of a token but its scores is written to memory.
//
// Two ways of sharing the work among the 32 lanes of a warp take turns. A lane is a *token* where a number per token
// and head is summed over the hidden units (scores, and their gradients), so that no sum crosses lanes. A lane is a
// *hidden unit* where sums run over tokens (pooling, and the gradients of weights): they stay in its registers.
#pragma once
#include <type_traits>

#include "arrays.h"

namespace headcount {

constexpr unsigned ALL = 0xffffffffu;

// The sequences of a tile: examples that were chosen, or `first`, `first` + 1, ...
struct Sequences {
  const float* tokens;
  const int32_t* chosen;
  int32_t first, count, per_warp, length, dim;
  bool masks;

  __device__ const float* at(int s) const {
    const size_t which = chosen ? chosen[first + s] : first + s;
    return tokens + which * length * dim;
  }
};

// What a token passes through: r = relu(rows x + bias), and a score direction . r + offset for each head.
struct Encoder {
  const float4* rows;      // [hidden, QUADS] in shared memory, filled up with zeros
  const float* bias;       // [hidden], or [length, hidden]
  const float* direction;  // [hidden, padded_heads] in shared memory
  const float* offset;     // [length, heads] or null
  int32_t hidden, heads, padded_heads;
  int32_t bias_stride;     // 0, or hidden where every place has a bias of its own
};

// An array of a number per sequence, hidden unit and head.
struct Pooled {
  float* numbers;
  int32_t sequence_stride, unit_stride, head_stride;
  __device__ float& at(int s, int unit, int head) const {
    return numbers[s * sequence_stride + unit * unit_stride + head * head_stride];
  }
};

// How a warp's 32 lanes are spread over sequences: each takes a power of two of lanes, at most 32 tokens at a time.
struct Spread {
  int lanes, together, sub, first;

  __device__ Spread(int length, int per_warp, int lane) {
    lanes = 1;
    while (lanes < length && lanes < 32) lanes *= 2;
    together = min(32 / lanes, per_warp);
    sub = lane / lanes;
    first = lane % lanes;
  }
  template <class Combine>
  __device__ float reduced(float x, Combine combine) const {
    for (int distance = lanes / 2; distance; distance /= 2) x = combine(x, __shfl_xor_sync(ALL, x, distance));
    return x;
  }
};

template <int QUADS>
__device__ __forceinline__ float dot(const float4 (&a)[QUADS], const float4* b, float sum) {
#pragma unroll
  for (int q = 0; q < QUADS; ++q) {
    const float4 w = b[q];
    sum = fmaf(a[q].x, w.x, sum);
    sum = fmaf(a[q].y, w.y, sum);
    sum = fmaf(a[q].z, w.z, sum);
    sum = fmaf(a[q].w, w.w, sum);
  }
  return sum;
}

// Not fmaxf: NaN must stay NaN, so that a model that diverged is seen to.
__device__ __forceinline__ float relu(float x) {
  float larger;
  asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(larger) : "f"(x));
  return larger;
}

// The numbers of one token, filled up with zeros; false where it is absent.
template <int QUADS>
__device__ __forceinline__ bool read_token(const Sequences& sequences, int s, int t, float4 (&token)[QUADS]) {
  const float* numbers = sequences.at(s) + size_t(t) * sequences.dim;
  if (sequences.dim == 4 * QUADS) {
#pragma unroll
    for (int q = 0; q < QUADS; ++q) token[q] = reinterpret_cast<const float4*>(numbers)[q];
  } else {
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
      const int left = sequences.dim - 4 * q;
      token[q].x = left > 0 ? numbers[4 * q] : 0.f;
      token[q].y = left > 1 ? numbers[4 * q + 1] : 0.f;
      token[q].z = left > 2 ? numbers[4 * q + 2] : 0.f;
      token[q].w = left > 3 ? numbers[4 * q + 3] : 0.f;
    }
  }
  if (!sequences.masks) return true;
  bool present = false;
  for (int k = 0; k < sequences.dim; ++k) present |= !isnan(numbers[k]);
  if (!present) {
#pragma unroll
    for (int q = 0; q < QUADS; ++q) token[q] = make_float4(0.f, 0.f, 0.f, 0.f);
  }
  return present;
}

template <int GROUP>
__device__ __forceinline__ void read_heads(const float* numbers, float (&out)[GROUP]) {
  if constexpr (GROUP == 4) {
    const float4 four = *reinterpret_cast<const float4*>(numbers);
    out[0] = four.x, out[1] = four.y, out[2] = four.z, out[3] = four.w;
  } else {
#pragma unroll
    for (int i = 0; i < GROUP; ++i) out[i] = numbers[i];
  }
}

// The attention weights and the pooled hidden vectors of a warp's sequences, for heads `head` to `head` + GROUP.
template <int QUADS, int GROUP>
__device__ void attend(const Sequences& sequences, const Encoder& encoder, int head, float* weights, Pooled pooled,
                       Staged<QUADS>& staged) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int length = sequences.length, heads = encoder.heads, present = min(GROUP, heads - head);
  const Spread spread(length, sequences.per_warp, lane);
  const int end = min(sequences.count, (warp + 1) * sequences.per_warp);
  for (int block = warp * sequences.per_warp; block < end; block += spread.together) {
    const int s = block + spread.sub;
    const bool mine = spread.sub < spread.together && s < end;
    float* own = weights + size_t(s) * length * heads + head;
    float largest[GROUP], total[GROUP];
#pragma unroll
    for (int i = 0; i < GROUP; ++i) largest[i] = -INFINITY, total[i] = 0.f;
    for (int t = spread.first; mine && t < length; t += 32) {
      float4 token[QUADS];
      const bool there = read_token<QUADS>(sequences, s, t, token);
      float score[GROUP];
#pragma unroll
      for (int i = 0; i < GROUP; ++i)
        score[i] = encoder.offset && i < present ? encoder.offset[t * heads + head + i] : 0.f;
      const float* bias = encoder.bias + t * encoder.bias_stride;
#pragma unroll 8
      for (int j = 0; j < encoder.hidden; ++j) {
        const float r = relu(dot<QUADS>(token, encoder.rows + j * QUADS, bias[j]));
        float direction[GROUP];
        read_heads<GROUP>(encoder.direction + j * encoder.padded_heads + head, direction);
#pragma unroll
        for (int i = 0; i < GROUP; ++i) score[i] = fmaf(direction[i], r, score[i]);
      }
#pragma unroll
      for (int i = 0; i < GROUP; ++i) {
        if (!there) score[i] = -INFINITY;
        if (i < present) own[t * heads + i] = score[i];
        largest[i] = fmaxf(largest[i], score[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < GROUP; ++i)
      largest[i] = spread.reduced(largest[i], [](float a, float b) { return fmaxf(a, b); });
    for (int t = spread.first; mine && t < length; t += 32) {
#pragma unroll
      for (int i = 0; i < GROUP; ++i) {
        if (i >= present) continue;
        const float share = expf(own[t * heads + i] - largest[i]);
        own[t * heads + i] = share;
        total[i] += share;
      }
    }
#pragma unroll
    for (int i = 0; i < GROUP; ++i) total[i] = spread.reduced(total[i], [](float a, float b) { return a + b; });

    for (int start = 0; start < length; start += 32) {
      const int t = start + spread.first;
      __syncwarp();
      if (mine && t < length) {
        float4 token[QUADS];
        read_token<QUADS>(sequences, s, t, token);
#pragma unroll
        for (int q = 0; q < QUADS; ++q) staged.token[lane][q] = token[q];
#pragma unroll
        for (int i = 0; i < GROUP; ++i) {
          const float weight = i < present ? own[t * heads + i] / total[i] : 0.f;
          if (i < present) own[t * heads + i] = weight;
          staged.weight[lane][i] = weight;
        }
      }
      __syncwarp();
      const int tokens = min(spread.lanes, length - start);
      for (int unit = lane; unit < encoder.hidden; unit += 32) {
        float4 row[QUADS];
#pragma unroll
        for (int q = 0; q < QUADS; ++q) row[q] = encoder.rows[unit * QUADS + q];
        const float constant = encoder.bias[unit];
        for (int sub = 0; sub < spread.together && block + sub < end; ++sub) {
          float sum[GROUP];
#pragma unroll
          for (int i = 0; i < GROUP; ++i) sum[i] = 0.f;
#pragma unroll 8
          for (int k = 0; k < tokens; ++k) {
            const int slot = sub * spread.lanes + k;
            const float bias =
                encoder.bias_stride ? encoder.bias[(start + k) * encoder.bias_stride + unit] : constant;
            const float r = relu(dot<QUADS>(row, staged.token[slot], bias));
            float weight[GROUP];
            read_heads<GROUP>(staged.weight[slot], weight);
#pragma unroll
            for (int i = 0; i < GROUP; ++i) sum[i] = fmaf(weight[i], r, sum[i]);
          }
#pragma unroll
          for (int i = 0; i < GROUP; ++i) {
            if (i >= present) continue;
            float& place = pooled.at(block + sub, unit, head + i);
            place = start ? place + sum[i] : sum[i];
          }
        }
      }
    }
  }
}

// Heads four at a time, and a last group of one, two or four.
template <class Each>
__device__ __forceinline__ void for_head_groups(int heads, Each each) {
  int head = 0;
  for (; heads - head >= 3; head += 4) each(head, std::integral_constant<int, 4>());
  if (heads - head == 2) each(head, std::integral_constant<int, 2>());
  if (heads - head == 1) each(head, std::integral_constant<int, 1>());
}

}  // namespace headcount
