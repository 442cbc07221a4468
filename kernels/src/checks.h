// Whether the arrays of a call have the shapes that they should have, and where the parts of each member lie.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace headcount {

namespace ffi = xla::ffi;
using Floats = ffi::Buffer<ffi::F32>;
using Integers = ffi::Buffer<ffi::S32>;
using FloatResult = ffi::Result<Floats>;
using Shape = std::vector<int64_t>;

inline ffi::Error invalid(const std::string& sentence) {
  return ffi::Error::InvalidArgument("headcount kernels: " + sentence);
}

// XLA puts RESOURCE_EXHAUSTED before it, by which a run knows that fewer models at once may fit.
inline ffi::Error no_memory(size_t bytes) {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted,
                    "headcount kernels: there is no memory for " + std::to_string(bytes) + " bytes of scratch.");
}

inline std::string text_of(const Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); i++) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

template <class Buffer>
Shape shape_of(const Buffer& buffer) {
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
  void shape(const char* name, const Buffer& buffer, const Shape& wanted) {
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
  OfMembers(Checks& checks, const char* name, const Floats& buffer, const Shape& members, const Shape& inner)
      : first_(buffer.typed_data()), members_(members) {
    const auto shape = shape_of(buffer);
    bool fits = shape.size() == members.size() + inner.size();
    for (size_t i = 0; fits && i < shape.size(); i++) {
      const bool leading = i < members.size();
      fits = shape[i] == (leading ? members[i] : inner[i - members.size()]) || (leading && shape[i] == 1);
    }
    Shape wanted = members;
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
  float* first() const { return first_; }
  // Numbers from one member to the next along each axis of members; 0 where they share. Empty after a mistake.
  const std::vector<int64_t>& strides() const { return strides_; }

 private:
  float* first_;
  Shape members_;
  std::vector<int64_t> strides_;
};

}  // namespace headcount
