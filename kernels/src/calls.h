// The arguments of the operations, alike on CPUs and GPUs: what they must be, and the sizes that follow from them.
#pragma once
#include <limits>
#include <string>
#include <utility>

#include "checks.h"
#include "layout.h"

namespace headcount {

// Sizes from here on are refused: what is counted in 32 bits stays far below their end.
constexpr double LARGEST = std::numeric_limits<int32_t>::max() / 64;
constexpr int64_t MOST = 1 << 30;

struct PoolCall {
  Shape members;  // the leading axes
  int64_t member_count = 1;
  int64_t batch = 0, length = 0, dim = 0, hidden = 0, heads = 0, bias_rows = 0, offset_rows = 0;
  bool masks = false;
  // Of one member.
  Shape tokens, weight, bias, direction, offset, pooled, weights;

  // `full` is a result: its leading axes, of which there are as many in every array, are full.
  PoolCall(Checks& checks, const Floats& all_tokens, const Floats& all_biases, const Floats& all_pooled,
           const Floats& all_offsets, const Floats& full, int64_t given_masks) {
    const auto token_shape = shape_of(all_tokens), bias_shape = shape_of(all_biases);
    const auto pooled_shape = shape_of(all_pooled), offset_shape = shape_of(all_offsets), full_shape = shape_of(full);
    const auto rank = token_shape.size();
    checks.require(rank >= 3, "tokens has shape " + text_of(token_shape) + "; it must be (.., batch, length, dim).");
    checks.require(bias_shape.size() + 1 == rank,
                   "bias has shape " + text_of(bias_shape) + "; it must be (.., rows, hidden).");
    checks.require(pooled_shape.size() == rank,
                   "pooled has shape " + text_of(pooled_shape) + "; it must be (.., batch, heads, hidden).");
    checks.require(offset_shape.size() + 1 == rank,
                   "offset has shape " + text_of(offset_shape) + "; it must be (.., rows, heads).");
    checks.require(full_shape.size() + 3 >= rank,
                   "a result has shape " + text_of(full_shape) + "; it has fewer axes of members than tokens.");
    checks.require(given_masks == 0 || given_masks == 1,
                   "masks is " + std::to_string(given_masks) + "; it must be 0 or 1.");
    if (checks.failed()) return;
    batch = token_shape[rank - 3], length = token_shape[rank - 2], dim = token_shape[rank - 1];
    heads = pooled_shape[rank - 2], hidden = pooled_shape[rank - 1];
    bias_rows = bias_shape[rank - 3], offset_rows = offset_shape[rank - 3];
    masks = given_masks == 1;
    for (const auto& [name, size] : {std::pair("length", length), {"dim", dim}, {"hidden", hidden}, {"heads", heads}}) {
      checks.require(size > 0, std::string(name) + " is 0; it must be at least 1.");
    }
    checks.require(
        bias_rows == 1 || bias_rows == length,
        "bias has " + std::to_string(bias_rows) + " rows; it must have 1 or " + std::to_string(length) + ".");
    checks.require(
        offset_rows == 0 || offset_rows == length,
        "offset has " + std::to_string(offset_rows) + " rows; it must have 0 or " + std::to_string(length) + ".");
    members.assign(full_shape.begin(), full_shape.begin() + (rank - 3));
    double count = 1;
    for (int64_t size : members) count *= size, member_count *= size;
    const double largest = 1.0 * length * (dim + heads + hidden) + 1.0 * heads * hidden + 1.0 * hidden * dim;
    checks.require(largest < LARGEST && batch < MOST && count < MOST,
                   "tokens of shape " + text_of(token_shape) + " are too many.");
    tokens = {batch, length, dim}, weight = {hidden, dim}, bias = {bias_rows, hidden};
    direction = {heads, hidden}, offset = {offset_rows, heads};
    pooled = {batch, heads, hidden}, weights = {batch, length, heads};
  }

  OfMembers argument(Checks& checks, const char* name, const Floats& array, const Shape& of_member) const {
    return OfMembers(checks, name, array, members, of_member);
  }
  // A result has a place for every member.
  OfMembers result(Checks& checks, const char* name, const Floats& array, const Shape& of_member) const {
    Shape wanted = members;
    wanted.insert(wanted.end(), of_member.begin(), of_member.end());
    checks.shape(name, array, wanted);
    return OfMembers(checks, name, array, members, of_member);
  }
};

// What a call of `advance` says of the model and its training.
struct AdvanceAttributes {
  int64_t length, dim, code, hidden, heads, groups, rank, head_dim, outputs, positions, objective, masks;
  float beta, clip, second_moment_decay, weight_decay;

