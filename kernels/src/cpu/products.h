// Products of small matrices whose elements are vectors of samples, a block of the result at a time.
#pragma once
#include "cpu/lanes.h"

namespace headcount::HEADCOUNT_INSTRUCTIONS {

// Calls body(Count<rows>, Count<columns>, row, column) for blocks that cover a result of this size. A block's sums fit
// in registers, together with what they are computed from.
template <class Body>
inline HEADCOUNT_INLINED void in_blocks(int rows, int columns, const Body& body) {
  constexpr int most_columns = vector_registers == 32 ? 4 : 2;
  auto of_width = [&](auto width, int column) HEADCOUNT_INLINED {
    int row = 0;
    for (; row + 4 <= rows; row += 4) body(Count<4>{}, width, row, column);
    for (; row < rows; row++) body(Count<1>{}, width, row, column);
  };
  int column = 0;
  for (; column + most_columns <= columns; column += most_columns) of_width(Count<most_columns>{}, column);
  if constexpr (most_columns > 2) {
    for (; column + 2 <= columns; column += 2) of_width(Count<2>{}, column);
  }
  for (; column < columns; column++) of_width(Count<1>{}, column);
}

// An element of `Grid` is a vector of samples (Lanes) or one number for all of them (float).
template <class Element>
struct Grid {
  Element* first;
  ptrdiff_t row;
  ptrdiff_t column;

  Element& operator()(int i, int j) const { return first[i * row + j * column]; }
  Grid transposed() const { return {first, column, row}; }
  Grid from_row(int i) const { return {first + i * row, row, column}; }
};

// sums += left [rows, inner] right [inner, columns], for the block that begins at `row` and `column`.
template <int rows, int columns, class Right>
inline HEADCOUNT_INLINED void add_products(Lanes (&sums)[rows][columns], Grid<const Lanes> left,
                                           Grid<const Right> right, int row, int column, int inner) {
  const Lanes* of_left = left.first + row * left.row;
  const Right* of_right = right.first + column * right.column;
  for (int k = 0; k < inner; k++) {
    Lanes factors[columns];
    unrolled<columns>(
        [&](auto j) HEADCOUNT_INLINED { factors[j.value] = splat(of_right[k * right.row + j.value * right.column]); });
    unrolled<rows>([&](auto i) HEADCOUNT_INLINED {
      const Lanes factor = of_left[k * left.column + i.value * left.row];
      unrolled<columns>([&](auto j) HEADCOUNT_INLINED { sums[i.value][j.value] += factor * factors[j.value]; });
    });
  }
}

// Calls visit(element, i, j) for the elements of a block.
template <int rows, int columns, class Visit>
inline HEADCOUNT_INLINED void for_each(Lanes (&block)[rows][columns], const Visit& visit) {
  unrolled<rows>([&](auto i) HEADCOUNT_INLINED {
    unrolled<columns>([&](auto j) HEADCOUNT_INLINED { visit(block[i.value][j.value], i.value, j.value); });
  });
}

inline Grid<const Lanes> constant(Grid<Lanes> grid) { return {grid.first, grid.row, grid.column}; }

// result [rows, columns] += left [rows, inner] right [inner, columns].
inline __attribute__((noinline)) void add_product(Grid<Lanes> result, Grid<const Lanes> left, Grid<const Lanes> right,
                                                  int rows, int columns, int inner) {
  in_blocks(rows, columns, [&](auto height, auto width, int row, int column) HEADCOUNT_INLINED {
    Lanes sums[height.value][width.value];
    for_each(sums, [&](Lanes& sum, int i, int j) HEADCOUNT_INLINED { sum = result(row + i, column + j); });
    add_products(sums, left, right, row, column, inner);
    for_each(sums, [&](Lanes& sum, int i, int j) HEADCOUNT_INLINED { result(row + i, column + j) = sum; });
  });
}

}  // namespace headcount::HEADCOUNT_INSTRUCTIONS
