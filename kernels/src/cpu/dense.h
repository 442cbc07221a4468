// Products of small row-major matrices: what is done once per step, and the readout of a tile of samples.
//
// Matrices lie in `Memory`: a row may be read beyond its end, by less than a vector, and what is read there is not
// used.
#pragma once
#include "cpu/lanes.h"

namespace headcount::HEADCOUNT_INSTRUCTIONS {

struct Matrix {
  const float* first;
  ptrdiff_t row;     // numbers from one row to the next
  ptrdiff_t column;  // numbers from one column to the next

  Matrix(const float* first, ptrdiff_t row, ptrdiff_t column = 1) : first(first), row(row), column(column) {}
  Matrix transposed() const { return Matrix(first, column, row); }
};

enum class Result { written, added };

template <int rows, int vectors>
inline void product_block(float* result, ptrdiff_t result_row, const float* left, ptrdiff_t left_row,
                          ptrdiff_t left_column, const float* right, ptrdiff_t right_row, int inner, Result how,
                          int columns) {
  Lanes sums[rows][vectors];
  unrolled<rows>([&](auto i) HEADCOUNT_INLINED {
    unrolled<vectors>([&](auto v) HEADCOUNT_INLINED {
      const float* from = result + i.value * result_row + v.value * lane_count;
      sums[i.value][v.value] = how == Result::added ? load(from) : Lanes{};
    });
  });
  for (int k = 0; k < inner; k++) {
    Lanes of_right[vectors];
    unrolled<vectors>(
        [&](auto v) HEADCOUNT_INLINED { of_right[v.value] = load(right + k * right_row + v.value * lane_count); });
    unrolled<rows>([&](auto i) HEADCOUNT_INLINED {
      const float of_left = left[i.value * left_row + k * left_column];
      unrolled<vectors>([&](auto v) HEADCOUNT_INLINED { sums[i.value][v.value] += of_left * of_right[v.value]; });
    });
  }
  unrolled<rows>([&](auto i) HEADCOUNT_INLINED {
    unrolled<vectors>([&](auto v) HEADCOUNT_INLINED {
      float* to = result + i.value * result_row + v.value * lane_count;
      const int left_over = columns - v.value * lane_count;
      if (left_over >= lane_count) {
        store(to, sums[i.value][v.value]);
      } else {
        store_some(to, sums[i.value][v.value], left_over);
      }
    });
  });
}

// result [rows, columns] = or += left [rows, inner] right [inner, columns]. The columns of the result and of `right`
// must be next to each other; `left` may be transposed.
inline __attribute__((noinline)) void multiply(float* result, ptrdiff_t result_row, Matrix left, Matrix right, int rows,
                                               int inner, int columns, Result how) {
  constexpr int most_rows = vector_registers == 32 ? 8 : 4;
  for (int j = 0; j < columns; j += 2 * lane_count) {
    const int some = columns - j;
    const bool one_vector = some <= lane_count;
    int i = 0;
    auto block = [&](auto function, int height) {
      function(result + i * result_row + j, result_row, left.first + i * left.row, left.row, left.column,
               right.first + j, right.row, inner, how, some);
      i += height;
    };
    while (i + most_rows <= rows)
      block(one_vector ? product_block<most_rows, 1> : product_block<most_rows, 2>, most_rows);
    while (i + 2 <= rows) block(one_vector ? product_block<2, 1> : product_block<2, 2>, 2);
    while (i < rows) block(one_vector ? product_block<1, 1> : product_block<1, 2>, 1);
  }
}

// result[i] = start[i] (0 if null) + scale * row i of the matrix . vector
inline void multiply_vector(float* result, const float* start, float scale, const float* matrix, ptrdiff_t row,
                            const float* vector, int rows, int columns) {
  for (int i = 0; i < rows; i++) {
    Lanes sums{};
    int k = 0;
    for (; k + lane_count <= columns; k += lane_count) sums += load(matrix + i * row + k) * load(vector + k);
    float sum = lane_sum(sums);
    for (; k < columns; k++) sum += matrix[i * row + k] * vector[k];
    result[i] = (start ? start[i] : 0.0f) + scale * sum;
  }
}

// result [columns, rows] of a matrix [rows, columns].
inline __attribute__((noinline)) void transpose_matrix(float* result, const float* matrix, ptrdiff_t row, int rows,
                                                       int columns) {
  for (int i = 0; i < rows; i += lane_count) {
    const int height = smaller(lane_count, rows - i);
    for (int j = 0; j < columns; j += lane_count) {
      const int width = smaller(lane_count, columns - j);
      Lanes square[lane_count];
      unrolled<lane_count>([&](auto k) HEADCOUNT_INLINED {
        square[k.value] = k.value < height ? load(matrix + (i + k.value) * row + j) : Lanes{};
      });
      transpose(square);
      unrolled<lane_count>([&](auto k) HEADCOUNT_INLINED {
        if (k.value >= width) return;
        float* to = result + (j + k.value) * rows + i;
        if (height == lane_count) {
          store(to, square[k.value]);
        } else {
          store_some(to, square[k.value], height);
        }
      });
    }
  }
}

// sums[j] += the sum of column j.
inline void add_column_sums(float* sums, const float* matrix, ptrdiff_t row, int rows, int columns) {
  const float one = 1.0f;
  multiply(sums, columns, Matrix(&one, 0, 0), Matrix(matrix, row), 1, rows, columns, Result::added);
}

}  // namespace headcount::HEADCOUNT_INSTRUCTIONS
