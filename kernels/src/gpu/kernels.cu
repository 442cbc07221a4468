// The kernels by name. Tokens of up to 4, 8 and 16 numbers have kernels of their own: a token is held in registers.
#include "advance.cuh"
#include "pool.cuh"

using headcount::Advance;
using headcount::Pool;
using headcount::THREADS;

// Three blocks per processor: a step has many short phases, and others fill the time that one waits.
#define HEADCOUNT_ADVANCE(QUADS, PER_WARP)                                                                         \
  extern "C" __global__ void __launch_bounds__(THREADS, 3)                                                         \
      advance_##QUADS##_##PER_WARP(const __grid_constant__ Advance run) {                                          \
    headcount::advance_members<QUADS, PER_WARP, false>(run);                                                       \
  }

#define HEADCOUNT_KERNELS(QUADS)                                                                                   \
  HEADCOUNT_ADVANCE(QUADS, 1)                                                                                      \
  HEADCOUNT_ADVANCE(QUADS, 2)                                                                                      \
  HEADCOUNT_ADVANCE(QUADS, 4)                                                                                      \
  extern "C" __global__ void __launch_bounds__(THREADS) advance_large_##QUADS(const __grid_constant__ Advance run) { \
    headcount::advance_members<QUADS, 1, true>(run);                                                               \
  }                                                                                                                \
  extern "C" __global__ void __launch_bounds__(THREADS) pool_##QUADS(const __grid_constant__ Pool run) {           \
    headcount::pool_tiles<QUADS>(run);                                                                             \
  }                                                                                                                \
  extern "C" __global__ void __launch_bounds__(THREADS) pool_gradient_##QUADS(const __grid_constant__ Pool run) {  \
    headcount::pool_gradient_tiles<QUADS, false>(run);                                                             \
  }                                                                                                                \
  extern "C" __global__ void __launch_bounds__(THREADS)                                                            \
      pool_gradient_large_##QUADS(const __grid_constant__ Pool run) {                                              \
    headcount::pool_gradient_tiles<QUADS, true>(run);                                                              \
  }                                                                                                                \
  extern "C" __global__ void __launch_bounds__(THREADS) pool_sums_##QUADS(const __grid_constant__ Pool run) {      \
    headcount::pool_gradient_sums<QUADS>(run);                                                                     \
  }

HEADCOUNT_KERNELS(1)
HEADCOUNT_KERNELS(2)
HEADCOUNT_KERNELS(4)
