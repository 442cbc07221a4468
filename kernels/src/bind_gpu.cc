// The GPU kernels as XLA calls: shapes are checked, memory is laid out, and the kernels are launched on XLA's stream.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/arrays.h"
#include "gpu/driver.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using Floats = ffi::Buffer<ffi::F32>;
using Whole = ffi::Buffer<ffi::S32>;
using FloatResult = ffi::Result<Floats>;

extern "C" const unsigned char headcount_fatbin[];

namespace headcount {
namespace {

constexpr int PROCESSORS = 16, MOST_SHARED = 97, MAX_SHARED_OF_FUNCTION = 8;  // numbers of the driver's attributes
constexpr int64_t COMFORTABLE = 112 << 10;  // bytes of shared memory that let two blocks share a processor

ffi::Error wrong(const std::string& message) { return ffi::Error::InvalidArgument("headcount kernels: " + message); }

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
    if (to != from)
      check(driver_.copy(reinterpret_cast<Driver::Address>(to), reinterpret_cast<Driver::Address>(from), bytes, stream_));
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

// Streams beside XLA's own, on which kernels of several calls run at the same time until XLA's stream waits for them.
class Asides {
 public:
  static Asides& of(Driver::Handle context) {
    static std::mutex lock;
    static std::map<Driver::Handle, Asides> known;
    const std::lock_guard<std::mutex> guard(lock);
    return known[context];
  }

  // A stream that begins where XLA's stream is now.
  void* fork(OnStream& on, void* stream) {
    const std::lock_guard<std::mutex> guard(lock_);
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
    const std::lock_guard<std::mutex> guard(lock_);
    on.check(Driver::get().record_event(done_[next_], streams_[next_]));
    used_[next_] = true;
    next_ = (next_ + 1) % STREAMS;
  }
  void join(OnStream& on, void* stream) {
    const std::lock_guard<std::mutex> guard(lock_);
    for (int k = 0; k < STREAMS; ++k) {
      if (used_[k]) on.check(Driver::get().wait_for_event(stream, done_[k], 0));
      used_[k] = false;
    }
    next_ = 0;
  }
  std::mutex calls;  // held from `fork` to `mark`

 private:
  static constexpr int STREAMS = 32;
  static constexpr unsigned NO_TIMING = 2, NON_BLOCKING = 1;
  std::mutex lock_;
  std::vector<Driver::Handle> streams_, done_;
  Driver::Handle begin_ = nullptr;
  bool used_[STREAMS] = {};
  int next_ = 0;
};

int quads_of(int64_t dim) { return dim <= 4 ? 1 : dim <= 8 ? 2 : dim <= 16 ? 4 : 0; }

template <class Each>
auto with_quads(int quads, Each each) {
  if (quads == 1) return each(std::integral_constant<int, 1>());
  if (quads == 2) return each(std::integral_constant<int, 2>());
  return each(std::integral_constant<int, 4>());
}

// How a model is taken: sequences per warp, and where a block keeps its arrays.
struct Manner {
  int per_warp;
  bool large;
  int64_t shared, scratch;  // bytes, and floats, of a block
};

template <int PER_WARP, bool LARGE>
Manner manner_of(const Advance& run, int quads) {
  return with_quads(quads, [&](auto q) -> Manner {
    const Block<q.value, PER_WARP, LARGE> block(run, nullptr, nullptr);
    return {PER_WARP, LARGE, 4 * block.shared_floats, block.scratch_floats};
  });
}

// As many sequences per warp as leave room for two blocks per processor. Long sequences are work enough one by one,
// and are so spread over more blocks where there are few members. It depends on sizes alone, never on the members.
Manner choose(Advance& run, int quads, int64_t most) {
  const int32_t length = run.sizes.length;
  for (const int per_warp : {4, 2, 1}) {
    if (per_warp > 1 && length >= (per_warp == 4 ? 64 : 256)) continue;
    for (const int32_t shared_scores : {1, 0}) {
      run.shared_scores = shared_scores;
      const Manner manner = per_warp == 4   ? manner_of<4, false>(run, quads)
                            : per_warp == 2 ? manner_of<2, false>(run, quads)
                                            : manner_of<1, false>(run, quads);
      if (manner.shared <= COMFORTABLE) return manner;
    }
  }
  const Manner manner = manner_of<1, false>(run, quads);
  return manner.shared <= most ? manner : manner_of<1, true>(run, quads);
}

// What the call of both forms of `advance` says of the model and its training.
struct Described {
  int64_t length, dim, code, hidden, heads, groups, rank, head_dim, outputs, positions, objective, masks;
  float beta, clip, second_moment_decay, weight_decay;

