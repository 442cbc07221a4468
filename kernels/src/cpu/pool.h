// Attention of one query per head, folded: forward and backward of lane_count samples at a time.
//
//   r_t = relu(weight x_t + bias_t),  l_it = direction_i . r_t + offset_ti,  a_i = softmax_t(l_i),  pooled_i = sum_t a_it r_t
//
// Every step is a product of small matrices whose elements are vectors of samples. r of all tokens stays in the cache from
// the forward to the backward pass, or else tokens are taken in blocks, and r of a block is computed when it is needed.
#pragma once
#include "cpu/kernels.h"
#include "cpu/lanes.h"

namespace headcount::HEADCOUNT_INSTRUCTIONS {

// Calls body(Count<rows>, Count<columns>, row, column) for blocks that cover a result of this size. A block's sums fit
// in registers, together with what they are computed from.
template <class Body>
inline HEADCOUNT_INLINED void in_blocks(int rows, int columns, const Body& body) {
  constexpr int most_columns = vector_registers == 32 ? 4 : 2;
  auto of_width = [&](auto width, int column) HEADCOUNT_INLINED {
    int row = 0;
    for (; row + 4 <= rows; row += 4) body(Count<4>{}, width, row, column);
    for (; row < rows; row++) body(Count<1>{}, width, row, column);
  };
  int column = 0;
  for (; column + most_columns <= columns; column += most_columns) of_width(Count<most_columns>{}, column);
  if constexpr (most_columns > 2) {
    for (; column + 2 <= columns; column += 2) of_width(Count<2>{}, column);
  }
  for (; column < columns; column++) of_width(Count<1>{}, column);
}

// An element of `Grid` is a vector of samples (Lanes) or one number for all of them (float).
template <class Element>
struct Grid {
  Element* first;
  ptrdiff_t row;
  ptrdiff_t column;

  Element& operator()(int i, int j) const { return first[i * row + j * column]; }
  Grid transposed() const { return {first, column, row}; }
  Grid from_row(int i) const { return {first + i * row, row, column}; }
};

// sums += left [rows, inner] right [inner, columns], for the block that begins at `row` and `column`.
template <int rows, int columns, class Right>
inline HEADCOUNT_INLINED void add_products(Lanes (&sums)[rows][columns], Grid<const Lanes> left,
                                           Grid<const Right> right, int row, int column, int inner) {
  const Lanes* of_left = left.first + row * left.row;
  const Right* of_right = right.first + column * right.column;
  for (int k = 0; k < inner; k++) {
    Lanes factors[columns];
    unrolled<columns>([&](auto j) HEADCOUNT_INLINED {
      factors[j.value] = splat(of_right[k * right.row + j.value * right.column]);
    });
    unrolled<rows>([&](auto i) HEADCOUNT_INLINED {
      const Lanes factor = of_left[k * left.column + i.value * left.row];
      unrolled<columns>([&](auto j) HEADCOUNT_INLINED { sums[i.value][j.value] += factor * factors[j.value]; });
    });
  }
}

// Calls visit(element, i, j) for the elements of a block.
template <int rows, int columns, class Visit>
inline HEADCOUNT_INLINED void for_each(Lanes (&block)[rows][columns], const Visit& visit) {
  unrolled<rows>([&](auto i) HEADCOUNT_INLINED {
    unrolled<columns>([&](auto j) HEADCOUNT_INLINED { visit(block[i.value][j.value], i.value, j.value); });
  });
}

inline Grid<const Lanes> constant(Grid<Lanes> grid) { return {grid.first, grid.row, grid.column}; }

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

// What the gradient of a group of samples needs beside its arguments, and the sums over the samples of a lane.
struct PoolSums {
  Lanes* d_scores;      // of a block of tokens, [block, h]
  Lanes* score_sums;    // what the softmax subtracts, [h]
  Lanes* d_weight;      // [N, d]
  Lanes* d_bias;        // [N]
  Lanes* d_direction;   // [h, N]

