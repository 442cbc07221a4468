// The arguments of the kernels, and where a block keeps its arrays: read by the kernels, and by who launches them.
#pragma once
#include "../layout.h"

namespace headcount {

#if !defined(__CUDACC__)
struct alignas(16) float4 {
  float x, y, z, w;
};
#endif

// A block takes a *tile* of sequences at a time, some per warp, and sums their gradients. How many is a matter of the
// model's sizes alone, so that sums keep their order: fewer where sequences are long or models wide.
constexpr int WARPS = 8;
constexpr int THREADS = 32 * WARPS;
constexpr int MOST_PER_WARP = 4;

// A warp's own copy of 32 tokens, written with a lane per token and read with a lane per hidden unit.
template <int QUADS>
struct Staged {
  float4 token[32][QUADS];
  float weight[32][4];
  float slope[32][4];
};

// Everything a launch needs; the same for all blocks.
struct Advance {
  Sizes sizes;
  Objective objective;
  int32_t masks;
  int32_t members, room, batch, target_width;
  int32_t tiles;          // per batch
  int32_t team;           // blocks that share a member
  int32_t shared_scores;  // 1: weights and slopes of a tile are in shared memory
  float beta, clip, second_moment_decay, second_moment_rest, weight_decay;  // the rest is 1 - decay
  int64_t team_scratch, block_scratch;  // floats of scratch memory per team and per block

  const float* tokens;
  const float* targets;
  const int32_t* chosen;  // [members, room, batch]
  const float* rates;     // [members, room]
  const int32_t* step;
  const int32_t* heads;
  const int32_t* count;
  float* weights;
  float* mean;
  float* square;
  float* error;  // errors are added to it
  float* scratch;
  int32_t* turn;  // the next member, then one counter per team for its barrier
};

// The sums over a tile: what the gradient of every weight is made of. Sizes are those of the padded model.
struct Partial {
  int32_t rows, bias, direction;  // [4 QUADS, hidden] [hidden] [heads, hidden], in one piece
  int32_t values, value_bias;     // [total, hidden] [total]
  int32_t outputs, output_bias;   // [total, hidden] [hidden]
  int32_t last, last_bias;        // [outputs, hidden] [outputs]
  int32_t error;                  // [1]
  int32_t places;                 // [length, hidden] concatenated; [length, heads] and [length, total] additive
  int32_t size;

  HEADCOUNT_BOTH Partial(const Sizes& s, int quads) {
    const int32_t total = s.total();
    int32_t next = 0;
    auto take = [&next](int32_t count) {
      const int32_t first = next;
      next += count;
      return first;
    };
    rows = take(4 * quads * s.hidden);
    bias = take(s.hidden);
    direction = take(s.heads * s.hidden);
    values = take(total * s.hidden);
    value_bias = take(total);
    outputs = take(total * s.hidden);
    output_bias = take(s.hidden);
    last = take(s.outputs * s.hidden);
    last_bias = take(s.outputs);
    error = take(1);
    places = next;
    if (s.positions == Positions::concatenated) take(s.length * s.hidden);
    if (s.positions == Positions::additive) take(s.length * (s.heads + total));
    size = next;
  }
};

HEADCOUNT_BOTH inline int32_t padded_heads(int32_t heads) { return (heads + 3) / 4 * 4; }
HEADCOUNT_BOTH inline int64_t fours(int64_t count) { return (count + 3) / 4 * 4; }

// Memory that is given out one array after the other, each at a multiple of 16 bytes.
struct Memory {
  float* first;
  int64_t taken = 0;  // floats

