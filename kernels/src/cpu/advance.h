// Some training steps of one member.
#pragma once
#include "cpu/adam.h"
#include "cpu/fold.h"
#include "cpu/pool.h"
#include "cpu/readout.h"

namespace headcount::HEADCOUNT_INSTRUCTIONS {

// The sizes of a member that uses some of the heads. Fewer heads than groups read fewer groups.
inline Sizes sizes_of_member(Sizes sizes, int32_t heads) {
  sizes.heads = heads;
  sizes.groups = smaller(sizes.groups, heads);
  if (sizes.positions == Positions::additive) sizes.code = sizes.total();
  return sizes;
}

// Calls visit(place in the arrays with room for all heads, place in those of the member, numbers) for all its weights.
template <class Visit>
inline void for_each_run(const Model& padded, const Model& member, Visit visit) {
  const Layout &from = padded.layout, &to = member.layout;
  const Sizes& s = member.sizes;
  const int total = s.total();
  auto rows = [&](int32_t first, int32_t into, int count, int row_there, int row) {
    for (int i = 0; i < count; i++) visit(first + i * row_there, into + i * row, row);
  };
  const int all = padded.total();
  rows(from.encoder_in_weight, to.encoder_in_weight, 1, 0, s.hidden * s.read());
  rows(from.encoder_in_bias, to.encoder_in_bias, 1, 0, s.hidden);
  rows(from.encoder_out_weight, to.encoder_out_weight, 1, 0, total * s.hidden);
  rows(from.encoder_out_bias, to.encoder_out_bias, 1, 0, total);
  rows(from.position_table, to.position_table, s.length, padded.sizes.code, s.code);
  rows(from.class_token, to.class_token, 1, 0, total);
  rows(from.query, to.query, s.heads * s.rank, all, total);
  rows(from.key, to.key, s.groups * s.rank, all, total);
  rows(from.value, to.value, s.groups * s.head_dim, all, total);
  rows(from.output, to.output, total, all, total);
  rows(from.readout_in_weight, to.readout_in_weight, s.hidden, all, total);
  rows(from.readout_in_bias, to.readout_in_bias, 1, 0, s.hidden);
  rows(from.readout_out_weight, to.readout_out_weight, 1, 0, s.outputs * s.hidden);
  rows(from.readout_out_bias, to.readout_out_bias, 1, 0, s.outputs);
}

inline PoolSizes pool_sizes_of(const Model& model, bool masks) {
  const Sizes& s = model.sizes;
  return {s.length, s.dim, s.hidden, s.heads, model.concatenates_positions(), model.adds_positions(), masks};
}

inline size_t bytes_of_sample(const PoolSizes& sizes) {
  return sizeof(float) * sizes.length * (static_cast<size_t>(sizes.dim) + sizes.heads + sizes.hidden);
}

// Samples per tile: fewer where sequences are so long that what is kept of a tile would leave the cache.
inline int samples_per_tile(const PoolSizes& sizes) {
  int samples = tile_samples;
  while (samples > lane_count && samples * bytes_of_sample(sizes) > cache_bytes) samples /= 2;
  return samples;
}

struct AdvanceMemory {
  PoolSizes sizes;
  int samples;        // per tile
  int groups;         // of lane_count samples per tile
  int block;          // tokens of which r is computed at a time
  bool keeps_hidden;  // r of all tokens of a tile
  float* weights;
  float* mean;
  float* square;
  float* gradient;
  Folded folded;
  FoldedGradients sums;
  ReadoutTile tile;
  PoolSums lane_sums;
  Lanes* hidden;       // [groups, T, N] or [block, N]
  Lanes* tokens;       // [groups, T, d]
  IntLanes* absent;    // [groups, T]
  Lanes* attention;    // [groups, h, T]
  Lanes* pooled;       // [groups, h, N]
  Lanes* d_pooled;     // [h, N]
  Lanes* d_attention;  // [h, T], additive positions alone
  float* zeros;        // the gradient of a sample that is not there

