// The gradient of pooling the tokens of one tile of sequences. Lanes are shared as in tokens.cuh.
#pragma once
#include "tokens.cuh"

namespace headcount {

// Sums over a warp's sequences of the gradients of rows and bias, and of a group of directions. `slopes` receives the
// gradient of every score; `extra`, where given, is the gradient of the weights themselves.
//
// `sums` is the warp's own [4 QUADS + 1 + heads, hidden]: rows, bias, directions.
template <int QUADS, int GROUP>
__device__ void attend_gradient(const Sequences& sequences, const Encoder& encoder, int head, const float* weights,
                                const float* extra, float* slopes, const float* d_pooled, int sequence_stride,
                                Staged<QUADS>& staged, float* sums) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int length = sequences.length, heads = encoder.heads, present = min(GROUP, heads - head);
  const int padded = encoder.padded_heads, hidden = encoder.hidden;
  const Spread spread(length, sequences.per_warp, lane);
  const int first = warp * sequences.per_warp, end = min(sequences.count, (warp + 1) * sequences.per_warp);

  for (int block = first; block < end; block += spread.together) {
    const int s = block + spread.sub;
    const bool mine = spread.sub < spread.together && s < end;
    const size_t place = size_t(s) * length * heads + head;
    float mean[GROUP];
#pragma unroll
    for (int i = 0; i < GROUP; ++i) mean[i] = 0.f;
    for (int t = spread.first; mine && t < length; t += 32) {
      float4 token[QUADS];
      read_token<QUADS>(sequences, s, t, token);
      float change[GROUP];
#pragma unroll
      for (int i = 0; i < GROUP; ++i) change[i] = extra && i < present ? extra[place + t * heads + i] : 0.f;
      const float* bias = encoder.bias + t * encoder.bias_stride;
      const float* wanted = d_pooled + s * sequence_stride + head;
#pragma unroll 8
      for (int j = 0; j < hidden; ++j) {
        const float r = relu(dot<QUADS>(token, encoder.rows + j * QUADS, bias[j]));
        float d[GROUP];
        read_heads<GROUP>(wanted + j * padded, d);
#pragma unroll
        for (int i = 0; i < GROUP; ++i) change[i] = fmaf(d[i], r, change[i]);
      }
#pragma unroll
      for (int i = 0; i < GROUP; ++i) {
        if (i >= present) continue;
        slopes[place + t * heads + i] = change[i];
        // An absent token has weight 0 and no say, whatever its gradient.
        mean[i] = fmaf(weights[place + t * heads + i], change[i], mean[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < GROUP; ++i) mean[i] = spread.reduced(mean[i], [](float a, float b) { return a + b; });
    for (int t = spread.first; mine && t < length; t += 32) {
#pragma unroll
      for (int i = 0; i < GROUP; ++i) {
        if (i >= present) continue;
        const size_t at = place + t * heads + i;
        slopes[at] = weights[at] * (slopes[at] - mean[i]);
      }
    }
  }

  for (int chunk = 0; chunk < hidden; chunk += 32) {
    const int unit = chunk + lane;
    const bool inside = unit < hidden;
    float4 row[QUADS], d_row[QUADS];
    float direction[GROUP], d_direction[GROUP], d_bias = 0.f;
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
      row[q] = inside ? encoder.rows[unit * QUADS + q] : make_float4(0.f, 0.f, 0.f, 0.f);
      d_row[q] = make_float4(0.f, 0.f, 0.f, 0.f);
    }
    const float constant = inside ? encoder.bias[unit] : 0.f;
#pragma unroll
    for (int i = 0; i < GROUP; ++i) {
      direction[i] = inside ? encoder.direction[unit * padded + head + i] : 0.f;
      d_direction[i] = 0.f;
    }
    for (int block = first; block < end; block += spread.together) {
      const int s = block + spread.sub;
      const bool mine = spread.sub < spread.together && s < end;
      const size_t place = size_t(s) * length * heads + head;
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
            staged.weight[lane][i] = i < present ? weights[place + t * heads + i] : 0.f;
            staged.slope[lane][i] = i < present ? slopes[place + t * heads + i] : 0.f;
          }
        }
        __syncwarp();
        const int tokens = min(spread.lanes, length - start);
        for (int sub = 0; sub < spread.together && block + sub < end; ++sub) {
          float d[GROUP];
#pragma unroll
          for (int i = 0; i < GROUP; ++i)
            d[i] = inside && i < present ? d_pooled[(block + sub) * sequence_stride + unit * padded + head + i] : 0.f;
#pragma unroll 8
          for (int k = 0; k < tokens; ++k) {
            const int slot = sub * spread.lanes + k;
            const float bias =
                encoder.bias_stride && inside ? encoder.bias[(start + k) * encoder.bias_stride + unit] : constant;
            float4 token[QUADS];
#pragma unroll
            for (int q = 0; q < QUADS; ++q) token[q] = staged.token[slot][q];
            const float r = relu(dot<QUADS>(row, token, bias));
            float weight[GROUP], slope[GROUP];
            read_heads<GROUP>(staged.weight[slot], weight);
            read_heads<GROUP>(staged.slope[slot], slope);
            float change = 0.f;
#pragma unroll
            for (int i = 0; i < GROUP; ++i) {
              change = fmaf(weight[i], d[i], change);
              change = fmaf(slope[i], direction[i], change);
              d_direction[i] = fmaf(slope[i], r, d_direction[i]);
            }
            change = r > 0.f ? change : 0.f;
            d_bias += change;
#pragma unroll
            for (int q = 0; q < QUADS; ++q) {
              d_row[q].x = fmaf(change, token[q].x, d_row[q].x);
              d_row[q].y = fmaf(change, token[q].y, d_row[q].y);
              d_row[q].z = fmaf(change, token[q].z, d_row[q].z);
              d_row[q].w = fmaf(change, token[q].w, d_row[q].w);
            }
          }
        }
      }
    }
    if (!inside) continue;
    // The gradients of rows and bias are sums over heads, too: later groups add to the first.
    auto put = [&](int k, float x) {
      float& place = sums[k * hidden + unit];
      place = head ? place + x : x;
    };
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
      put(4 * q, d_row[q].x);
      put(4 * q + 1, d_row[q].y);
      put(4 * q + 2, d_row[q].z);
      put(4 * q + 3, d_row[q].w);
    }
    put(4 * QUADS, d_bias);
