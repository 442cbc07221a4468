// From the weights of a model to what tokens and samples meet, and from the gradients of that back to the weights.
//
// Nothing of width E is formed per token:
//   direction_i = beta W2^T K_i^T Q_i c0      value_i = V_i W2      readout_i = W3 O_i
// Positions are a bias per token (concatenated), or an offset of scores and a value per token (additive).
#pragma once
#include "cpu/dense.h"
#include "cpu/kernels.h"

namespace headcount::HEADCOUNT_INSTRUCTIONS {

// The sizes of one member, whose arrays have no room for heads that it does not have.
struct Model {
  Sizes sizes;
  Layout layout;
  float beta;

  Model(const Sizes& sizes, float beta) : sizes(sizes), layout(sizes), beta(beta) {}
  int32_t total() const { return sizes.total(); }
  int32_t group_of(int32_t head) const { return head % sizes.groups; }
  int32_t all_values() const { return sizes.groups * sizes.head_dim; }
  bool adds_positions() const { return sizes.positions == Positions::additive; }
  bool concatenates_positions() const { return sizes.positions == Positions::concatenated; }
};

// E is the total, e its numbers as heads give them, gn the values of all groups.
struct Folded {
  float* queries;             // Q_i c0, [h, r]
  float* key_directions;      // beta K_i^T Q_i c0, [h, E]
  float* direction;           // [h, N]
  float* values;              // V W2, [gn, N]
  float* values_by_hidden;    // the same, [g, N, n]
  float* value_bias;          // V b2 of every head, [e]
  float* readout;             // W3 O, [N, e]
  float* readout_by_value;    // the same, [e, N]
  float* readout_bias;        // W3 c0 + b3, [N]
  float* outputs_by_hidden;   // W4^T, [N, outputs]
  float* token_bias;          // [T, N], concatenated positions alone
  float* offset;              // beta K_i^T Q_i c0 . p_t, [T, h], additive positions alone
  float* position_values;     // V p_t, [T, gn], additive positions alone
  float* values_by_position;  // the same, [gn, T]
  float* scratch;             // any matrix, transposed

  Folded(Memory& memory, const Model& model) {
    const Sizes& s = model.sizes;
    const size_t total = s.total(), values_of_all = model.all_values(), length = s.length;
    queries = memory.floats(s.heads * s.rank);
    key_directions = memory.floats(s.heads * total);
    direction = memory.floats(s.heads * s.hidden);
    values = memory.floats(values_of_all * s.hidden);
    values_by_hidden = memory.floats(values_of_all * s.hidden);
    value_bias = memory.floats(total);
    readout = memory.floats(s.hidden * total);
    readout_by_value = memory.floats(s.hidden * total);
    readout_bias = memory.floats(s.hidden);
    outputs_by_hidden = memory.floats(s.hidden * s.outputs);
    token_bias = model.concatenates_positions() ? memory.floats(length * s.hidden) : nullptr;
    offset = model.adds_positions() ? memory.floats(length * s.heads) : nullptr;
    position_values = model.adds_positions() ? memory.floats(length * values_of_all) : nullptr;
    values_by_position = model.adds_positions() ? memory.floats(length * values_of_all) : nullptr;
    scratch = memory.floats(total * (total + s.hidden) + static_cast<size_t>(s.hidden) * s.code);
  }
};

// Sums over a batch, of the same shapes.
struct FoldedGradients {
  float* weight;           // [N, d]
  float* bias;             // [N], or [T, N] with concatenated positions
  float* direction;        // [h, N]
  float* values;           // [gn, N]
  float* value_bias;       // [e]
  float* readout;          // [N, e]
  float* readout_bias;     // [N]
  float* outputs;          // W4's, [outputs, N]
  float* outputs_bias;     // b4's, [outputs]
  float* offset;           // [T, h]
  float* position_values;  // [T, gn]
  float* end;              // they are cleared together