  AdvanceMemory(Memory& memory, const Model& model, bool masks)
      : sizes(pool_sizes_of(model, masks)),
        samples(samples_per_tile(sizes)),
        groups(samples / lane_count),
        keeps_hidden(samples * bytes_of_sample(sizes) <= cache_bytes),
        weights(memory.floats(model.layout.size)),
        mean(memory.floats(model.layout.size)),
        square(memory.floats(model.layout.size)),
        gradient(memory.floats(model.layout.size)),
        folded(memory, model),
        sums(memory, model),
        tile(memory, model, samples) {
    const size_t length = sizes.length, heads = sizes.heads;
    block = keeps_hidden ? sizes.length : tokens_per_block(sizes);
    hidden = memory.lanes((keeps_hidden ? groups * length : block) * sizes.hidden);
    lane_sums = PoolSums(memory, sizes);
    tokens = memory.lanes(groups * length * sizes.dim);
    absent = masks ? memory.masks(groups * length) : nullptr;
    attention = memory.lanes(groups * heads * length);
    pooled = memory.lanes(groups * heads * sizes.hidden);
    d_pooled = memory.lanes(heads * sizes.hidden);
    d_attention = model.adds_positions() ? memory.lanes(heads * length) : nullptr;
    zeros = memory.floats(heads * (length + sizes.hidden));
  }