  HEADCOUNT_BOTH float* take(int64_t count) {
    float* place = first + taken;
    taken += fours(count);
    return place;
  }
};

// The arrays of a block: the folded weights, and what a tile needs. Strides are odd where lanes walk along columns.
// Of a LARGE model most are in scratch memory.
template <int TOKEN_QUADS, int SEQUENCES_PER_WARP, bool LARGE>
struct Block {
  static constexpr int QUADS = TOKEN_QUADS, PER_WARP = SEQUENCES_PER_WARP, TILE = WARPS * PER_WARP;
  float4* rows;         // [hidden, QUADS]
  float* direction;     // [hidden, padded_heads]
  Staged<QUADS>* staged;
  float* bias;          // [hidden]
  float* queries;       // [heads, rank]
  float* towards;       // [heads, total]: beta K_i^T Q_i c0
  float* d_queries;     // [heads, rank]
  float* d_towards;     // [heads, total]
  float* values;        // [hidden, total + 1]: (V_i W2)^T
  float* value_bias;    // [total]
  float* outputs;       // [total, hidden + 1]: (W3 O)^T
  float* output_bias;   // [hidden]
  float* value;         // [TILE, total4]
  float* d_value;       // [TILE, total4]
  float* activation;    // [TILE, hidden4]
  float* d_before;      // [TILE, hidden4]: the gradient before the GELU
  float* d_answer;      // [TILE, outputs]
  float* loss;          // [TILE]
  float* pooled;        // [TILE, heads, hidden4 + 4]
  float* sums;          // [WARPS, 4 QUADS + 1 + heads, hidden], in the place of `pooled`, which is no longer needed
  float* turned;        // [hidden, total + 1]: the second layer of the encoder, transposed; there, too
  float* d_pooled;      // [TILE, d_pooled_stride]: [hidden, padded_heads] of every sequence
  float* gradient;      // Partial, summed over tiles; shares the place of pooled and d_pooled where it fits
  float* weights;       // [TILE, length, heads]
  float* slopes;        // [TILE, length, heads]
  float* place_bias;    // [length, hidden], concatenated
  float* place_score;   // [length, heads], additive
  float* place_value;   // [length, total], additive
  int32_t pooled_stride, d_pooled_stride, total4, hidden4;
  int64_t shared_floats, scratch_floats;

  // Lays the arrays out; pointers are offsets until `shared` and `scratch` are given.
  HEADCOUNT_BOTH Block(const Advance& run, float* shared, float* scratch) {
    const Sizes& s = run.sizes;
    const int32_t total = s.total(), four = padded_heads(s.heads);
    Memory inside{shared}, outside{scratch};
    auto keep = [&](int64_t count) { return inside.take(count); };
    auto put = [&](int64_t count) { return outside.take(count); };
    auto take = [&](int64_t count) { return LARGE ? outside.take(count) : inside.take(count); };
    total4 = int32_t(fours(total));
    hidden4 = int32_t(fours(s.hidden));
    pooled_stride = s.heads * (hidden4 + 4);
    d_pooled_stride = s.hidden * four + 4;
    rows = reinterpret_cast<float4*>(keep(int64_t(s.hidden) * 4 * QUADS));
    direction = keep(int64_t(s.hidden) * four);
    staged = reinterpret_cast<Staged<QUADS>*>(keep(WARPS * int64_t(sizeof(Staged<QUADS>) / 4)));
    bias = keep(s.hidden);
    queries = take(s.heads * s.rank);
    towards = take(s.heads * total);
    d_queries = take(s.heads * s.rank);
    d_towards = take(s.heads * total);
    values = take(int64_t(s.hidden) * (total + 1));
    value_bias = take(total);
    outputs = take(int64_t(total) * (s.hidden + 1));
    output_bias = take(s.hidden);
    value = take(TILE * int64_t(total4));
    d_value = take(TILE * int64_t(total4));
    activation = take(TILE * int64_t(hidden4));
    d_before = take(TILE * int64_t(hidden4));
    d_answer = take(TILE * int64_t(s.outputs));
    loss = take(TILE);
    auto largest = [](int64_t a, int64_t b) { return a > b ? a : b; };
    const int64_t kept = TILE * int64_t(pooled_stride), width = int64_t(s.hidden) * (total + 1);
    const int64_t tile = TILE * int64_t(d_pooled_stride), partial = Partial(s, QUADS).size;
    pooled = take(largest(largest(kept, width), WARPS * int64_t(4 * QUADS + 1 + s.heads) * s.hidden));
    sums = turned = pooled;
    // During the update the tile's arrays are free.
    d_pooled = take(largest(tile, partial));
    gradient = d_pooled;
    auto scores = [&](int64_t count) { return run.shared_scores ? keep(count) : put(count); };
    weights = scores(int64_t(TILE) * s.length * s.heads);
    slopes = scores(int64_t(TILE) * s.length * s.heads);
    const bool additive = s.positions == Positions::additive;
    place_bias = put(s.positions == Positions::concatenated ? int64_t(s.length) * s.hidden : 0);
    place_score = put(additive ? int64_t(s.length) * s.heads : 0);
    place_value = put(additive ? int64_t(s.length) * total : 0);
    shared_floats = inside.taken;
    scratch_floats = outside.taken;
  }
};

constexpr int MAX_AXES = 6;

// Where a member's part of an array begins: leading axes may be shared, with a stride of 0.
struct Strides {
  int64_t of[MAX_AXES];
};

struct Pool {
  int32_t members, axes, size[MAX_AXES];
  int32_t batch, tiles, length, dim, hidden, heads, bias_rows, offset_rows, masks;
  int64_t block_scratch;
  const float *tokens, *weight, *bias, *direction, *offset;
  const float *weights_in, *d_pooled, *d_weights;
  Strides tokens_strides, weight_strides, bias_strides, direction_strides, offset_strides;
  Strides weights_strides, d_pooled_strides, d_weights_strides;
  float *pooled, *weights;                           // of the forward pass
  float *d_weight, *d_bias, *d_direction, *d_offset;  // of the gradient
  float *partials, *scratch;