  FoldedGradients(Memory& memory, const Model& model) {
    const Sizes& s = model.sizes;
    const size_t total = s.total(), length = s.length;
    weight = memory.floats(s.hidden * s.dim);
    bias = memory.floats((model.concatenates_positions() ? length : 1) * s.hidden);
    direction = memory.floats(s.heads * s.hidden);
    values = memory.floats(model.all_values() * s.hidden);
    value_bias = memory.floats(total);
    readout = memory.floats(s.hidden * total);
    readout_bias = memory.floats(s.hidden);
    outputs = memory.floats(s.outputs * s.hidden);
    outputs_bias = memory.floats(s.outputs);
    offset = model.adds_positions() ? memory.floats(length * s.heads) : nullptr;
    position_values = model.adds_positions() ? memory.floats(length * model.all_values()) : nullptr;
    end = memory.floats(0);
  }
  void clear() const { memset(weight, 0, reinterpret_cast<char*>(end) - reinterpret_cast<char*>(weight)); }
};

inline void fold(const Model& model, const float* weights, const Folded& folded) {
  const Sizes& s = model.sizes;
  const Layout& at = model.layout;
  const int total = s.total(), values = model.all_values();
  const float* hidden_to_total = weights + at.encoder_out_weight;  // W2, [E, N]
  const float* class_token = weights + at.class_token;
  multiply_vector(folded.queries, nullptr, 1, weights + at.query, total, class_token, s.heads * s.rank, total);
  for (int i = 0; i < s.heads; i++) {
    float* query = folded.queries + i * s.rank;
    float* key_direction = folded.key_directions + i * total;
    const Matrix key(weights + at.key + model.group_of(i) * s.rank * total, total);
    multiply(key_direction, total, Matrix(query, s.rank), key, 1, s.rank, total, Result::written);
    for (int e = 0; e < total; e++) key_direction[e] *= model.beta;
  }
  multiply(folded.direction, s.hidden, Matrix(folded.key_directions, total), Matrix(hidden_to_total, s.hidden), s.heads,
           total, s.hidden, Result::written);

  multiply(folded.values, s.hidden, Matrix(weights + at.value, total), Matrix(hidden_to_total, s.hidden), values, total,
           s.hidden, Result::written);
  for (int group = 0; group < s.groups; group++) {
    const int first = group * s.head_dim * s.hidden;
    transpose_matrix(folded.values_by_hidden + first, folded.values + first, s.hidden, s.head_dim, s.hidden);
  }
  multiply_vector(folded.value_bias, nullptr, 1, weights + at.value, total, weights + at.encoder_out_bias, values,
                  total);
  for (int e = values; e < total; e++) folded.value_bias[e] = folded.value_bias[e - values];  // head i: group i mod g

  const float* readout_in = weights + at.readout_in_weight;  // W3, [N, E]
  multiply(folded.readout, total, Matrix(readout_in, total), Matrix(weights + at.output, total), s.hidden, total, total,
           Result::written);
  transpose_matrix(folded.readout_by_value, folded.readout, total, s.hidden, total);
  multiply_vector(folded.readout_bias, weights + at.readout_in_bias, 1, readout_in, total, class_token, s.hidden,
                  total);
  transpose_matrix(folded.outputs_by_hidden, weights + at.readout_out_weight, s.hidden, s.outputs, s.hidden);

  const float* positions = weights + at.position_table;
  if (model.concatenates_positions()) {
    const float* codes_in = weights + at.encoder_in_weight + s.dim;
    transpose_matrix(folded.scratch, codes_in, s.read(), s.hidden, s.code);
    for (int t = 0; t < s.length; t++) {
      memcpy(folded.token_bias + t * s.hidden, weights + at.encoder_in_bias, sizeof(float) * s.hidden);
    }
    multiply(folded.token_bias, s.hidden, Matrix(positions, s.code), Matrix(folded.scratch, s.hidden), s.length, s.code,
             s.hidden, Result::added);
  }
  if (model.adds_positions()) {
    transpose_matrix(folded.scratch, folded.key_directions, total, s.heads, total);
    multiply(folded.offset, s.heads, Matrix(positions, total), Matrix(folded.scratch, s.heads), s.length, total,
             s.heads, Result::written);
    transpose_matrix(folded.scratch, weights + at.value, total, values, total);
    multiply(folded.position_values, values, Matrix(positions, total), Matrix(folded.scratch, values), s.length, total,
             values, Result::written);
    transpose_matrix(folded.values_by_position, folded.position_values, values, s.length, values);
  }
}

// gradient [P] of all weights.
inline void unfold(const Model& model, const float* weights, const Folded& folded, const FoldedGradients& sums,
                   float* gradient) {
  const Sizes& s = model.sizes;
  const Layout& at = model.layout;
  const int total = s.total(), values = model.all_values();
  const float* class_token = weights + at.class_token;
  const float* positions = weights + at.position_table;
  const float* value = weights + at.value;
  float* d_class_token = gradient + at.class_token;
  float* d_positions = gradient + at.position_table;
  const auto row = [](const float* vector) { return Matrix(vector, 0); };
  const auto column = [](const float* vector) { return Matrix(vector, 1, 0); };

  // The readout.
  const float* readout_in = weights + at.readout_in_weight;
  float* d_readout_in = gradient + at.readout_in_weight;
  memcpy(gradient + at.readout_out_weight, sums.outputs, sizeof(float) * s.outputs * s.hidden);
  memcpy(gradient + at.readout_out_bias, sums.outputs_bias, sizeof(float) * s.outputs);
  memcpy(gradient + at.readout_in_bias, sums.readout_bias, sizeof(float) * s.hidden);
  multiply(gradient + at.output, total, Matrix(readout_in, total).transposed(), Matrix(sums.readout, total), total,
           s.hidden, total, Result::written);
  transpose_matrix(folded.scratch, weights + at.output, total, total, total);
  multiply(d_readout_in, total, Matrix(sums.readout, total), Matrix(folded.scratch, total), s.hidden, total, total,
           Result::written);
  multiply(d_readout_in, total, column(sums.readout_bias), row(class_token), s.hidden, 1, total, Result::added);
  multiply(d_class_token, total, row(sums.readout_bias), Matrix(readout_in, total), 1, s.hidden, total,
           Result::written);

  // Values: V W2 r + V b2.
  float* d_value = gradient + at.value;
  float* d_hidden_to_total = gradient + at.encoder_out_weight;
  float* by_hidden = folded.scratch;  // W2^T, [N, E]
  for (int e = values; e < total; e++) sums.value_bias[e % values] += sums.value_bias[e];
  transpose_matrix(by_hidden, weights + at.encoder_out_weight, s.hidden, total, s.hidden);
  multiply(d_value, total, Matrix(sums.values, s.hidden), Matrix(by_hidden, total), values, s.hidden, total,
           Result::written);
  multiply(d_value, total, column(sums.value_bias), row(weights + at.encoder_out_bias), values, 1, total,
           Result::added);
  multiply(gradient + at.encoder_out_bias, total, row(sums.value_bias), Matrix(value, total), 1, values, total,
           Result::written);
  multiply(d_hidden_to_total, s.hidden, Matrix(value, total).transposed(), Matrix(sums.values, s.hidden), total, values,
           s.hidden, Result::written);
  multiply(d_hidden_to_total, s.hidden, Matrix(folded.key_directions, total).transposed(),
           Matrix(sums.direction, s.hidden), total, s.heads, s.hidden, Result::added);

  // Scores: beta K_i^T Q_i c0 meets W2 r_t, and positions that are added.
  float* d_key_directions = folded.scratch + total * s.hidden;
  multiply(d_key_directions, total, Matrix(sums.direction, s.hidden), Matrix(by_hidden, total), s.heads, s.hidden,
           total, Result::written);
  if (model.adds_positions()) {
    multiply(d_key_directions, total, Matrix(sums.offset, s.heads).transposed(), Matrix(positions, total), s.heads,
             s.length, total, Result::added);
    multiply(d_positions, total, Matrix(sums.offset, s.heads), Matrix(folded.key_directions, total), s.length, s.heads,
             total, Result::written);
    multiply(d_positions, total, Matrix(sums.position_values, values), Matrix(value, total), s.length, values, total,
             Result::added);
    multiply(d_value, total, Matrix(sums.position_values, values).transposed(), Matrix(positions, total), values,
             s.length, total, Result::added);
  }
  float* d_key = gradient + at.key;
  memset(d_key, 0, sizeof(float) * s.groups * s.rank * total);
  for (int i = 0; i < s.heads; i++) {
    float* query = folded.queries + i * s.rank;
    float* d_key_direction = d_key_directions + i * total;
    const int of_group = model.group_of(i) * s.rank * total;
    for (int e = 0; e < total; e++) d_key_direction[e] *= model.beta;
    multiply(d_key + of_group, total, column(query), row(d_key_direction), s.rank, 1, total, Result::added);
    // The query is not needed any more: its gradient takes its place.
    multiply_vector(query, nullptr, 1, weights + at.key + of_group, total, d_key_direction, s.rank, total);
  }
  const float* d_queries = folded.queries;
  multiply(gradient + at.query, total, column(d_queries), row(class_token), s.heads * s.rank, 1, total,
           Result::written);
  multiply(d_class_token, total, row(d_queries), Matrix(weights + at.query, total), 1, s.heads * s.rank, total,
           Result::added);

  // The first layer of the encoder.
  float* d_encoder_in = gradient + at.encoder_in_weight;
  float* d_encoder_bias = gradient + at.encoder_in_bias;
  for (int j = 0; j < s.hidden; j++)
    memcpy(d_encoder_in + j * s.read(), sums.weight + j * s.dim, sizeof(float) * s.dim);
  if (model.concatenates_positions()) {
    const float* codes_in = weights + at.encoder_in_weight + s.dim;
    memset(d_encoder_bias, 0, sizeof(float) * s.hidden);
    add_column_sums(d_encoder_bias, sums.bias, s.hidden, s.length, s.hidden);
    multiply(d_positions, s.code, Matrix(sums.bias, s.hidden), Matrix(codes_in, s.read()), s.length, s.hidden, s.code,
             Result::written);
    multiply(d_encoder_in + s.dim, s.read(), Matrix(sums.bias, s.hidden).transposed(), Matrix(positions, s.code),
             s.hidden, s.length, s.code, Result::written);
  } else {
    memcpy(d_encoder_bias, sums.bias, sizeof(float) * s.hidden);
  }
}

}  // namespace headcount::HEADCOUNT_INSTRUCTIONS
