// The kernels by name. Tokens of up to 4, 8 and 16 numbers have kernels of their own: a token is held in registers.
#include "advance.cuh"
#include "pool.cuh"

using headcount::Advance;
using headcount::Pool;
using headcount::THREADS;

#define HEADCOUNT_KERNELS(QUADS)                                                                                  \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) advance_##QUADS(const __grid_constant__ Advance run) {  \
    headcount::advance_members<QUADS, false>(run);                                                                 \
  }                                                                                                                \
  extern "C" __global__ void __launch_bounds__(THREADS, 2)                                                         \
      advance_large_##QUADS(const __grid_constant__ Advance run) {                                                 \
    headcount::advance_members<QUADS, true>(run);                                                                  \
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
