// The sizes of a class-token model of one layer, and where each of its arrays lies in one flat vector of weights.
//
// The order is that of the model's leaves in Python (`ClassTokenTransformer`), and so of Adam's moments.
// Symbols: d dim, N hidden, E total_dim = heads * head_dim, T length, h heads, g groups, r rank, n head_dim.
#pragma once
#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#define HEADCOUNT_BOTH __host__ __device__
#else
#define HEADCOUNT_BOTH
#endif

namespace headcount {

enum class Positions : int32_t { none = 0, additive = 1, concatenated = 2 };
enum class Objective : int32_t { regression = 0, classification = 1 };

struct Sizes {
  int32_t length;    // tokens per sequence
  int32_t dim;       // numbers per token
  int32_t code;      // numbers per position in the table; 0 without positions
  int32_t hidden;    // units of both nets
  int32_t heads;     // heads that the arrays have room for; a member may use fewer
  int32_t groups;    // sets of keys and values, shared by heads / groups heads each
  int32_t rank;      // numbers of a query and a key
  int32_t head_dim;  // numbers of a value
  int32_t outputs;
  Positions positions;

  HEADCOUNT_BOTH int32_t total() const { return heads * head_dim; }
  HEADCOUNT_BOTH int32_t read() const { return dim + (positions == Positions::concatenated ? code : 0); }
};

// The first number of every array in the flat vector; each array is row-major.
struct Layout {
  int32_t encoder_in_weight;   // [hidden, read]
  int32_t encoder_in_bias;     // [hidden]
  int32_t encoder_out_weight;  // [total, hidden]
  int32_t encoder_out_bias;    // [total]
  int32_t position_table;      // [length, code]
  int32_t class_token;         // [total]
  int32_t query;               // [heads, rank, total]
  int32_t key;                 // [groups, rank, total]
  int32_t value;               // [groups, head_dim, total]
  int32_t output;              // [total, heads, head_dim]
  int32_t readout_in_weight;   // [hidden, total]
  int32_t readout_in_bias;     // [hidden]
  int32_t readout_out_weight;  // [outputs, hidden]
  int32_t readout_out_bias;    // [outputs]
  int32_t size;                // numbers in all

  HEADCOUNT_BOTH explicit Layout(const Sizes& s) {
    const int32_t total = s.total();
    int32_t next = 0;
    auto take = [&next](int32_t count) {
      const int32_t first = next;
      next += count;
      return first;
    };
    encoder_in_weight = take(s.hidden * s.read());
    encoder_in_bias = take(s.hidden);
    encoder_out_weight = take(total * s.hidden);
    encoder_out_bias = take(total);
    position_table = take(s.length * s.code);
    class_token = take(total);
    query = take(s.heads * s.rank * total);
    key = take(s.groups * s.rank * total);
    value = take(s.groups * s.head_dim * total);
    output = take(total * s.heads * s.head_dim);
    readout_in_weight = take(s.hidden * total);
    readout_in_bias = take(s.hidden);
    readout_out_weight = take(s.outputs * s.hidden);
    readout_out_bias = take(s.outputs);
    size = next;
  }
};

// 1 - decay, as optax computes it: from the decimal that was written, such as 0.999. Its float32 is off by 1.3e-8, which is
// 1.3e-5 of the difference, so the decimal is taken back.
inline float rest_of(float decay) { return static_cast<float>(1 - std::round(decay * 1e7) / 1e7); }

}  // namespace headcount
