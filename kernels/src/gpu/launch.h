// How a call of `advance` is spread over a GPU: sequences per warp, blocks per member, and the scratch memory of both.
#pragma once
#include <algorithm>
#include <string>
#include <type_traits>

#include "gpu/streams.h"

namespace headcount {

constexpr int64_t COMFORTABLE = 112 << 10;  // bytes of shared memory that let two blocks share a processor

inline int quads_of(int64_t dim) { return dim <= 4 ? 1 : dim <= 8 ? 2 : dim <= 16 ? 4 : 0; }

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
// and are so spread over more blocks where there are few members. It depends on sizes and the GPU alone, never on the
// members. `most` is the shared memory that a block may have.
inline Manner choose(Advance& run, int quads, int64_t most) {
  const int32_t length = run.sizes.length;
  for (const int per_warp : {4, 2, 1}) {
    if (per_warp > 1 && length >= (per_warp == 4 ? 64 : 256)) continue;
    for (const int32_t shared_scores : {1, 0}) {
      run.shared_scores = shared_scores;
      const Manner manner = per_warp == 4   ? manner_of<4, false>(run, quads)
                            : per_warp == 2 ? manner_of<2, false>(run, quads)
                                            : manner_of<1, false>(run, quads);
      if (manner.shared <= std::min(COMFORTABLE, most)) return manner;
    }
  }
  const Manner manner = manner_of<1, false>(run, quads);
  return manner.shared <= most ? manner : manner_of<1, true>(run, quads);
}

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

inline void settle_tiles(Advance& run, const Manner& manner) {
  const int tile = WARPS * manner.per_warp;
  run.tiles = (run.batch + tile - 1) / tile;
}

inline void settle_scratch(Advance& run, Launch& launch, int quads) {
  launch.teams = launch.blocks / run.team;
  run.block_scratch = fours(launch.manner.scratch);
  run.team_scratch = fours(int64_t(run.tiles) * Partial(run.sizes, quads).size + Layout(run.sizes).size);
  launch.words = size_t(launch.teams) * run.team_scratch + size_t(launch.blocks) * run.block_scratch;
}

// Chooses how the call runs on its share of this GPU; `run` is ready but for its scratch memory.
inline ffi::Error plan(Advance& run, OnStream& on, Launch& launch, double share) {
  const int quads = quads_of(run.sizes.dim);
  const int64_t most = on.most_shared - OnStream::RESERVED_SHARED;
  launch.manner = choose(run, quads, most);
  if (launch.manner.shared > most)
    return invalid("a model of " + std::to_string(run.sizes.hidden) + " hidden units and " +
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

inline void start(Advance& run, OnStream& on, const Launch& launch, float* scratch) {
  run.scratch = scratch;
  run.turn = reinterpret_cast<int32_t*>(scratch + launch.words);
  on.clear(run.turn, launch.teams + 1);
  on.launch(launch.function, launch.blocks, launch.manner.shared, &run, run.team > 1);
}

// The most floats of scratch memory that `advance_aside` needs on any GPU; 0 where it has no kernel.
inline int64_t most_scratch(const Sizes& sizes, int64_t members, int64_t batch) {
  const int quads = quads_of(sizes.dim);
  if (!quads) return 0;
  Advance run{};
  run.sizes = sizes;
  run.members = int32_t(members), run.batch = int32_t(batch);
  int64_t most = 0;
  for (const int64_t shared : {1 << 10, 99 << 10, 163 << 10, 227 << 10}) {  // of a block: none, and what GPUs have
    Launch launch{};
    launch.manner = choose(run, quads, shared - OnStream::RESERVED_SHARED);
    settle_tiles(run, launch.manner);
    for (run.team = 1; run.team <= run.tiles; run.team *= 2) {
      launch.blocks = int(std::min<int64_t>(members * run.team, MOST_BLOCKS) / run.team * run.team);
      settle_scratch(run, launch, quads);
      most = std::max<int64_t>(most, launch.floats());
    }
  }
  return most;
}

}  // namespace headcount