  HEADCOUNT_BOTH int64_t start(int member, const Strides& strides) const {
    int64_t place = 0;
    for (int axis = axes - 1; axis >= 0; --axis) {
      place += member % size[axis] * strides.of[axis];
      member /= size[axis];
    }
    return place;
  }
  // Of one tile: rows, bias, directions, biases and offsets of places.
  HEADCOUNT_BOTH int32_t numbers(int quads) const {
    return (4 * quads + 1 + heads) * hidden + (bias_rows > 1 ? length * hidden : 0) + offset_rows * heads;
  }
};

// The arrays of a block in shared memory; those of a LARGE model's gradient are in scratch memory.
template <int TOKEN_QUADS, bool LARGE>
struct PoolBlock {
  static constexpr int QUADS = TOKEN_QUADS, TILE = WARPS * MOST_PER_WARP;
  float4* rows;
  float* direction;
  Staged<QUADS>* staged;
  float* bias;
  float* d_pooled;  // [TILE, stride]
  float* sums;
  float* slopes;
  int32_t stride;
  int64_t shared_floats, scratch_floats;

  HEADCOUNT_BOTH PoolBlock(const Pool& run, bool gradient, float* shared, float* scratch) {
    const int32_t four = padded_heads(run.heads);
    Memory inside{shared}, outside{scratch};
    auto keep = [&](int64_t count) { return inside.take(count); };
    auto put = [&](int64_t count) { return outside.take(count); };
    auto take = [&](int64_t count) { return LARGE ? outside.take(count) : inside.take(count); };
    stride = run.hidden * four + 4;
    rows = reinterpret_cast<float4*>(keep(int64_t(run.hidden) * 4 * QUADS));
    direction = keep(int64_t(run.hidden) * four);
    staged = reinterpret_cast<Staged<QUADS>*>(keep(WARPS * int64_t(sizeof(Staged<QUADS>) / 4)));
    bias = keep(run.hidden);
    d_pooled = take(gradient ? TILE * int64_t(stride) : 0);
    sums = take(gradient ? WARPS * int64_t(4 * QUADS + 1 + run.heads) * run.hidden : 0);
    slopes = put(gradient ? int64_t(TILE) * run.length * run.heads : 0);
    shared_floats = inside.taken;
    scratch_floats = outside.taken;
  }
};

}  // namespace headcount
