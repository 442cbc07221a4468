// Whether the arrays of a call have the shapes that they should have, and where the parts of each member lie.
#pragma once
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cpu/kernels.h"
#include "xla/ffi/api/ffi.h"

namespace headcount::cpu {

namespace ffi = xla::ffi;
using Floats = ffi::Buffer<ffi::F32>;
using Integers = ffi::Buffer<ffi::S32>;
using FloatResult = ffi::Result<Floats>;

inline ffi::Error invalid(const std::string& sentence) { return ffi::Error::InvalidArgument("headcount: " + sentence); }

inline std::string text_of(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); i++) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

template <class Buffer>
std::vector<int64_t> shape_of(const Buffer& buffer) {
  const auto dimensions = buffer.dimensions();
  return {dimensions.begin(), dimensions.end()};
}

// Collects the first mistake of a call.
class Checks {
 public:
  void require(bool fine, const std::string& sentence) {
    if (!fine && error_.success()) error_ = invalid(sentence);
  }
  template <class Buffer>
  void shape(const char* name, const Buffer& buffer, const std::vector<int64_t>& wanted) {
    const auto shape = shape_of(buffer);
    require(shape == wanted,
            std::string(name) + " has shape " + text_of(shape) + "; it must be " + text_of(wanted) + ".");
  }
  bool failed() const { return error_.failure(); }
  ffi::Error error() const { return error_; }

 private:
  ffi::Error error_;
};

// An array with leading axes of members, each as long as it should be or 1.
class OfMembers {
 public:
  OfMembers(Checks& checks, const char* name, const Floats& buffer, const std::vector<int64_t>& members,
            const std::vector<int64_t>& inner)
      : first_(buffer.typed_data()), members_(members) {
    const auto shape = shape_of(buffer);
    bool fits = shape.size() == members.size() + inner.size();
    for (size_t i = 0; fits && i < shape.size(); i++) {
      const bool leading = i < members.size();
      fits = shape[i] == (leading ? members[i] : inner[i - members.size()]) || (leading && shape[i] == 1);
    }
    std::vector<int64_t> wanted = members;
    wanted.insert(wanted.end(), inner.begin(), inner.end());
    const std::string or_one = members.empty() ? "." : ", or 1 along the axes of members, which come first.";
    checks.require(fits,
                   std::string(name) + " has shape " + text_of(shape) + "; it must be " + text_of(wanted) + or_one);
    if (!fits) return;
    strides_.resize(members.size());
    int64_t stride = 1;
    for (int64_t size : inner) stride *= size;
    for (size_t i = members.size(); i-- > 0;) {
      strides_[i] = shape[i] == 1 ? 0 : stride;
      stride *= shape[i];
    }
  }
  float* at(int64_t member) const {
    float* place = first_;
    for (size_t i = members_.size(); i-- > 0; member /= members_[i]) place += member % members_[i] * strides_[i];
    return place;
  }

 private:
  float* first_;
  std::vector<int64_t> members_;
  std::vector<int64_t> strides_;
};

struct PoolCall {
  std::vector<int64_t> members;  // the leading axes
  int64_t member_count = 1;
  int64_t batch = 0;
  int64_t tiles = 0;
  int64_t bias_rows = 1;
  PoolSizes sizes{};

  PoolCall(Checks& checks, const Floats& tokens, const Floats& bias, const Floats& pooled, const Floats& offset,
           int64_t masks) {
    const auto token_shape = shape_of(tokens), bias_shape = shape_of(bias), pooled_shape = shape_of(pooled);
    const auto offset_shape = shape_of(offset);
    const auto rank = token_shape.size();
    checks.require(rank >= 3, "tokens has shape " + text_of(token_shape) + "; it must be (.., batch, length, dim).");
    checks.require(bias_shape.size() == rank - 1,
                   "bias has shape " + text_of(bias_shape) + "; it must be (.., rows, hidden).");
    checks.require(pooled_shape.size() == rank,
                   "pooled has shape " + text_of(pooled_shape) + "; it must be (.., batch, heads, hidden).");
    checks.require(offset_shape.size() == rank - 1,
                   "offset has shape " + text_of(offset_shape) + "; it must be (.., rows, heads).");
    checks.require(masks == 0 || masks == 1, "masks is " + std::to_string(masks) + "; it must be 0 or 1.");
    if (checks.failed()) return;
    batch = token_shape[rank - 3];
    const int64_t length = token_shape[rank - 2], dim = token_shape[rank - 1];
    const int64_t hidden = pooled_shape[rank - 1], heads = pooled_shape[rank - 2];
    bias_rows = bias_shape[rank - 3];
    const int64_t offset_rows = offset_shape[rank - 3];
    for (const auto& [name, size] : {std::pair("length", length), {"dim", dim}, {"hidden", hidden}, {"heads", heads}}) {
      checks.require(size > 0, std::string(name) + " is 0; it must be at least 1.");
    }
    checks.require(
        bias_rows == 1 || bias_rows == length,
        "bias has " + std::to_string(bias_rows) + " rows; it must have 1 or " + std::to_string(length) + ".");
    checks.require(
        offset_rows == 0 || offset_rows == length,
        "offset has " + std::to_string(offset_rows) + " rows; it must have 0 or " + std::to_string(length) + ".");
    const double largest =
        static_cast<double>(length) * (dim + heads + hidden) + 1.0 * heads * hidden + 1.0 * hidden * dim;
    checks.require(largest < std::numeric_limits<int32_t>::max() / 64,
                   "tokens of shape " + text_of(token_shape) + " are too many.");
    // Axes of members may be 1 in any array; in a result they are full.
    members.assign(rank - 3, 1);
    sizes = {static_cast<int32_t>(length),
             static_cast<int32_t>(dim),
             static_cast<int32_t>(hidden),
             static_cast<int32_t>(heads),
             bias_rows > 1,
             offset_rows > 0,
             masks == 1};
    tiles = (batch + tile_samples - 1) / tile_samples;
  }

  // The leading axes of a result, which are full.
  void take_members(const Floats& result) {
    const auto shape = shape_of(result);
    for (size_t i = 0; i < members.size() && i < shape.size(); i++) members[i] = shape[i];
    for (int64_t size : members) member_count *= size;
  }
  int samples(int64_t tile) const {
    return static_cast<int>(std::min<int64_t>(tile_samples, batch - tile * tile_samples));
  }
};

}  // namespace headcount::cpu
