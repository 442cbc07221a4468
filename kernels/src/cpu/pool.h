// Attention of one query per head, folded: forward and backward of lane_count samples at a time.
//
//   r_t = relu(weight x_t + bias_t)    l_it = direction_i . r_t + offset_ti
//   a_i = softmax_t(l_i)               pooled_i = sum_t a_it r_t
//
// r of all tokens stays in the cache from the forward to the backward pass. Where it does not fit, tokens are taken in
// blocks, and r of a block is computed again.
#pragma once
#include "cpu/kernels.h"
#include "cpu/products.h"

namespace headcount::HEADCOUNT_INSTRUCTIONS {

// The tokens of lane_count samples.
struct LaneTokens {
  Grid<Lanes> numbers;  // [T, d]; those of absent tokens are 0
  IntLanes* absent;     // [T], -1 where a token is absent; null without masks
};

inline void read_lane_tokens(const PoolSizes& sizes, const Rows& rows, const LaneTokens& tokens) {
  to_lanes(tokens.numbers.first, rows, sizes.length * sizes.dim);
  if (!sizes.masks) return;
  for (int t = 0; t < sizes.length; t++) {
    IntLanes absent = IntLanes{} - 1;
    for (int c = 0; c < sizes.dim; c++) absent &= tokens.numbers(t, c) != tokens.numbers(t, c);
    tokens.absent[t] = absent;
    for (int c = 0; c < sizes.dim; c++) tokens.numbers(t, c) = absent ? Lanes{} : tokens.numbers(t, c);
  }
}

// r of a block of tokens, [block, N].
struct Hidden {
  Lanes* first;
  int block;  // all tokens, or as many as fit
};

constexpr size_t cache_bytes = 1 << 19;  // that a core has to itself, at least

inline int tokens_per_block(const PoolSizes& sizes) {
  const int tokens = static_cast<int>(cache_bytes / 2 / sizeof(Lanes)) / sizes.hidden;
  return smaller(sizes.length, tokens < 4 ? 4 : tokens / 4 * 4);
}

// What the gradient of a group of samples needs besides its arguments, and the sums over the samples of a lane.
struct PoolSums {
  Lanes* d_scores;     // [T, h]
  Lanes* d_weight;     // [N, d]
  Lanes* d_bias;       // [N]
  Lanes* d_direction;  // [h, N]

  PoolSums() = default;
  PoolSums(Memory& memory, const PoolSizes& sizes)
      : d_scores(memory.lanes(static_cast<size_t>(sizes.length) * sizes.heads)),
        d_weight(memory.lanes(static_cast<size_t>(sizes.hidden) * sizes.dim)),
        d_bias(memory.lanes(sizes.hidden)),
        d_direction(memory.lanes(static_cast<size_t>(sizes.heads) * sizes.hidden)) {}

