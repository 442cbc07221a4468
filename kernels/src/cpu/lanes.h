// A vector of numbers, one per sample: the widest that the instruction set has.
//
// Compilers' vector extensions, not intrinsics: the same lines are AVX-512, AVX2, SSE2 and NEON.
#pragma once
#include <cstdint>
#include <cstring>
#include <utility>

#if !defined(HEADCOUNT_INSTRUCTIONS)
#error "compile with -DHEADCOUNT_INSTRUCTIONS=avx512, avx2, plain or neon"
#endif

// Everything here is compiled once per instruction set, each time in a namespace of its own. Nothing from the standard
// library that could leave an inline function behind is used: the linker would keep one copy for all instruction sets.
namespace headcount::HEADCOUNT_INSTRUCTIONS {

#if defined(__AVX512F__)
constexpr int lane_count = 16;
#elif defined(__AVX2__)
constexpr int lane_count = 8;
#else
constexpr int lane_count = 4;
#endif

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int vector_registers = 32;
#else
constexpr int vector_registers = 16;
#endif

typedef float Lanes __attribute__((vector_size(4 * lane_count)));
typedef int32_t IntLanes __attribute__((vector_size(4 * lane_count)));  // also the result of a comparison: 0 or -1
typedef uint32_t BitLanes __attribute__((vector_size(4 * lane_count)));  // the bits of numbers: sums wrap around
typedef float LanesAnywhere __attribute__((vector_size(4 * lane_count), may_alias, aligned(4)));

#define HEADCOUNT_INLINED __attribute__((always_inline))

// A number that the compiler knows.
template <int number>
struct Count {
  static constexpr int value = number;
};

template <int... places, class Body>
inline HEADCOUNT_INLINED void unrolled(std::integer_sequence<int, places...>, const Body& body) {
  (body(Count<places>{}), ...);
}

// Calls body(Count<0>), body(Count<1>), ... In a plain loop, an array that should live in registers is put in memory.
template <int count, class Body>
inline HEADCOUNT_INLINED void unrolled(const Body& body) {
  unrolled(std::make_integer_sequence<int, count>{}, body);
}

inline int smaller(int a, int b) { return a < b ? a : b; }
inline int rounded_up(int count, int step) { return (count + step - 1) / step * step; }

// x - 0 is x, which compilers know; x + 0 is not, for x = -0.
inline Lanes splat(float number) { return number - Lanes{}; }
inline Lanes splat(Lanes numbers) { return numbers; }
inline Lanes load(const float* from) { return *reinterpret_cast<const LanesAnywhere*>(from); }
inline void store(float* to, Lanes numbers) { *reinterpret_cast<LanesAnywhere*>(to) = numbers; }

// Some numbers of a vector: 1 to lane_count - 1 of them, which the mask tells the compiler.
inline Lanes load_some(const float* from, int count) {
  Lanes numbers{};
  memcpy(&numbers, from, sizeof(float) * (count & (lane_count - 1)));
  return numbers;
}
inline void store_some(float* to, Lanes numbers, int count) {
  memcpy(to, &numbers, sizeof(float) * (count & (lane_count - 1)));
}

// Written so that NaN stays NaN, as in jnp.maximum.
inline Lanes positive_part(Lanes x) { return 0.0f > x ? Lanes{} : x; }

// exp(x) for x <= 0, to 1 unit in the last place; exactly 0 below the smallest normal number. NaN stays NaN.
inline Lanes exp_of_nonpositive(Lanes x) {
  const float smallest = -87.33654f;
  const Lanes bounded = x < smallest ? splat(smallest) : x;
  // Adding 1.5 * 2^23 rounds to a whole number, which then is in the low bits.
  const Lanes shifted = bounded * 1.44269504f + 12582912.0f;
  const Lanes power = shifted - 12582912.0f;
  // log(2) in two parts, the first with few bits, so that their products with `power` are exact.
  Lanes rest = bounded - power * 0.693359375f;
  rest = rest + power * 2.12194440e-4f;
  Lanes series = splat(1.9875691500e-4f);
  series = series * rest + 1.3981999507e-3f;
  series = series * rest + 8.3334519073e-3f;
  series = series * rest + 4.1665795894e-2f;
  series = series * rest + 1.6666665459e-1f;
  series = series * rest + 5.0000001201e-1f;
  series = series * (rest * rest) + rest + 1.0f;
  const BitLanes exponent = ((BitLanes)shifted << 23) + 0x3f800000u;
  const Lanes result = series * (Lanes)exponent;
  return x < smallest ? Lanes{} : result;
}

// erf, a ratio of polynomials (the one XLA and Eigen use), within 2 units in the last place.
inline Lanes error_function(Lanes x) {
  const float bound = 3.8325068f;  // erf is 1 in float32 beyond it
  x = x < -bound ? splat(-bound) : x;
  x = x > bound ? splat(bound) : x;
  const Lanes square = x * x;
  Lanes above = splat(-2.72614225801306e-10f);
  above = above * square + 2.77068142495902e-08f;
  above = above * square - 2.10102402082508e-06f;
  above = above * square - 5.69250639462346e-05f;
  above = above * square - 7.34990630326855e-04f;
  above = above * square - 2.95459980854025e-03f;
  above = above * square - 1.60960333262415e-02f;
  Lanes below = splat(-1.45660718464996e-05f);
  below = below * square - 2.13374055278905e-04f;
  below = below * square - 1.68282697438203e-03f;
  below = below * square - 7.37332916720468e-03f;
  below = below * square - 1.42647390514189e-02f;
  return x * above / below;
}

// exp(x^2) (1 - erf(x)) for x > 1, polynomials in 1 / x^2 (those of Cephes, which XLA uses too).
inline Lanes scaled_tail(Lanes x) {
  const Lanes inverse = 1.0f / x, square = inverse * inverse;
  Lanes near = splat(2.326819970068386e-2f);
  near = near * square - 1.387039388740657e-1f;
  near = near * square + 3.687424674597105e-1f;
  near = near * square - 5.824733027278666e-1f;
  near = near * square + 6.210004621745983e-1f;
  near = near * square - 4.944515323274145e-1f;
  near = near * square + 3.404879937665872e-1f;
  near = near * square - 2.741127028184656e-1f;
  near = near * square + 5.638259427386472e-1f;
  Lanes far = splat(-1.047766399936249e+1f);
  far = far * square + 1.297719955372516e+1f;
  far = far * square - 7.495518717768503e+0f;
  far = far * square + 2.921019019210786e+0f;
  far = far * square - 1.015265279202700e+0f;
  far = far * square + 4.218463358204948e-1f;
  far = far * square - 2.820767439740514e-1f;
  far = far * square + 5.641895067754075e-1f;
  return inverse * (x < 2.0f ? near : far);
}

// The square root of normal numbers and 0, to 2 units in the last place: a guess from the bits, and three of Newton's
// steps towards 1 / sqrt(x). Compilers make a vector of sqrtf only where it must not set errno.
inline Lanes square_root(Lanes x) {
  Lanes inverse = (Lanes)(0x5f3759dfu - (BitLanes)((IntLanes)x >> 1));
  const Lanes half = 0.5f * x;
  unrolled<3>([&](auto) HEADCOUNT_INLINED { inverse = inverse * (1.5f - half * inverse * inverse); });
  return x * inverse;
}

// a0 b0 a1 b1 ... of the lower halves of two vectors, and of the upper halves.
#if defined(__clang__) || __GNUC__ >= 12
#define HEADCOUNT_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define HEADCOUNT_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, IntLanes{__VA_ARGS__})
#endif
inline Lanes interleave_lower(Lanes a, Lanes b) {
#if defined(__AVX512F__)
  return HEADCOUNT_SHUFFLE(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif defined(__AVX2__)
  return HEADCOUNT_SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
  return HEADCOUNT_SHUFFLE(a, b, 0, 4, 1, 5);
#endif
}
inline Lanes interleave_upper(Lanes a, Lanes b) {
#if defined(__AVX512F__)
  return HEADCOUNT_SHUFFLE(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif defined(__AVX2__)
  return HEADCOUNT_SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  return HEADCOUNT_SHUFFLE(a, b, 2, 6, 3, 7);
#endif
}

// Transposes a square of lane_count vectors. Each round interleaves the first half of them with the second.
inline HEADCOUNT_INLINED void transpose(Lanes (&square)[lane_count]) {
  constexpr int half = lane_count / 2, rounds = lane_count == 16 ? 4 : lane_count == 8 ? 3 : 2;
  unrolled<rounds>([&](auto) HEADCOUNT_INLINED {
    Lanes next[lane_count];
    unrolled<half>([&](auto i) HEADCOUNT_INLINED {
      next[2 * i.value] = interleave_lower(square[i.value], square[i.value + half]);
      next[2 * i.value + 1] = interleave_upper(square[i.value], square[i.value + half]);
    });
    unrolled<lane_count>([&](auto i) HEADCOUNT_INLINED { square[i.value] = next[i.value]; });
  });
}

// The sums over the lanes of `count` vectors, in their order: the rounds of `transpose`, adding as they go.
template <int count>
inline HEADCOUNT_INLINED Lanes lane_sums(const Lanes* vectors) {
  if constexpr (count == 1) {
    return vectors[0];
  } else {
    Lanes sums[count / 2];
    unrolled<count / 2>([&](auto i) HEADCOUNT_INLINED {
      const Lanes a = vectors[i.value], b = vectors[i.value + count / 2];
      sums[i.value] = interleave_lower(a, b) + interleave_upper(a, b);
    });
    return lane_sums<count / 2>(sums);
  }
}

inline float lane_sum(Lanes vector) {
  float sum = 0;
  for (int lane = 0; lane < lane_count; lane++) sum += vector[lane];
  return sum;
}

// sums[k] += the sum over the lanes of vectors[k].
inline void add_lane_sums(float* sums, const Lanes* vectors, int count) {
  int k = 0;
  for (; k + lane_count <= count; k += lane_count) store(sums + k, load(sums + k) + lane_sums<lane_count>(vectors + k));
  for (; k < count; k++) sums[k] += lane_sum(vectors[k]);
}

// Where the rows of lane_count samples begin.
struct Rows {
  const float* of_lane[lane_count];
};

// The lanes past the last sample read `beyond`, or where that is null the last sample again: numbers that occur anyway.
inline Rows rows_of(const float* first, ptrdiff_t stride, int samples, const float* beyond = nullptr) {
  Rows rows;
  for (int lane = 0; lane < lane_count; lane++) {
    rows.of_lane[lane] = lane < samples || !beyond ? first + stride * smaller(lane, samples - 1) : beyond;
  }
  return rows;
}

// vectors[k] holds number k of every sample's row.
inline __attribute__((noinline)) void to_lanes(Lanes* vectors, const Rows& rows, int count) {
  for (int k = 0; k < count; k += lane_count) {
    const int some = smaller(lane_count, count - k);
    Lanes square[lane_count];
    if (some == lane_count) {
      unrolled<lane_count>([&](auto lane)
                               HEADCOUNT_INLINED { square[lane.value] = load(rows.of_lane[lane.value] + k); });
    } else {
      unrolled<lane_count>(
          [&](auto lane) HEADCOUNT_INLINED { square[lane.value] = load_some(rows.of_lane[lane.value] + k, some); });
    }
    transpose(square);
    unrolled<lane_count>([&](auto i) HEADCOUNT_INLINED {
      if (i.value < some) vectors[k + i.value] = square[i.value];
    });
  }
}

// The way back, for the rows of the samples that there are.
inline __attribute__((noinline)) void from_lanes(float* first, ptrdiff_t stride, int samples, const Lanes* vectors,
                                                 int count) {
  samples = smaller(samples, lane_count);
  for (int k = 0; k < count; k += lane_count) {
    const int some = smaller(lane_count, count - k);
    Lanes square[lane_count];
    unrolled<lane_count>([&](auto i)
                             HEADCOUNT_INLINED { square[i.value] = i.value < some ? vectors[k + i.value] : Lanes{}; });
    transpose(square);
    unrolled<lane_count>([&](auto lane) HEADCOUNT_INLINED {
      if (lane.value >= samples) return;
      float* row = first + stride * lane.value + k;
      if (some == lane_count) {
        store(row, square[lane.value]);
      } else {
        store_some(row, square[lane.value], some);
      }
    });
  }
}

// Hands out parts of one piece of memory. Without memory it only counts, so that one list of parts says both how much
// is needed and what lies where. A part is followed by room that may be read but means nothing.
class Memory {
 public:
  explicit Memory(void* first) : first_(static_cast<char*>(first)) {}
  float* floats(size_t count) { return static_cast<float*>(take(sizeof(float) * count)); }
  Lanes* lanes(size_t count) { return static_cast<Lanes*>(take(sizeof(Lanes) * count)); }
  IntLanes* masks(size_t count) { return static_cast<IntLanes*>(take(sizeof(IntLanes) * count)); }
  size_t bytes() const { return used_; }

 private:
  void* take(size_t bytes) {
    void* part = first_ ? first_ + used_ : nullptr;
    used_ += (bytes + 63) / 64 * 64 + 128;
    return part;
  }
  char* first_;
  size_t used_ = 0;
};

}  // namespace headcount::HEADCOUNT_INSTRUCTIONS
