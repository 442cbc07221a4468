// Which instruction set is used: the best that the processor has, or a lower one that HEADCOUNT_KERNELS_CPU names
// (avx512, avx2 or plain). Other words are ignored.
#include <cstdlib>
#include <cstring>

#include "cpu/kernels.h"

#if !defined(HEADCOUNT_KERNELS_VERSION)
#define HEADCOUNT_KERNELS_VERSION "unknown"
#endif

namespace headcount {

#if defined(__x86_64__)
namespace avx512 {
extern const Kernels kernels;
}
namespace avx2 {
extern const Kernels kernels;
}
namespace plain {
extern const Kernels kernels;
}

static const Kernels& choose() {
  const char* named = std::getenv("HEADCOUNT_KERNELS_CPU");
  const auto is = [named](const char* name) { return named && std::strcmp(named, name) == 0; };
  __builtin_cpu_init();
  // x86-64-v4 and v3; a processor that has the features listed has the rest of its level.
  const bool has_avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl");
  if (is("plain") || !has_avx2) return plain::kernels;
  return is("avx2") || !has_avx512 ? avx2::kernels : avx512::kernels;
}
#else
namespace neon {
extern const Kernels kernels;
}

static const Kernels& choose() { return neon::kernels; }
#endif

const Kernels& chosen_kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

}  // namespace headcount

#define HEADCOUNT_EXPORTED extern "C" __attribute__((visibility("default")))

HEADCOUNT_EXPORTED const char* headcount_kernels_version() { return HEADCOUNT_KERNELS_VERSION; }

HEADCOUNT_EXPORTED const char* headcount_kernels_cpu() { return headcount::chosen_kernels().name; }
