// All kernels for one instruction set. Compiled once for each, with -march and -DHEADCOUNT_INSTRUCTIONS to match.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-version-loops-for-strides")  // loops are written for any stride
#endif
#include "cpu/kernels.h"

#include "cpu/advance.h"
#include "cpu/pool_tile.h"

namespace headcount::HEADCOUNT_INSTRUCTIONS {

#if defined(__AVX512F__)
#define HEADCOUNT_NAME "AVX-512"
#elif defined(__AVX2__)
#define HEADCOUNT_NAME "AVX2"
#elif defined(__ARM_NEON)
#define HEADCOUNT_NAME "NEON"
#else
#define HEADCOUNT_NAME "plain"
#endif

extern const Kernels kernels;
const Kernels kernels = {HEADCOUNT_NAME, pool_bytes, pool, pool_gradient_bytes, pool_gradient, advance_bytes, advance};

}  // namespace headcount::HEADCOUNT_INSTRUCTIONS
