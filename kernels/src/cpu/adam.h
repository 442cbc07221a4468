// The update of optax: clip_by_global_norm, then scale_by_adam, then decay of the weights apart from the gradient.
#pragma once
#include <cmath>

#include "cpu/lanes.h"

namespace headcount::HEADCOUNT_INSTRUCTIONS {

struct Adam {
  float clip;
  float second_moment_decay;
  float weight_decay;
};

// The factor that brings a gradient within the clip; NaN where the gradient is.
inline float clip_factor(const float* gradient, int count, float clip) {
  Lanes squares[4] = {};
  for (int k = 0; k < count; k += 4 * lane_count) {
    for (int v = 0; v < 4 && k + v * lane_count < count; v++) {
      const Lanes part = load(gradient + k + v * lane_count);
      squares[v] += part * part;
    }
  }
  const float norm = sqrtf(lane_sum((squares[0] + squares[1]) + (squares[2] + squares[3])));
  return norm < clip ? 1.0f : clip / norm;
}

// `step` counts from 1. The count is rounded up to whole vectors: what follows the arrays is zero and stays so.
inline __attribute__((noinline)) void update(const Adam& adam, float rate, int step, const float* gradient,
                                             float* weights, float* mean, float* square, int count) {
  const float first_decay = 0.9f, second_decay = adam.second_moment_decay;
  // The bias correction is computed in float32, as optax does.
  const float first_share = static_cast<float>(1 - 0.9), second_share = rest_of(second_decay);
  const float first_scale = 1.0f / (1.0f - powf(first_decay, static_cast<float>(step)));
  const float second_scale = 1.0f / (1.0f - powf(second_decay, static_cast<float>(step)));
  const float factor = clip_factor(gradient, count, adam.clip);
  const float kept = 1.0f - rate * adam.weight_decay;
  for (int k = 0; k < count; k += lane_count) {
    const Lanes slope = factor * load(gradient + k);
    const Lanes new_mean = first_share * slope + first_decay * load(mean + k);
    const Lanes new_square = second_share * (slope * slope) + second_decay * load(square + k);
    const Lanes change = new_mean * first_scale / (square_root(new_square * second_scale) + 1e-8f);
    store(mean + k, new_mean);
    store(square + k, new_square);
    store(weights + k, kept * load(weights + k) - rate * change);
  }
}

}  // namespace headcount::HEADCOUNT_INSTRUCTIONS