  PoolSums() = default;
  PoolSums(Memory& memory, const PoolSizes& sizes, int block)
      : d_scores(memory.lanes(static_cast<size_t>(block) * sizes.heads)),
        score_sums(memory.lanes(sizes.heads)),
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
    for_each(sums, [&](Lanes& sum, int i, int j) HEADCOUNT_INLINED { hidden(row + i, column + j) = positive_part(sum); });
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
  for (int first = 0; first < sizes.length; first += block) {
    const int count = smaller(block, sizes.length - first);
    if (block < sizes.length) encode(sizes, weights, tokens, first, count, hidden);
    in_blocks(sizes.hidden, sizes.heads, [&](auto rows, auto columns, int row, int column) HEADCOUNT_INLINED {
      Lanes sums[rows.value][columns.value];
      for_each(sums, [&](Lanes& sum, int i, int j) HEADCOUNT_INLINED {
        sum = first > 0 ? sums_of_heads(row + i, column + j) : Lanes{};
      });
      add_products(sums, constant(hidden.transposed()), constant(attention.from_row(first)), row, column, count);
      for_each(sums, [&](Lanes& sum, int i, int j) HEADCOUNT_INLINED { sums_of_heads(row + i, column + j) = sum; });
    });
  }
}

// The gradient of lane_count samples, added to `sums` and, what differs by token, to `gradients`. d_attention may be
// null. Samples that are not there must have a gradient of 0. `encoded`: r is still there from the forward pass.
inline void pool_lanes_gradient(const PoolSizes& sizes, const PoolWeights& weights, const LaneTokens& tokens,
                                Grid<Lanes> attention, const Lanes* pooled, const Lanes* d_pooled,
                                const Lanes* d_attention, const PoolGradients& gradients, const Hidden& room,
                                bool encoded, const PoolSums& of_lanes) {
  const int hidden_units = sizes.hidden, heads = sizes.heads, block = room.block;
  const Grid<const Lanes> of_pooled = {d_pooled, hidden_units, 1};
  const Grid<const float> direction = {weights.direction, hidden_units, 1};
  const Grid<Lanes> hidden = {room.first, hidden_units, 1};
  const Grid<Lanes> d_scores = {of_lanes.d_scores, heads, 1};
  const Grid<Lanes> d_direction = {of_lanes.d_direction, 1, hidden_units};
  const Grid<Lanes> d_weight = {of_lanes.d_weight, sizes.dim, 1};
  // What the softmax subtracts: s_i = sum_t a_it (d_pooled_i . r_t + d_attention_it).
  for (int i = 0; i < heads; i++) {
    Lanes sum{};
    for (int j = 0; j < hidden_units; j++) sum += of_pooled(i, j) * pooled[i * hidden_units + j];
    if (d_attention) {
      const Grid<const Lanes> given = {d_attention, attention.row, attention.column};
      for (int t = 0; t < sizes.length; t++) sum += attention(t, i) * given(t, i);
    }
    of_lanes.score_sums[i] = sum;
  }
  for (int first = 0; first < sizes.length; first += block) {
    const int count = smaller(block, sizes.length - first);
    if (!encoded) encode(sizes, weights, tokens, first, count, hidden);
    in_blocks(count, heads, [&](auto rows, auto columns, int row, int column) HEADCOUNT_INLINED {
      Lanes sums[rows.value][columns.value] = {};
      add_products(sums, constant(hidden), of_pooled.transposed(), row, column, hidden_units);
      for_each(sums, [&](Lanes& sum, int i, int j) HEADCOUNT_INLINED {
        const int token = first + row + i, head = column + j;
        Lanes inner = sum - of_lanes.score_sums[head];
        if (d_attention) inner += d_attention[token * attention.row + head * attention.column];
        Lanes d_score = attention(token, head) * inner;
        if (tokens.absent) d_score = tokens.absent[token] ? Lanes{} : d_score;
        d_scores(row + i, head) = d_score;
      });
    });
    if (gradients.offset) add_lane_sums(gradients.offset + first * heads, of_lanes.d_scores, count * heads);
    in_blocks(hidden_units, heads, [&](auto rows, auto columns, int row, int column) HEADCOUNT_INLINED {
      Lanes sums[rows.value][columns.value];
      for_each(sums, [&](Lanes& sum, int i, int j) HEADCOUNT_INLINED { sum = d_direction(row + i, column + j); });
      add_products(sums, constant(hidden.transposed()), constant(d_scores), row, column, count);
      for_each(sums, [&](Lanes& sum, int i, int j) HEADCOUNT_INLINED { d_direction(row + i, column + j) = sum; });
    });
    // r is not needed any more, but for its sign: its gradient takes its place.
    in_blocks(count, hidden_units, [&](auto rows, auto columns, int row, int column) HEADCOUNT_INLINED {
      Lanes sums[rows.value][columns.value] = {};
      add_products(sums, constant(attention.from_row(first)), of_pooled, row, column, heads);
      add_products(sums, constant(d_scores), direction, row, column, heads);
      for_each(sums, [&](Lanes& sum, int i, int j) HEADCOUNT_INLINED {
        Lanes& unit = hidden(row + i, column + j);
        unit = unit > 0.0f ? sum : Lanes{};
      });
    });
    in_blocks(hidden_units, sizes.dim, [&](auto rows, auto columns, int row, int column) HEADCOUNT_INLINED {
      Lanes sums[rows.value][columns.value];
      for_each(sums, [&](Lanes& sum, int i, int j) HEADCOUNT_INLINED { sum = d_weight(row + i, column + j); });
      add_products(sums, constant(hidden.transposed()), constant(tokens.numbers.from_row(first)), row, column, count);
      for_each(sums, [&](Lanes& sum, int i, int j) HEADCOUNT_INLINED { d_weight(row + i, column + j) = sum; });
    });
    if (sizes.bias_per_token) {
      add_lane_sums(gradients.bias + first * hidden_units, room.first, count * hidden_units);
    } else {
      in_blocks(hidden_units, 1, [&](auto rows, auto, int row, int) HEADCOUNT_INLINED {
        Lanes sums[rows.value][1] = {};
        for (int t = 0; t < count; t++) {
          for_each(sums, [&](Lanes& sum, int i, int) HEADCOUNT_INLINED { sum += hidden(t, row + i); });
        }
        for_each(sums, [&](Lanes& sum, int i, int) HEADCOUNT_INLINED { of_lanes.d_bias[row + i] += sum; });
      });
    }
  }
}

}  // namespace headcount::HEADCOUNT_INSTRUCTIONS