  Sizes sizes() const {
    return {int32_t(length), int32_t(dim),  int32_t(code),     int32_t(hidden),  int32_t(heads),
            int32_t(groups), int32_t(rank), int32_t(head_dim), int32_t(outputs), Positions(int32_t(positions))};
  }
};

// How a call is spread over the GPU, and the scratch memory that this takes.
struct Launch {
  Manner manner;
  Driver::Handle function;
  int blocks, teams;
  size_t words;  // of scratch, the counters not included

  size_t floats() const { return words + teams + 1; }
};

// More blocks than any GPU has places for.
constexpr int MOST_BLOCKS = 1024;

void settle_tiles(Advance& run, const Manner& manner) {
  const int tile = WARPS * manner.per_warp;
  run.tiles = (run.batch + tile - 1) / tile;
}

void settle_scratch(Advance& run, Launch& launch, int quads) {
  launch.teams = launch.blocks / run.team;
  run.block_scratch = (launch.manner.scratch + 3) / 4 * 4;
  run.team_scratch = (int64_t(run.tiles) * Partial(run.sizes, quads).size + Layout(run.sizes).size + 3) / 4 * 4;
  launch.words = size_t(launch.teams) * run.team_scratch + size_t(launch.blocks) * run.block_scratch;
}

ffi::Error describe(Advance& run, const Described& given, Floats weights, Whole step, Whole heads, Whole count,
                    Floats rates, Whole chosen, Floats tokens, Floats targets) {
  run.sizes = given.sizes();
  const Layout layout(run.sizes);
  if (!quads_of(given.dim))
    return wrong("tokens of more than 16 numbers are not done on a GPU, got " + std::to_string(given.dim) + ".");
  if (weights.dimensions().size() != 2 || weights.dimensions()[1] != layout.size)
    return wrong("weights must have " + std::to_string(layout.size) + " numbers per member.");
  if (tokens.dimensions().size() != 3 || tokens.dimensions()[1] != given.length || tokens.dimensions()[2] != given.dim)
    return wrong("tokens must be examples of length x dim numbers.");
  if (chosen.dimensions().size() != 3) return wrong("chosen must be members x steps x batch.");
  run.objective = Objective(int32_t(given.objective));
  run.masks = int32_t(given.masks);
  run.members = int32_t(weights.dimensions()[0]);
  run.room = int32_t(chosen.dimensions()[1]);
  run.batch = int32_t(chosen.dimensions()[2]);
  run.target_width = int32_t(targets.dimensions().back());
  run.beta = given.beta, run.clip = given.clip;
  run.second_moment_decay = given.second_moment_decay, run.weight_decay = given.weight_decay;
  run.tokens = tokens.typed_data(), run.targets = targets.typed_data(), run.chosen = chosen.typed_data();
  run.rates = rates.typed_data(), run.step = step.typed_data(), run.heads = heads.typed_data();
  run.count = count.typed_data();
  return ffi::Error::Success();
}

// What all calls that run at the same time have to do; see `work_of`. 0: a call has the GPU to itself.
std::atomic<int64_t> work_together{0};

// What a step of a call has to do, in tokens, where the readout and the update of a sequence count for some.
int64_t work_of(int64_t members, int64_t batch, int64_t length) { return members * batch * (length + 24); }

// Chooses how the call runs on its share of this GPU; `run` is ready but for its scratch memory.
ffi::Error plan(Advance& run, OnStream& on, Launch& launch, double share) {
  const int quads = quads_of(run.sizes.dim);
  const int64_t most = on.most_shared - OnStream::RESERVED_SHARED;
  launch.manner = choose(run, quads, most);
  if (launch.manner.shared > most)
    return wrong("a model of " + std::to_string(run.sizes.hidden) + " hidden units and " +
                 std::to_string(run.sizes.heads) + " heads needs more shared memory than this GPU has.");
  settle_tiles(run, launch.manner);
  const std::string suffix = launch.manner.large ? "" : "_" + std::to_string(launch.manner.per_warp);
  launch.function = on.function((launch.manner.large ? "advance_large_" : "advance_") + std::to_string(quads) + suffix);
  if (!on.ok()) return on.error();
  const int places = std::min(on.places(launch.function, launch.manner.shared), MOST_BLOCKS);
  run.team = 1;
  while (run.team * 2 <= run.tiles && double(run.members) * run.team * 2 <= share * places) run.team *= 2;
  launch.blocks = run.team > 1 ? run.members * run.team : std::min(run.members, places);
  settle_scratch(run, launch, quads);
  return ffi::Error::Success();
}

void start(Advance& run, OnStream& on, const Launch& launch, float* scratch) {
  run.scratch = scratch;
  run.turn = reinterpret_cast<int32_t*>(scratch + launch.words);
  on.clear(run.turn, launch.teams + 1);
  on.launch(launch.function, launch.blocks, launch.manner.shared, &run, run.team > 1);
}

ffi::Error advance(void* stream, ffi::ScratchAllocator allocator, Floats weights, Floats mean, Floats square, Whole step,
                   Whole heads, Whole count, Floats rates, Whole chosen, Floats tokens, Floats targets,
                   FloatResult new_weights, FloatResult new_mean, FloatResult new_square, FloatResult error,
                   Described given) {
  Advance run{};
  if (auto failure = describe(run, given, weights, step, heads, count, rates, chosen, tokens, targets);
      failure.failure())
    return failure;
  run.weights = new_weights->typed_data(), run.mean = new_mean->typed_data();
  run.square = new_square->typed_data(), run.error = error->typed_data();
  OnStream on(stream);
  if (!on.ok()) return on.error();
  on.copy(run.weights, weights.typed_data(), weights.size_bytes());
  on.copy(run.mean, mean.typed_data(), mean.size_bytes());
  on.copy(run.square, square.typed_data(), square.size_bytes());
  if (!run.members) return on.ok() ? ffi::Error::Success() : on.error();
  on.clear(run.error, run.members);
  Launch launch{};
  if (auto failure = plan(run, on, launch, 1.0); failure.failure()) return failure;
  auto memory = allocator.Allocate(4 * launch.floats());
  if (!memory)
    return ffi::Error(ffi::ErrorCode::kResourceExhausted, "RESOURCE_EXHAUSTED: headcount kernels: no memory for " +
                                                              std::to_string(4 * launch.words >> 20) +
                                                              " MiB of scratch.");
  start(run, on, launch, static_cast<float*>(*memory));
  return on.ok() ? ffi::Error::Success() : on.error();
}

// The same beside XLA's stream: the results are there once `join` has been called. All arrays, the scratch memory among
// the results, are the caller's and must live until then. Errors are added to those given.
ffi::Error advance_aside(void* stream, Floats weights, Floats mean, Floats square, Floats totals, Whole step,
                         Whole heads, Whole count, Floats rates, Whole chosen, Floats tokens, Floats targets,
                         FloatResult new_weights, FloatResult new_mean, FloatResult new_square, FloatResult new_totals,
                         FloatResult scratch, Described given) {
  Advance run{};
  if (auto failure = describe(run, given, weights, step, heads, count, rates, chosen, tokens, targets);
      failure.failure())
    return failure;
  run.weights = new_weights->typed_data(), run.mean = new_mean->typed_data();
  run.square = new_square->typed_data(), run.error = new_totals->typed_data();
  OnStream on(stream);
  if (!on.ok()) return on.error();
  on.copy(run.weights, weights.typed_data(), weights.size_bytes());
  on.copy(run.mean, mean.typed_data(), mean.size_bytes());
  on.copy(run.square, square.typed_data(), square.size_bytes());
  on.copy(run.error, totals.typed_data(), totals.size_bytes());
  if (!run.members) return on.ok() ? ffi::Error::Success() : on.error();
  const int64_t own = work_of(run.members, run.batch, run.sizes.length), all = work_together;
  Launch launch{};
  if (auto failure = plan(run, on, launch, all > own ? double(own) / all : 1.0); failure.failure()) return failure;
  if (launch.floats() > scratch->element_count()) return wrong("the scratch memory is too small.");
  Asides& asides = Asides::of(on.context());
  const std::lock_guard<std::mutex> guard(asides.calls);
  on.onto(asides.fork(on, stream));
  start(run, on, launch, scratch->typed_data());
  asides.mark(on);
  return on.ok() ? ffi::Error::Success() : on.error();
}

// XLA's stream goes on when everything beside it is done.
ffi::Error join(void* stream, Whole token, ffi::Result<Whole> same) {
  OnStream on(stream);
  if (!on.ok()) return on.error();
  on.copy(same->typed_data(), token.typed_data(), token.size_bytes());
  Asides::of(on.context()).join(on, stream);
  return on.ok() ? ffi::Error::Success() : on.error();
}

// Leading axes are full or shared; an array's last `own` axes are a member's own.
template <class Buffer>
Strides strides_of(const Buffer& array, size_t own, const Pool& run) {
  const auto dimensions = array.dimensions();
  Strides strides{};
  int64_t size = 1;
  for (size_t axis = dimensions.size() - own; axis < dimensions.size(); ++axis) size *= dimensions[axis];
  for (int axis = run.axes - 1; axis >= 0; --axis) {
    strides.of[axis] = dimensions[axis] == 1 ? 0 : size;
    size *= dimensions[axis];
  }
  return strides;
}

template <class Tokens, class Weight, class Bias, class Direction>
ffi::Error describe(Pool& run, const Tokens& tokens, const Weight& weight, const Bias& bias, const Direction& direction,
                    int64_t offset_rows, ffi::Span<const int64_t> leading, int64_t masks) {
  const auto dims = tokens.dimensions();
  const size_t axes = dims.size() - 3;
  if (dims.size() < 3 || axes > MAX_AXES) return wrong("tokens must be members x batch x length x dim.");
  run.axes = int32_t(axes);
  run.members = 1;
  for (size_t axis = 0; axis < axes; ++axis) run.members *= run.size[axis] = int32_t(leading[axis]);
  run.batch = int32_t(dims[axes]), run.length = int32_t(dims[axes + 1]), run.dim = int32_t(dims[axes + 2]);
  run.hidden = int32_t(weight.dimensions()[axes]);
  run.heads = int32_t(direction.dimensions()[axes]);
  run.bias_rows = int32_t(bias.dimensions()[axes]);
  run.offset_rows = int32_t(offset_rows);
  run.masks = int32_t(masks);
  const int tile = WARPS * MOST_PER_WARP;
  run.tiles = (run.batch + tile - 1) / tile;
  if (!quads_of(run.dim)) return wrong("tokens of more than 16 numbers are not done on a GPU.");
  run.tokens = tokens.typed_data(), run.weight = weight.typed_data(), run.bias = bias.typed_data();
  run.direction = direction.typed_data();
  run.tokens_strides = strides_of(tokens, 3, run), run.weight_strides = strides_of(weight, 2, run);
  run.bias_strides = strides_of(bias, 2, run), run.direction_strides = strides_of(direction, 2, run);
  return ffi::Error::Success();
}

// With one place only, a bias for every place and one for all are the same.
void settle_bias(Pool& run) { run.bias_rows = run.bias_rows > 1 ? run.length : 1; }

ffi::Error pool(void* stream, Floats tokens, Floats weight, Floats bias, Floats direction, Floats offset,
                FloatResult pooled, FloatResult weights, int64_t masks) {
  Pool run{};
  const auto leading = pooled->dimensions();
  const size_t axes = leading.size() - 3;
  if (auto error = describe(run, tokens, weight, bias, direction, offset.dimensions()[axes], leading, masks);
      error.failure())
    return error;
  settle_bias(run);
  run.offset = offset.typed_data();
  run.offset_strides = strides_of(offset, 2, run);
  run.pooled = pooled->typed_data(), run.weights = weights->typed_data();
  if (!run.members || !run.batch) return ffi::Error::Success();
  OnStream on(stream);
  if (!on.ok()) return on.error();
  const int quads = quads_of(run.dim);
  const int64_t shared = with_quads(
      quads, [&](auto q) { return 4 * PoolBlock<q.value, false>(run, false, nullptr, nullptr).shared_floats; });
  if (shared > on.most_shared - OnStream::RESERVED_SHARED) return wrong("too many hidden units and heads for this GPU.");
  const auto function = on.function("pool_" + std::to_string(quads));
  if (!on.ok()) return on.error();
  const int64_t turns = int64_t(run.members) * run.tiles;
  on.launch(function, int(std::min<int64_t>(turns, on.places(function, shared))), shared, &run, false);
  return on.ok() ? ffi::Error::Success() : on.error();
}

ffi::Error pool_gradient(void* stream, ffi::ScratchAllocator allocator, Floats tokens, Floats weight, Floats bias,
                         Floats direction, Floats pooled, Floats weights, Floats d_pooled, Floats d_weights,
                         FloatResult d_weight, FloatResult d_bias, FloatResult d_direction, FloatResult d_offset,
                         int64_t masks) {
  Pool run{};
  const auto leading = d_weight->dimensions();
  const size_t axes = leading.size() - 2;
  if (auto error = describe(run, tokens, weight, bias, direction, d_offset->dimensions()[axes], leading, masks);
      error.failure())
    return error;
  settle_bias(run);
  run.weights_in = weights.typed_data(), run.d_pooled = d_pooled.typed_data(), run.d_weights = d_weights.typed_data();
  run.weights_strides = strides_of(weights, 3, run), run.d_pooled_strides = strides_of(d_pooled, 3, run);
  run.d_weights_strides = strides_of(d_weights, 3, run);
  run.d_weight = d_weight->typed_data(), run.d_bias = d_bias->typed_data();
  run.d_direction = d_direction->typed_data(), run.d_offset = d_offset->typed_data();
  if (!run.members) return ffi::Error::Success();
  OnStream on(stream);
  if (!on.ok()) return on.error();
  const int quads = quads_of(run.dim);
  const int64_t most = on.most_shared - OnStream::RESERVED_SHARED;
  int64_t shared = 0, scratch = 0;
  bool large = false;
  with_quads(quads, [&](auto q) {
    const PoolBlock<q.value, false> block(run, true, nullptr, nullptr);
    shared = 4 * block.shared_floats, scratch = block.scratch_floats;
    large = shared > most;
    if (!large) return;
    const PoolBlock<q.value, true> spilled(run, true, nullptr, nullptr);
    shared = 4 * spilled.shared_floats, scratch = spilled.scratch_floats;
  });
  if (shared > most) return wrong("too many hidden units and heads for this GPU.");
  const auto function = on.function((large ? "pool_gradient_large_" : "pool_gradient_") + std::to_string(quads));
  const auto sums = on.function("pool_sums_" + std::to_string(quads));
  if (!on.ok()) return on.error();
  const int64_t turns = int64_t(run.members) * run.tiles, numbers = run.numbers(quads);
  const int blocks = int(std::max<int64_t>(1, std::min<int64_t>(turns, on.places(function, shared))));
  run.block_scratch = scratch;
  const size_t words = size_t(turns) * numbers + 4 + size_t(blocks) * scratch;
  auto memory = allocator.Allocate(4 * words);
  if (!memory)
    return ffi::Error(ffi::ErrorCode::kResourceExhausted, "RESOURCE_EXHAUSTED: headcount kernels: no memory for " +
                                                              std::to_string(4 * words >> 20) + " MiB of scratch.");
  run.partials = static_cast<float*>(*memory);
  run.scratch = run.partials + (turns * numbers + 3) / 4 * 4;
  if (turns) on.launch(function, blocks, shared, &run, false);
  const int64_t sum_blocks = (int64_t(run.members) * numbers + THREADS - 1) / THREADS;
  on.launch(sums, int(std::min<int64_t>(sum_blocks, 1 << 16)), 0, &run, false);
  return on.ok() ? ffi::Error::Success() : on.error();
}

// The most floats of scratch memory that `advance_aside` needs on any GPU; 0 where it has no kernel.
int64_t most_scratch(const Described& given, int64_t members, int64_t batch) {
  const int quads = quads_of(given.dim);
  if (!quads) return 0;
  Advance run{};
  run.sizes = given.sizes();
  run.members = int32_t(members), run.batch = int32_t(batch);
  int64_t most = 0;
  for (const int64_t shared : {int64_t(0), int64_t(99) << 10, int64_t(163) << 10, int64_t(227) << 10}) {
    Launch launch{};
    launch.manner = choose(run, quads, shared);
    settle_tiles(run, launch.manner);
    for (run.team = 1; run.team <= run.tiles; run.team *= 2) {
      launch.blocks = int(std::min<int64_t>(members * run.team, MOST_BLOCKS) / run.team * run.team);
      settle_scratch(run, launch, quads);
      most = std::max<int64_t>(most, launch.floats());
    }
  }
  return most;
}

}  // namespace
}  // namespace headcount