  void clear(const PoolSizes& sizes) const {
    memset(d_weight, 0, sizeof(Lanes) * sizes.hidden * sizes.dim);
    memset(d_bias, 0, sizeof(Lanes) * sizes.hidden);
    memset(d_direction, 0, sizeof(Lanes) * sizes.heads * sizes.hidden);
  }
  // Adds the sums over all lanes to gradients of every sample. Those that differ by token are added as they arise.
  void add_to(const PoolSizes& sizes, const PoolGradients& gradients) const {
    add_lane_sums(gradients.weight, d_weight, sizes.hidden * sizes.dim);
    if (!sizes.bias_per_token) add_lane_sums(gradients.bias, d_bias, sizes.hidden);
    add_lane_sums(gradients.direction, d_direction, sizes.heads * sizes.hidden);
  }
};

// r of the tokens first .. first + count.
inline __attribute__((noinline)) void encode(const PoolSizes& sizes, const PoolWeights& weights,
                                             const LaneTokens& tokens, int first, int count, Grid<Lanes> hidden) {
  const Grid<const Lanes> numbers = constant(tokens.numbers.from_row(first));
  const Grid<const float> weight = {weights.weight, 1, weights.weight_stride};
  const int bias_row = sizes.bias_per_token ? sizes.hidden : 0;
  in_blocks(count, sizes.hidden, [&](auto rows, auto columns, int row, int column) HEADCOUNT_INLINED {
    Lanes sums[rows.value][columns.value];
    const float* bias = weights.bias + static_cast<ptrdiff_t>(first + row) * bias_row + column;
    for_each(sums, [&](Lanes& sum, int i, int j) HEADCOUNT_INLINED { sum = splat(bias[i * bias_row + j]); });
    add_products(sums, numbers, weight, row, column, sizes.dim);
    for_each(sums,
             [&](Lanes& sum, int i, int j) HEADCOUNT_INLINED { hidden(row + i, column + j) = positive_part(sum); });
  });
}

inline __attribute__((noinline)) void score(const PoolSizes& sizes, const PoolWeights& weights,
                                            const LaneTokens& tokens, int first, int count, Grid<Lanes> hidden,
                                            Grid<Lanes> scores) {
  const Grid<const float> direction = {weights.direction, 1, sizes.hidden};
  in_blocks(count, sizes.heads, [&](auto rows, auto columns, int row, int column) HEADCOUNT_INLINED {
    Lanes sums[rows.value][columns.value] = {};
    add_products(sums, constant(hidden), direction, row, column, sizes.hidden);
    for_each(sums, [&](Lanes& sum, int i, int j) HEADCOUNT_INLINED {
      const int token = first + row + i;
      if (weights.offset) sum += weights.offset[token * sizes.heads + column + j];
      if (tokens.absent) sum = tokens.absent[token] ? splat(-__builtin_inff()) : sum;
      scores(token, column + j) = sum;
    });
  });
}

// Scores become weights. Where all are minus infinity, or one is NaN or infinite, the weights are NaN, as in JAX.
inline __attribute__((noinline)) void softmax(Grid<Lanes> scores, int length, int heads) {
  for (int i = 0; i < heads; i++) {
    Lanes largest = scores(0, i);
    for (int t = 1; t < length; t++) {
      const Lanes next = scores(t, i);
      largest = next > largest ? next : largest;
    }
    Lanes total{};
    for (int t = 0; t < length; t++) {
      const Lanes share = exp_of_nonpositive(scores(t, i) - largest);
      scores(t, i) = share;
      total += share;
    }
    const Lanes scale = 1.0f / total;
    for (int t = 0; t < length; t++) scores(t, i) *= scale;
  }
}

// attention [T, h] and pooled [h, N] of lane_count samples.
inline void pool_lanes(const PoolSizes& sizes, const PoolWeights& weights, const LaneTokens& tokens,
                       Grid<Lanes> attention, Lanes* pooled, const Hidden& room) {
  const int block = room.block;
  const Grid<Lanes> hidden = {room.first, sizes.hidden, 1};
  const Grid<Lanes> sums_of_heads = {pooled, 1, sizes.hidden};
  for (int first = 0; first < sizes.length; first += block) {
    const int count = smaller(block, sizes.length - first);
    encode(sizes, weights, tokens, first, count, hidden);
    score(sizes, weights, tokens, first, count, hidden, attention);
  }
  softmax(attention, sizes.length, sizes.heads);
  memset(pooled, 0, sizeof(Lanes) * sizes.heads * sizes.hidden);
  for (int first = 0; first < sizes.length; first += block) {
    const int count = smaller(block, sizes.length - first);
    if (block < sizes.length) encode(sizes, weights, tokens, first, count, hidden);
    add_product(sums_of_heads, constant(hidden.transposed()), constant(attention.from_row(first)), sizes.hidden,
                sizes.heads, count);
  }
}

// What a group of samples gives to its gradient.
struct LaneGradients {
  Grid<Lanes> attention;          // [T, h]
  Grid<const Lanes> d_attention;  // [T, h]; none if its first is null
  Grid<const Lanes> d_pooled;     // [h, N]
};

// The gradient of the attention weights of the tokens first .. first + count: d_pooled_i . r_t + d_attention_it.
inline __attribute__((noinline)) void attention_gradient(const PoolSizes& sizes, const LaneGradients& given, int first,
                                                         int count, Grid<Lanes> hidden, Grid<Lanes> d_scores) {
  in_blocks(count, sizes.heads, [&](auto rows, auto columns, int row, int column) HEADCOUNT_INLINED {
    Lanes sums[rows.value][columns.value] = {};
    add_products(sums, constant(hidden), given.d_pooled.transposed(), row, column, sizes.hidden);
    for_each(sums, [&](Lanes& sum, int i, int j) HEADCOUNT_INLINED {
      const int token = first + row + i, head = column + j;
      if (given.d_attention.first) sum += given.d_attention(token, head);
      d_scores(token, head) = sum;
    });
  });
}

// From the gradient of the weights to that of the scores, a_t (d_t - sum_s a_s d_s), in place. The mean is taken of the
// very numbers it is subtracted from: where one token has all the weight, what is left is 0 and not its rounding, which
// a large direction would multiply.
inline __attribute__((noinline)) void softmax_gradient(const PoolSizes& sizes, const LaneTokens& tokens,
                                                       Grid<Lanes> attention, Grid<Lanes> d_scores) {
  for (int i = 0; i < sizes.heads; i++) {
    Lanes mean{};
    for (int t = 0; t < sizes.length; t++) mean += attention(t, i) * d_scores(t, i);
    for (int t = 0; t < sizes.length; t++) {
      const Lanes change = attention(t, i) * (d_scores(t, i) - mean);
      d_scores(t, i) = tokens.absent ? (tokens.absent[t] ? Lanes{} : change) : change;
    }
  }
}

// The gradient of r takes its place: nothing but its sign is needed any more.
inline __attribute__((noinline)) void hidden_gradient(const PoolSizes& sizes, const PoolWeights& weights,
                                                      const LaneGradients& given, int first, int count,
                                                      Grid<Lanes> d_scores, Grid<Lanes> hidden) {
  const Grid<const float> direction = {weights.direction, sizes.hidden, 1};
  in_blocks(count, sizes.hidden, [&](auto rows, auto columns, int row, int column) HEADCOUNT_INLINED {
    Lanes sums[rows.value][columns.value] = {};
    add_products(sums, constant(given.attention.from_row(first)), given.d_pooled, row, column, sizes.heads);
    add_products(sums, constant(d_scores), direction, row, column, sizes.heads);
    for_each(sums, [&](Lanes& sum, int i, int j) HEADCOUNT_INLINED {
      Lanes& unit = hidden(row + i, column + j);
      unit = unit > 0.0f ? sum : Lanes{};
    });
  });
}

// Adds up the rows of r's gradient.
inline void add_rows(Grid<Lanes> hidden, int count, int units, Lanes* sums_of_units) {
  in_blocks(units, 1, [&](auto rows, auto, int row, int) HEADCOUNT_INLINED {
    Lanes sums[rows.value][1] = {};
    for (int t = 0; t < count; t++) {
      for_each(sums, [&](Lanes& sum, int i, int) HEADCOUNT_INLINED { sum += hidden(t, row + i); });
    }
    for_each(sums, [&](Lanes& sum, int i, int) HEADCOUNT_INLINED { sums_of_units[row + i] += sum; });
  });
}

// The gradient of lane_count samples, added to `sums` and, what differs by token, to `gradients`. Samples that are not
// there must have a gradient of 0. `encoded`: r is still there from the forward pass.
inline void pool_lanes_gradient(const PoolSizes& sizes, const PoolWeights& weights, const LaneTokens& tokens,
                                const LaneGradients& given, const PoolGradients& gradients, const Hidden& room,
                                bool encoded, const PoolSums& sums) {
  const Grid<Lanes> hidden = {room.first, sizes.hidden, 1};
  const Grid<Lanes> d_scores = {sums.d_scores, sizes.heads, 1};
  for (int first = 0; first < sizes.length; first += room.block) {
    const int count = smaller(room.block, sizes.length - first);
    if (!encoded) encode(sizes, weights, tokens, first, count, hidden);
    attention_gradient(sizes, given, first, count, hidden, d_scores);
  }
  softmax_gradient(sizes, tokens, given.attention, d_scores);
  if (gradients.offset) add_lane_sums(gradients.offset, sums.d_scores, sizes.length * sizes.heads);
  for (int first = 0; first < sizes.length; first += room.block) {
    const int count = smaller(room.block, sizes.length - first);
    if (room.block < sizes.length) encode(sizes, weights, tokens, first, count, hidden);
    add_product({sums.d_direction, 1, sizes.hidden}, constant(hidden.transposed()),
                constant(d_scores.from_row(first)), sizes.hidden, sizes.heads, count);
    hidden_gradient(sizes, weights, given, first, count, d_scores.from_row(first), hidden);
    add_product({sums.d_weight, sizes.dim, 1}, constant(hidden.transposed()), constant(tokens.numbers.from_row(first)),
                sizes.hidden, sizes.dim, count);
    if (sizes.bias_per_token) {
      add_lane_sums(gradients.bias + first * sizes.hidden, room.first, count * sizes.hidden);
    } else {
      add_rows(hidden, count, sizes.hidden, sums.d_bias);
    }
  }
}

}  // namespace headcount::HEADCOUNT_INSTRUCTIONS
