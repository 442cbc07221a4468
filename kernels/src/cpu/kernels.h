// What the kernels of every instruction set offer: plain pointers in, plain pointers out, memory from the caller.
//
// Symbols: B samples, T length, d dim, N hidden, h heads. All arrays are row-major float32.
#pragma once
#include <cstddef>
#include <cstdint>

#include "layout.h"

namespace headcount {

// Samples that are worked on together. A constant, so that sums run in the same order however tiles are spread over
// threads.
constexpr int tile_samples = 64;

struct PoolSizes {
  int32_t length;
  int32_t dim;
  int32_t hidden;
  int32_t heads;
  bool bias_per_token;  // the bias is [T, N] rather than [1, N]
  bool has_offset;
  bool masks;  // tokens that are all NaN are absent
};

// The weights of one member.
struct PoolWeights {
  const float* weight;  // [N, weight_stride], of which the first d columns are read
  int32_t weight_stride;
  const float* bias;       // [1 or T, N]
  const float* direction;  // [h, N]
  const float* offset;     // [T, h], null without offsets
};

struct PoolGradients {
  float* weight;     // [N, d]
  float* bias;       // [1 or T, N]
  float* direction;  // [h, N]
  float* offset;     // [T, h], null without offsets
};

// What all members of a call have in common.
struct AdvanceTask {
  Sizes sizes;
  Objective objective;
  bool masks;
  float beta;
  float clip;
  float second_moment_decay;
  float weight_decay;
  int32_t batch;
  const float* tokens;   // [X, T, d]
  const float* targets;  // [X, outputs], or [X, 1] labels
};

// One member. Its flat vectors are in the order of `Layout`, with room for all heads.
struct AdvanceMember {
  int32_t heads;  // heads in use, at least 1
  int32_t steps_taken;
  int32_t steps;
  const float* rates;     // [steps]
  const int32_t* chosen;  // [steps, B]
  float* weights;         // [P], and so are the moments of Adam; changed in place
  float* mean;
  float* square;
};

// Every function takes `memory`, as many bytes as the function before it says, aligned to 64 and zero on first use.
struct Kernels {
  const char* name;

  // One tile of at most `tile_samples` samples. pooled is [samples, h, N], attention [samples, T, h].
  size_t (*pool_bytes)(const PoolSizes&);
  void (*pool)(const PoolSizes&, const PoolWeights&, const float* tokens, int samples, float* pooled, float* attention,
               void* memory);

  // The same for gradients, which are written: those of this tile alone.
  size_t (*pool_gradient_bytes)(const PoolSizes&);
  void (*pool_gradient)(const PoolSizes&, const PoolWeights&, const float* tokens,
                        const float* attention, const float* d_pooled, const float* d_attention, int samples,
                        const PoolGradients&, void* memory);

  // Some steps of one member; returns the sum of their errors.
  size_t (*advance_bytes)(const AdvanceTask&);
  float (*advance)(const AdvanceTask&, const AdvanceMember&, void* memory);
};

// Those of the best instruction set that this processor has, or of the one that HEADCOUNT_KERNELS_CPU names.
const Kernels& chosen_kernels();

}  // namespace headcount