  Sizes sizes() const {
    return {int32_t(length), int32_t(dim),  int32_t(code),     int32_t(hidden),  int32_t(heads),
            int32_t(groups), int32_t(rank), int32_t(head_dim), int32_t(outputs), Positions(int32_t(positions))};
  }
  // The numbers of all arrays, which may not fit 32 bits.
  double numbers() const {
    const double total = 1.0 * heads * head_dim, read = dim + (positions == 2 ? code : 0);
    return hidden * (read + 2 * total + outputs + 2) + 1.0 * length * code + 2 * total + outputs +
           total * (1.0 * heads * rank + 1.0 * groups * (rank + head_dim) + total);
  }
  void check(Checks& checks) const {
    const auto at_least_1 = [&](const char* name, int64_t given) {
      checks.require(given >= 1 && given < 1 << 24,
                     std::string(name) + " is " + std::to_string(given) + "; it must be 1 to " +
                         std::to_string((1 << 24) - 1) + ".");
    };
    const auto at_most = [&](const char* name, int64_t given, int64_t most) {
      checks.require(given >= 0 && given <= most, std::string(name) + " is " + std::to_string(given) +
                                                      "; it must be 0 to " + std::to_string(most) + ".");
    };
    at_least_1("length", length);
    at_least_1("dim", dim);
    at_least_1("hidden", hidden);
    at_least_1("heads", heads);
    at_least_1("groups", groups);
    at_least_1("rank", rank);
    at_least_1("head_dim", head_dim);
    at_least_1("outputs", outputs);
    at_most("groups", groups, heads);
    at_most("positions", positions, 2);
    at_most("objective", objective, 1);
    at_most("masks", masks, 1);
    const int64_t fitting = positions == 0 ? 0 : positions == 1 ? heads * head_dim : code;
    checks.require(code == fitting,
                   "code is " + std::to_string(code) + "; it must be " + std::to_string(fitting) + ".");
    if (positions == 2) at_least_1("code", code);
    checks.require(numbers() < LARGEST, "heads, head_dim, hidden and length are too large.");
  }
};

// The arrays of a call of `advance`: arguments, then results.
struct AdvanceArrays {
  Floats weights, mean, square;
  Integers step, heads, count;
  Floats rates;
  Integers chosen;
  Floats tokens, targets;
  Floats new_weights, new_mean, new_square, error;
};

// The sizes that arrays give.
struct AdvanceCall {
  int64_t members = 0, room = 0, batch = 0, examples = 0;
  int64_t size = 0;  // numbers per member

  AdvanceCall(Checks& checks, const AdvanceAttributes& given, const AdvanceArrays& arrays) {
    given.check(checks);
    const auto chosen_shape = shape_of(arrays.chosen), token_shape = shape_of(arrays.tokens);
    checks.require(chosen_shape.size() == 3,
                   "chosen has shape " + text_of(chosen_shape) + "; it must be (members, steps, batch).");
    checks.require(token_shape.size() == 3,
                   "tokens has shape " + text_of(token_shape) + "; it must be (examples, length, dim).");
    if (checks.failed()) return;
    members = chosen_shape[0], room = chosen_shape[1], batch = chosen_shape[2], examples = token_shape[0];
    size = Layout(given.sizes()).size;
    checks.require(batch > 0 && batch < MOST,
                   "chosen has shape " + text_of(chosen_shape) + "; a batch must have an example.");
    checks.require(members < MOST && room < MOST,
                   "chosen has shape " + text_of(chosen_shape) + "; these are too many steps.");
    checks.require(examples > 0 && examples < MOST,
                   "tokens has shape " + text_of(token_shape) + "; there must be an example.");
    checks.shape("weights", arrays.weights, {members, size});
    checks.shape("mean", arrays.mean, {members, size});
    checks.shape("square", arrays.square, {members, size});
    checks.shape("step", arrays.step, {members});
    checks.shape("heads", arrays.heads, {members});
    checks.shape("count", arrays.count, {});
    checks.shape("rates", arrays.rates, {members, room});
    checks.shape("tokens", arrays.tokens, {examples, given.length, given.dim});
    checks.shape("targets", arrays.targets, {examples, given.objective == 1 ? 1 : given.outputs});
    checks.shape("weights of the results", arrays.new_weights, {members, size});
    checks.shape("mean of the results", arrays.new_mean, {members, size});
    checks.shape("square of the results", arrays.new_square, {members, size});
    checks.shape("error", arrays.error, {members});
  }
};

}  // namespace headcount

XLA_FFI_REGISTER_STRUCT_ATTR_DECODING(
    headcount::AdvanceAttributes, ::xla::ffi::StructMember<int64_t>("length"), ::xla::ffi::StructMember<int64_t>("dim"),
    ::xla::ffi::StructMember<int64_t>("code"), ::xla::ffi::StructMember<int64_t>("hidden"),
    ::xla::ffi::StructMember<int64_t>("heads"), ::xla::ffi::StructMember<int64_t>("groups"),
    ::xla::ffi::StructMember<int64_t>("rank"), ::xla::ffi::StructMember<int64_t>("head_dim"),
    ::xla::ffi::StructMember<int64_t>("outputs"), ::xla::ffi::StructMember<int64_t>("positions"),
    ::xla::ffi::StructMember<int64_t>("objective"), ::xla::ffi::StructMember<int64_t>("masks"),
    ::xla::ffi::StructMember<float>("beta"), ::xla::ffi::StructMember<float>("clip"),
    ::xla::ffi::StructMember<float>("second_moment_decay"), ::xla::ffi::StructMember<float>("weight_decay"));
