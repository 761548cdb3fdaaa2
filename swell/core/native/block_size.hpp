// The number of rows of a dense block, known to the compiler for small blocks: it then unrolls the loops over a block.
#pragma once
#include <stdint.h>

#include <stdexcept>
#include <string>
#include <type_traits>

constexpr int64_t LARGEST = 32;        // most rows of a block; formats/blocks.py refuses larger ones

template <int64_t ROWS> using Size = std::integral_constant<int64_t, ROWS>;

// The length of an array with a number for each row of a block, of a size of type S: a Size or int64_t.
template <class S> constexpr int64_t room = LARGEST;
template <int64_t ROWS> constexpr int64_t room<Size<ROWS>> = ROWS;

// In the body of a loop over the rows of a block of constant size: GCC then vectorises along a row, not across rows,
// whose gathers took up to three times as long.
template <class S> inline __attribute__((always_inline)) void row_by_row(S) {
  if constexpr (!std::is_same_v<S, int64_t>) asm volatile("");
}

inline void require_size(int64_t rows) {
  if (rows > LARGEST)
    throw std::invalid_argument("blocks of " + std::to_string(rows) + " rows: expected at most "
                                + std::to_string(LARGEST));
}

// body(size), where `size` is a Size up to 8 rows, else an int64_t. With 64-bit indices I it is an int64_t always: few
// matrices have them, and every Size takes time to compile.
template <class I, class F> void with_size(int64_t rows, const F& body) {
  if constexpr (sizeof(I) == 4)
    switch (rows) {
      case 1: return body(Size<1>());
      case 2: return body(Size<2>());
      case 3: return body(Size<3>());
      case 4: return body(Size<4>());
      case 5: return body(Size<5>());
      case 6: return body(Size<6>());
      case 7: return body(Size<7>());
      case 8: return body(Size<8>());
    }
  require_size(rows);
  body(rows);
}