#pragma unroll
    for (int i = 0; i < GROUP; ++i)
      if (i < present) sums[(4 * QUADS + 1 + head + i) * hidden + unit] = d_direction[i];
  }
}

// The gradient of a bias for every place, summed over the tile: [length, hidden].
template <int QUADS>
__device__ void bias_gradient(const Sequences& sequences, const Encoder& encoder, const float* weights,
                              const float* slopes, const float* d_pooled, int sequence_stride, float* d_bias) {
  const int heads = encoder.heads, hidden = encoder.hidden;
  for (int index = threadIdx.x; index < sequences.length * hidden; index += blockDim.x) {
    const int t = index / hidden, unit = index % hidden;
    float4 row[QUADS];
#pragma unroll
    for (int q = 0; q < QUADS; ++q) row[q] = encoder.rows[unit * QUADS + q];
    float sum = 0.f;
    for (int s = 0; s < sequences.count; ++s) {
      float4 token[QUADS];
      read_token<QUADS>(sequences, s, t, token);
      if (!(dot<QUADS>(row, token, encoder.bias[t * encoder.bias_stride + unit]) > 0.f)) continue;
      const size_t place = (size_t(s) * sequences.length + t) * heads;
      for (int i = 0; i < heads; ++i) {
        sum = fmaf(weights[place + i], d_pooled[s * sequence_stride + unit * encoder.padded_heads + i], sum);
        sum = fmaf(slopes[place + i], encoder.direction[unit * encoder.padded_heads + i], sum);
      }
    }
    d_bias[index] = sum;
  }
}

}  // namespace headcount
