// Shares numbered pieces of work between the calling thread and those of a pool.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

namespace headcount::cpu {

// Memory that a kernel asked for: aligned for vectors, and zero.
class AlignedMemory {
 public:
  explicit AlignedMemory(size_t bytes) : first_(::operator new(bytes, std::align_val_t{64})) {
    __builtin_memset(first_, 0, bytes);
  }
  ~AlignedMemory() { ::operator delete(first_, std::align_val_t{64}); }
  AlignedMemory(const AlignedMemory&) = delete;
  AlignedMemory& operator=(const AlignedMemory&) = delete;
  void* get() const { return first_; }

 private:
  void* first_;
};

// While it lives, numbers too small to be normal are 0 on this thread. Threads would otherwise give different bits, and
// a moment of Adam that fades away would slow everything down.
class FlushDenormals {
 public:
  FlushDenormals() : before_(read()) { write(before_ | flush); }
  ~FlushDenormals() { write(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__x86_64__)
  using Control = unsigned;
  static constexpr Control flush = 0x8040;  // of results and of operands
  static Control read() { return __builtin_ia32_stmxcsr(); }
  static void write(Control control) { __builtin_ia32_ldmxcsr(control); }
#elif defined(__aarch64__)
  using Control = uint64_t;
  static constexpr Control flush = 1 << 24;
  static Control read() {
    Control control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    return control;
  }
  static void write(Control control) { asm volatile("msr fpcr, %0" : : "r"(control)); }
#endif
  Control before_;
};

// Calls work(piece, memory) for every piece from 0 to count, on any thread, with `bytes` of memory per thread. Returns
// false if there was no memory.
//
// The caller takes pieces like every other thread, and waits only for pieces that another thread has begun: a pool
// whose threads are all busy delays nothing, and a thread that comes late finds no piece left.
template <class Pool, class Work>
bool share(Pool& pool, int64_t count, size_t bytes, const Work& work) {
  struct State {
    std::atomic<int64_t> next{0};
    std::atomic<bool> out_of_memory{false};
    std::mutex mutex;
    std::condition_variable finished;
    int64_t done = 0;
  };
  auto state = std::make_shared<State>();
  // `work` lives on the caller's stack: it is touched only by a thread that holds a piece, for which the caller waits.
  auto take_pieces = [state, count, bytes, &work] {
    std::unique_ptr<AlignedMemory> memory;
    for (;;) {
      const int64_t piece = state->next.fetch_add(1);
      if (piece >= count) return;
      try {
        if (!memory) memory = std::make_unique<AlignedMemory>(bytes);
        const FlushDenormals flush;
        work(piece, memory->get());
      } catch (const std::bad_alloc&) {
        state->out_of_memory = true;
      }
      const std::lock_guard<std::mutex> lock(state->mutex);
      if (++state->done == count) state->finished.notify_all();
    }
  };
  const int64_t helpers = count - 1 < pool.num_threads() ? count - 1 : pool.num_threads();
  for (int64_t i = 0; i < helpers; i++) pool.Schedule(decltype(take_pieces)(take_pieces));
  take_pieces();
  std::unique_lock<std::mutex> lock(state->mutex);
  state->finished.wait(lock, [&] { return state->done == count; });
  return !state->out_of_memory;
}

}  // namespace headcount::cpu
