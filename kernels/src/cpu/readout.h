// From what heads pooled to the loss of a tile of samples, and back: products of matrices with a row per sample.
#pragma once
#include "cpu/dense.h"
#include "cpu/fold.h"

namespace headcount::HEADCOUNT_INSTRUCTIONS {

// Samples of one tile, S at most.
struct ReadoutTile {
  float* pooled;       // [S, h, N]
  float* d_pooled;     // [S, h, N]
  float* attention;    // [S, h, T], additive positions alone
  float* d_attention;  // [S, h, T], additive positions alone
  float* values;       // [S, e]
  float* d_values;     // [S, e]
  float* hidden;       // before and then after the GELU, [S, N]
  float* slope;        // of the GELU, and then the gradient before it, [S, N]
  float* answers;      // [S, outputs], and then their gradient

  ReadoutTile(Memory& memory, const Model& model, int samples) {
    const Sizes& s = model.sizes;
    const size_t rows = samples, of_attention = static_cast<size_t>(s.heads) * s.length;
    pooled = memory.floats(rows * s.heads * s.hidden);
    d_pooled = memory.floats(rows * s.heads * s.hidden);
    attention = model.adds_positions() ? memory.floats(rows * of_attention) : nullptr;
    d_attention = model.adds_positions() ? memory.floats(rows * of_attention) : nullptr;
    values = memory.floats(rows * s.total());
    d_values = memory.floats(rows * s.total());
    hidden = memory.floats(rows * s.hidden);
    slope = memory.floats(rows * s.hidden);
    answers = memory.floats(rows * s.outputs);
  }
};

// x Phi(x) in place, and its derivative Phi(x) + x phi(x). Rounded up to whole vectors.
inline void gelu(float* x, float* slope, int count) {
  for (int k = 0; k < count; k += lane_count) {
    const Lanes given = load(x + k);
    const Lanes decay = exp_of_nonpositive(-0.5f * given * given);
    const Lanes from = given * 0.70710678f;
    // 1 - 1 has no digits left far below 0, where Adam makes whole steps of any gradient: the tail is a product.
    const Lanes middle = 0.5f + 0.5f * error_function(from);
    const Lanes below = from < -1.0f ? 0.5f * decay * scaled_tail(-from) : middle;
    const Lanes density = 0.39894228f * decay;
    store(x + k, given * below);
    store(slope + k, below + given * density);
  }
}

inline void repeat_row(float* matrix, const float* row, int rows, int columns) {
  for (int i = 0; i < rows; i++) memcpy(matrix + i * columns, row, sizeof(float) * columns);
}

// Squared distances: returns their sum; answers become the gradient of the mean.
inline double regress(float* answers, const float* const* targets, int samples, int outputs, float batch) {
  const float scale = 2.0f / (batch * outputs);
  double sum = 0;
  for (int i = 0; i < samples; i++) {
    for (int k = 0; k < outputs; k++) {
      const float difference = answers[i * outputs + k] - targets[i][k];
      sum += static_cast<double>(difference) * difference;
      answers[i * outputs + k] = scale * difference;
    }
  }
  return sum;
}

// Cross-entropy: returns how many samples are answered wrongly; scores become the gradient of the mean. A tie, or NaN,
// counts as wrong. A label that is no class makes the gradient NaN.
inline double classify(float* scores, const float* const* labels, int samples, int classes, float batch) {
  double wrong = 0;
  for (int i = 0; i < samples; i++) {
    float* row = scores + i * classes;
    const float given = labels[i][0];
    const bool known = given >= 0 && given < classes;
    const int label = known ? static_cast<int>(given) : 0;
    const float right = known ? row[label] : __builtin_nanf("");
    int rank = 0;
    float largest = row[0];
    for (int k = 0; k < classes; k++) {
      rank += !(row[k] < right);
      largest = row[k] > largest ? row[k] : largest;
    }
    wrong += rank > 1;
    Lanes totals{};
    for (int k = 0; k < classes; k += lane_count) {
      const int some = smaller(lane_count, classes - k);
      const Lanes share = exp_of_nonpositive(load(row + k) - largest);
      if (some == lane_count) {
        store(row + k, share);
        totals += share;
      } else {
        store_some(row + k, share, some);
        totals += load_some(row + k, some);
      }
    }
    const float scale = 1.0f / (batch * lane_sum(totals));
    for (int k = 0; k < classes; k++) row[k] *= scale;
    row[label] -= known ? 1.0f / batch : right;
  }
  return wrong;
}

// The part of the batch's loss that these samples are; fills d_pooled and d_attention, and adds to `sums`.
inline double read_out(const Model& model, Objective objective, const float* weights, const Folded& folded,
                       const ReadoutTile& tile, const float* const* targets, int samples, int batch,
                       const FoldedGradients& sums) {
  const Sizes& s = model.sizes;
  const int total = s.total(), pooled_row = s.heads * s.hidden, attention_row = s.heads * s.length;
  const int all_values = model.all_values(), n = s.head_dim;
  const float* outputs = weights + model.layout.readout_out_weight;

  repeat_row(tile.values, folded.value_bias, samples, total);
  for (int i = 0; i < s.heads; i++) {
    const int group = model.group_of(i);
    float* values = tile.values + i * n;
    multiply(values, total, Matrix(tile.pooled + i * s.hidden, pooled_row),
             Matrix(folded.values_by_hidden + group * n * s.hidden, n), samples, s.hidden, n, Result::added);
    if (!tile.attention) continue;
    multiply(values, total, Matrix(tile.attention + i * s.length, attention_row),
             Matrix(folded.position_values + group * n, all_values), samples, s.length, n, Result::added);
  }
  repeat_row(tile.hidden, folded.readout_bias, samples, s.hidden);
  multiply(tile.hidden, s.hidden, Matrix(tile.values, total), Matrix(folded.readout_by_value, s.hidden), samples, total,
           s.hidden, Result::added);
  gelu(tile.hidden, tile.slope, samples * s.hidden);
  repeat_row(tile.answers, weights + model.layout.readout_out_bias, samples, s.outputs);
  multiply(tile.answers, s.outputs, Matrix(tile.hidden, s.hidden), Matrix(folded.outputs_by_hidden, s.outputs), samples,
           s.hidden, s.outputs, Result::added);

  const double error = objective == Objective::regression
                           ? regress(tile.answers, targets, samples, s.outputs, batch) / s.outputs
                           : classify(tile.answers, targets, samples, s.outputs, batch);

  multiply(sums.outputs, s.hidden, Matrix(tile.answers, s.outputs).transposed(), Matrix(tile.hidden, s.hidden),
           s.outputs, samples, s.hidden, Result::added);
  add_column_sums(sums.outputs_bias, tile.answers, s.outputs, samples, s.outputs);
  float* d_hidden = tile.hidden;
  multiply(d_hidden, s.hidden, Matrix(tile.answers, s.outputs), Matrix(outputs, s.hidden), samples, s.outputs, s.hidden,
           Result::written);
  for (int k = 0; k < samples * s.hidden; k += lane_count)
    store(d_hidden + k, load(d_hidden + k) * load(tile.slope + k));
  add_column_sums(sums.readout_bias, d_hidden, s.hidden, samples, s.hidden);
  multiply(sums.readout, total, Matrix(d_hidden, s.hidden).transposed(), Matrix(tile.values, total), s.hidden, samples,
           total, Result::added);
  multiply(tile.d_values, total, Matrix(d_hidden, s.hidden), Matrix(folded.readout, total), samples, s.hidden, total,
           Result::written);
  add_column_sums(sums.value_bias, tile.d_values, total, samples, total);
  for (int i = 0; i < s.heads; i++) {
    const int group = model.group_of(i);
    const Matrix d_values(tile.d_values + i * n, total);
    const int of_group = group * n * s.hidden;
    multiply(tile.d_pooled + i * s.hidden, pooled_row, d_values, Matrix(folded.values + of_group, s.hidden), samples, n,
             s.hidden, Result::written);
    multiply(sums.values + of_group, s.hidden, d_values.transposed(), Matrix(tile.pooled + i * s.hidden, pooled_row), n,
             samples, s.hidden, Result::added);
    if (!tile.attention) continue;
    multiply(tile.d_attention + i * s.length, attention_row, d_values,
             Matrix(folded.values_by_position + group * n * s.length, s.length), samples, n, s.length, Result::written);
    multiply(sums.position_values + group * n, all_values,
             Matrix(tile.attention + i * s.length, attention_row).transposed(), d_values, s.length, samples, n,
             Result::added);
  }
  return error;
}

}  // namespace headcount::HEADCOUNT_INSTRUCTIONS