XLA_FFI_REGISTER_STRUCT_ATTR_DECODING(
    headcount::Described, ffi::StructMember<int64_t>("length"), ffi::StructMember<int64_t>("dim"),
    ffi::StructMember<int64_t>("code"), ffi::StructMember<int64_t>("hidden"), ffi::StructMember<int64_t>("heads"),
    ffi::StructMember<int64_t>("groups"), ffi::StructMember<int64_t>("rank"), ffi::StructMember<int64_t>("head_dim"),
    ffi::StructMember<int64_t>("outputs"), ffi::StructMember<int64_t>("positions"),
    ffi::StructMember<int64_t>("objective"), ffi::StructMember<int64_t>("masks"), ffi::StructMember<float>("beta"),
    ffi::StructMember<float>("clip"), ffi::StructMember<float>("second_moment_decay"),
    ffi::StructMember<float>("weight_decay"));

#pragma GCC visibility push(default)
XLA_FFI_DEFINE_HANDLER_SYMBOL(HeadcountAdvanceGpu, headcount::advance,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<void*>>()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Arg<Floats>().Arg<Floats>().Arg<Floats>()
                                  .Arg<Whole>().Arg<Whole>().Arg<Whole>()
                                  .Arg<Floats>().Arg<Whole>().Arg<Floats>().Arg<Floats>()
                                  .Ret<Floats>().Ret<Floats>().Ret<Floats>().Ret<Floats>()
                                  .Attrs<headcount::Described>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(HeadcountAdvanceAsideGpu, headcount::advance_aside,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<void*>>()
                                  .Arg<Floats>().Arg<Floats>().Arg<Floats>().Arg<Floats>()
                                  .Arg<Whole>().Arg<Whole>().Arg<Whole>()
                                  .Arg<Floats>().Arg<Whole>().Arg<Floats>().Arg<Floats>()
                                  .Ret<Floats>().Ret<Floats>().Ret<Floats>().Ret<Floats>().Ret<Floats>()
                                  .Attrs<headcount::Described>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    HeadcountJoinGpu, headcount::join,
    ffi::Ffi::Bind().Ctx<ffi::PlatformStream<void*>>().Arg<Whole>().Ret<Whole>());

extern "C" int64_t headcount_kernels_gpu_work(int64_t members, int64_t batch, int64_t length) {
  return headcount::work_of(members, batch, length);
}

extern "C" void headcount_kernels_gpu_together(int64_t work) { headcount::work_together = work; }

extern "C" int64_t headcount_kernels_gpu_scratch(int64_t length, int64_t dim, int64_t code, int64_t hidden,
                                                 int64_t heads, int64_t groups, int64_t rank, int64_t head_dim,
                                                 int64_t outputs, int64_t positions, int64_t members, int64_t batch) {
  return headcount::most_scratch({length, dim, code, hidden, heads, groups, rank, head_dim, outputs, positions}, members,
                                 batch);
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(HeadcountPoolGpu, headcount::pool,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<void*>>()
                                  .Arg<Floats>().Arg<Floats>().Arg<Floats>().Arg<Floats>().Arg<Floats>()
                                  .Ret<Floats>().Ret<Floats>().Attr<int64_t>("masks"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(HeadcountPoolGradientGpu, headcount::pool_gradient,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<void*>>()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Arg<Floats>().Arg<Floats>().Arg<Floats>().Arg<Floats>()
                                  .Arg<Floats>().Arg<Floats>().Arg<Floats>().Arg<Floats>()
                                  .Ret<Floats>().Ret<Floats>().Ret<Floats>().Ret<Floats>()
                                  .Attr<int64_t>("masks"));
#pragma GCC visibility pop