  Hidden hidden_of(int group) const {
    const ptrdiff_t length = sizes.length;
    return {keeps_hidden ? hidden + group * length * sizes.hidden : hidden, block};
  }
  LaneTokens tokens_of(int group) const {
    const ptrdiff_t length = sizes.length;
    return {{tokens + group * length * sizes.dim, sizes.dim, 1}, absent ? absent + group * length : nullptr};
  }
  Grid<Lanes> attention_of(int group) const {
    const ptrdiff_t length = sizes.length;
    return {attention + group * length * sizes.heads, 1, length};
  }
  Lanes* pooled_of(int group) const { return pooled + static_cast<ptrdiff_t>(group) * sizes.heads * sizes.hidden; }
};

inline size_t advance_bytes(const AdvanceTask& task) {
  size_t most = 0;
  for (int heads = 1; heads <= task.sizes.heads; heads++) {
    Memory counted(nullptr);
    AdvanceMemory(counted, Model(sizes_of_member(task.sizes, heads), task.beta), task.masks);
    most = counted.bytes() > most ? counted.bytes() : most;
  }
  return most;
}

// The error of one tile of a batch; its gradients are added to those in `memory`.
inline double tile_error(const AdvanceTask& task, const Model& model, const AdvanceMemory& memory,
                         const int32_t* chosen, int samples) {
  const PoolSizes& sizes = memory.sizes;
  const PoolWeights pool_weights = {
      memory.weights + model.layout.encoder_in_weight, model.sizes.read(),
      model.concatenates_positions() ? memory.folded.token_bias : memory.weights + model.layout.encoder_in_bias,
      memory.folded.direction, memory.folded.offset};
  const PoolGradients pool_gradients = {memory.sums.weight, memory.sums.bias, memory.sums.direction,
                                        memory.sums.offset};
  const int pooled_row = sizes.heads * sizes.hidden, attention_row = sizes.heads * sizes.length;
  const ptrdiff_t example = static_cast<ptrdiff_t>(sizes.length) * sizes.dim;
  const int target = task.objective == Objective::classification ? 1 : model.sizes.outputs;
  const float* targets[tile_samples] = {};
  for (int i = 0; i < samples; i++) targets[i] = task.targets + static_cast<ptrdiff_t>(chosen[i]) * target;

  for (int first = 0, group = 0; first < samples; first += lane_count, group++) {
    const int some = smaller(lane_count, samples - first);
    Rows rows;
    for (int lane = 0; lane < lane_count; lane++) {
      rows.of_lane[lane] = task.tokens + chosen[first + smaller(lane, some - 1)] * example;
    }
    const LaneTokens tokens = memory.tokens_of(group);
    const Grid<Lanes> attention = memory.attention_of(group);
    read_lane_tokens(sizes, rows, tokens);
    pool_lanes(sizes, pool_weights, tokens, attention, memory.pooled_of(group), memory.hidden_of(group));
    from_lanes(memory.tile.pooled + first * pooled_row, pooled_row, some, memory.pooled_of(group), pooled_row);
    if (model.adds_positions()) {
      from_lanes(memory.tile.attention + static_cast<ptrdiff_t>(first) * attention_row, attention_row, some,
                 attention.first, attention_row);
    }
  }
  const double error = read_out(model, task.objective, memory.weights, memory.folded, memory.tile, targets, samples,
                                task.batch, memory.sums);
  for (int first = 0, group = 0; first < samples; first += lane_count, group++) {
    const int some = smaller(lane_count, samples - first);
    auto read = [&](Lanes* into, const float* from, ptrdiff_t row) {
      to_lanes(into, rows_of(from + first * row, row, some, memory.zeros), row);
    };
    read(memory.d_pooled, memory.tile.d_pooled, pooled_row);
    if (model.adds_positions()) read(memory.d_attention, memory.tile.d_attention, attention_row);
    const LaneGradients given = {memory.attention_of(group),
                                 {memory.d_attention, 1, sizes.length},
                                 {memory.d_pooled, sizes.hidden, 1}};
    pool_lanes_gradient(sizes, pool_weights, memory.tokens_of(group), given, pool_gradients, memory.hidden_of(group),
                        memory.keeps_hidden, memory.lane_sums);
  }
  return error;
}

// Returns the sum over the steps of the error of their batches.
inline float advance(const AdvanceTask& task, const AdvanceMember& member, void* memory_given) {
  const Model padded(task.sizes, task.beta), model(sizes_of_member(task.sizes, member.heads), task.beta);
  Memory parts(memory_given);
  const AdvanceMemory memory(parts, model, task.masks);
  const Adam adam = {task.clip, task.second_moment_decay, task.weight_decay};
  const size_t bytes = sizeof(float) * rounded_up(model.layout.size, lane_count);
  // The memory may have served a larger member: what follows the arrays must be zero.
  float* const arrays[] = {memory.weights, memory.mean, memory.square, memory.gradient};
  for (float* array : arrays) memset(array, 0, bytes);
  memset(memory.zeros, 0, sizeof(float) * memory.sizes.heads * (memory.sizes.length + memory.sizes.hidden));
  for_each_run(padded, model, [&](int32_t there, int32_t here, int count) {
    memcpy(memory.weights + here, member.weights + there, sizeof(float) * count);
    memcpy(memory.mean + here, member.mean + there, sizeof(float) * count);
    memcpy(memory.square + here, member.square + there, sizeof(float) * count);
  });
  float errors = 0;
  for (int step = 0; step < member.steps; step++) {
    const int32_t* chosen = member.chosen + static_cast<ptrdiff_t>(step) * task.batch;
    fold(model, memory.weights, memory.folded);
    memory.sums.clear();
    memory.lane_sums.clear(memory.sizes);
    double error = 0;
    for (int first = 0; first < task.batch; first += memory.samples) {
      error += tile_error(task, model, memory, chosen + first, smaller(memory.samples, task.batch - first));
    }
    const PoolGradients pool_gradients = {memory.sums.weight, memory.sums.bias, memory.sums.direction, nullptr};
    memory.lane_sums.add_to(memory.sizes, pool_gradients);
    unfold(model, memory.weights, memory.folded, memory.sums, memory.gradient);
    update(adam, member.rates[step], member.steps_taken + step + 1, memory.gradient, memory.weights, memory.mean,
           memory.square, model.layout.size);
    errors += static_cast<float>(error / task.batch);
  }
  for_each_run(padded, model, [&](int32_t there, int32_t here, int count) {
    memcpy(member.weights + there, memory.weights + here, sizeof(float) * count);
    memcpy(member.mean + there, memory.mean + here, sizeof(float) * count);
    memcpy(member.square + there, memory.square + here, sizeof(float) * count);
  });
  return errors;
}

}  // namespace headcount::HEADCOUNT_INSTRUCTIONS
