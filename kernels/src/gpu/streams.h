// XLA's stream and those next to it, with the driver's context that launches on them need.
#pragma once
#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "checks.h"
#include "gpu/arrays.h"
#include "gpu/driver.h"

extern "C" const unsigned char headcount_fatbin[];

namespace headcount {

constexpr int PROCESSORS = 16, MOST_SHARED = 97, MAX_SHARED_OF_FUNCTION = 8;  // numbers of the driver's attributes

// The driver's context is that of XLA's stream as long as this lives.
class OnStream {
 public:
  explicit OnStream(void* stream) : driver_(Driver::get()), stream_(stream) {
    if (!driver_.missing.empty()) {
      error_ = "the NVIDIA driver has no " + driver_.missing;
      return;
    }
    Driver::Handle context = nullptr;
    if (check(driver_.stream_context(stream, &context))) pushed_ = check(driver_.push_context(context));
    context_ = context;
    Driver::Device device = 0;
    if (pushed_ && check(driver_.current_device(&device))) {
      check(driver_.device_attribute(&processors, PROCESSORS, device));
      check(driver_.device_attribute(&most_shared, MOST_SHARED, device));
    }
  }
  ~OnStream() {
    Driver::Handle context = nullptr;
    if (pushed_) driver_.pop_context(&context);
  }
  bool ok() const { return error_.empty(); }
  ffi::Error error() const { return ffi::Error::Internal("headcount kernels: " + error_); }

  bool check(Driver::Result result) {
    if (result && error_.empty()) error_ = driver_.text(result);
    return !result;
  }

  Driver::Handle function(const std::string& name) {
    static std::mutex lock;
    static std::map<Driver::Handle, Driver::Handle> modules;
    const std::lock_guard<std::mutex> guard(lock);
    auto found = modules.find(context_);
    if (found == modules.end()) {
      Driver::Handle module = nullptr;
      if (!check(driver_.load_module(&module, headcount_fatbin))) return nullptr;
      found = modules.emplace(context_, module).first;
    }
    Driver::Handle function = nullptr;
    if (!check(driver_.find_function(&function, found->second, name.c_str()))) return nullptr;
    // Always the most that is there: several threads may launch one kernel with different sizes.
    check(driver_.set_function_attribute(function, MAX_SHARED_OF_FUNCTION, most_shared - RESERVED_SHARED));
    return function;
  }

  int places(Driver::Handle function, size_t shared) {
    int blocks = 0;
    check(driver_.blocks_per_processor(&blocks, function, THREADS, shared));
    return std::max(1, blocks) * processors;
  }

  void launch(Driver::Handle function, int blocks, size_t shared, void* run, bool together) {
    void* arguments[] = {run};
    if (!ok()) return;
    check(together ? driver_.launch_together(function, blocks, 1, 1, THREADS, 1, 1, shared, stream_, arguments)
                   : driver_.launch(function, blocks, 1, 1, THREADS, 1, 1, shared, stream_, arguments, nullptr));
  }
  void clear(void* words, size_t count) {
    check(driver_.set_words(reinterpret_cast<Driver::Address>(words), 0, count, stream_));
  }
  void copy(void* to, const void* from, size_t bytes) {
    if (to == from) return;
    const auto target = reinterpret_cast<Driver::Address>(to), source = reinterpret_cast<Driver::Address>(from);
    check(driver_.copy(target, source, bytes, stream_));
  }

  Driver::Handle context() const { return context_; }
  void onto(void* stream) { stream_ = stream; }  // what follows goes there

  int processors = 0, most_shared = 0;
  static constexpr int RESERVED_SHARED = 1 << 10;  // what kernels declare themselves

 private:
  const Driver& driver_;
  void* stream_;
  Driver::Handle context_ = nullptr;
  bool pushed_ = false;
  std::string error_;
};

// Streams next to XLA's own, on which kernels of several calls run at the same time until XLA's stream waits for them.
class Asides {
 public:
  static Asides& of(Driver::Handle context) {
    static std::mutex lock;
    static std::map<Driver::Handle, Asides> known;
    const std::lock_guard<std::mutex> guard(lock);
    return known[context];
  }

  // A stream that begins where XLA's stream is now. The caller holds `calls` from here to `mark`.
  void* fork(OnStream& on, void* stream) {
    const Driver& driver = Driver::get();
    if (streams_.empty()) {
      streams_.resize(STREAMS), done_.resize(STREAMS);
      on.check(driver.make_event(&begin_, NO_TIMING));
      for (int k = 0; k < STREAMS && on.ok(); ++k)
        on.check(driver.make_stream(&streams_[k], NON_BLOCKING)), on.check(driver.make_event(&done_[k], NO_TIMING));
    }
    void* aside = streams_[next_];
    if (on.ok() && on.check(driver.record_event(begin_, stream))) on.check(driver.wait_for_event(aside, begin_, 0));
    return aside;
  }
  // What was put on the stream that `fork` gave last is complete: `join` waits for it.
  void mark(OnStream& on) {
    on.check(Driver::get().record_event(done_[next_], streams_[next_]));
    used_[next_] = true;
    next_ = (next_ + 1) % STREAMS;
  }
  // The stream continues when everything marked is done. This takes `calls`: between `fork` and `mark` of another thread,
  // that one's work would be marked on the wrong stream and not be waited for.
  void join(OnStream& on, void* stream) {
    const std::lock_guard<std::mutex> guard(calls);
    for (int k = 0; k < STREAMS; ++k) {
      if (used_[k]) on.check(Driver::get().wait_for_event(stream, done_[k], 0));
      used_[k] = false;
    }
    next_ = 0;
  }
  std::mutex calls;

 private:
  static constexpr int STREAMS = 32;
  static constexpr unsigned NO_TIMING = 2, NON_BLOCKING = 1;
  std::vector<Driver::Handle> streams_, done_;
  Driver::Handle begin_ = nullptr;
  bool used_[STREAMS] = {};
  int next_ = 0;
};

}  // namespace headcount
