// Sparse products C = A B on a CPU, row by row after Gustavson; product.cu has the GPU's kernels.
//
// Each thread has one chunk of consecutive rows, and an array with an element for every column of B. The terms of
// Σₖ aᵢₖ bₖⱼ are added in the order of A's columns, starting at zero. Consecutive rows of A with equal columns, such as
// the unknowns of a mesh point, have equal columns in C: they are computed together, and each row of B is read once
// for all of them. I is the type of the indices of A and B, J of C's.
#include <limits>
#include <memory>
#include <vector>

#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"

namespace {

constexpr int64_t INSERTION = 8, MANY = 16;    // longest row sorted by `sort`; keys below which it is by insertion
constexpr int64_t RANKED = 128;                // longest row sorted by comparing each column with all others
constexpr int64_t AHEAD = 8;                   // a row of B is prefetched this many entries of A before it is read
constexpr int64_t FEW = 1 << 14;               // fewer entries are not worth several threads
constexpr int64_t KEYS = 8;                    // most keys that are ranked at a time
constexpr int64_t TOGETHER = 8;                // most rows of C that are computed together,
constexpr int64_t LONG = 1 << 14;              // unless they may have more entries than this

template <class J> struct Keys;                // a register of keys
template <> struct Keys<int32_t> { typedef int32_t type __attribute__((vector_size(32))); };
template <> struct Keys<int64_t> { typedef int64_t type __attribute__((vector_size(32))); };

template <class T, class I> struct Csr {
  Array<const I> indptr, indices;
  Array<const T> data;
};

// counts[i] = the number of products aᵢₖ bₖⱼ of row i of C, but at most `columns`, the columns of B.
template <class I>
void products(Array<const I> a_indptr, Array<const I> a_indices, Array<const I> b_indptr, int64_t columns,
              Array<int64_t> counts) {
  each(counts.size, [=](int64_t i) {
    int64_t total = 0;
    for (int64_t k = a_indptr[i]; k < a_indptr[i + 1]; ++k)
      total += int64_t(b_indptr[a_indices[k] + 1]) - b_indptr[a_indices[k]];
    counts[i] = std::min(total, columns);
  });
}

// counts[i] = the number of entries of row i of C. Chunk c has the rows bounds[c] to bounds[c + 1] − 1.
template <class I>
void count(Array<const I> a_indptr, Array<const I> a_indices, Array<const I> b_indptr, Array<const I> b_indices,
           int64_t columns, Array<const int64_t> bounds, Array<int64_t> counts) {
  parallel_for(counts.size, bounds.size - 1, [=](int64_t chunk) {
    std::vector<int64_t> seen(size_t(columns), -1);
    for (int64_t i = bounds[chunk]; i < bounds[chunk + 1]; ++i) {
      int64_t found = 0;
      for (int64_t k = a_indptr[i]; k < a_indptr[i + 1]; ++k)
        for (int64_t at = b_indptr[a_indices[k]]; at < b_indptr[a_indices[k] + 1]; ++at) {
          found += seen[b_indices[at]] != i;
          seen[b_indices[at]] = i;
        }
      counts[i] = found;
    }
  });
}

// Prefetch the row of B for the entry of A that is AHEAD after entry k, and the pointer of a later row.
template <class T, class I> INLINE void ask(int64_t k, const Csr<T, I>& A, const Csr<T, I>& B) {
  const int64_t last = A.indices.size - 1;
  __builtin_prefetch(&B.indptr[A.indices[std::min(k + 2 * AHEAD, last)]]);
  const int64_t begin = B.indptr[A.indices[std::min(k + AHEAD, last)]];
  __builtin_prefetch(B.indices.data + begin);
  __builtin_prefetch(B.data.data + begin);
  __builtin_prefetch(B.data.data + begin + 8);
}

// Sort `count` keys by insertion; many by Shell's method, with gaps that shrink threefold.
template <class J> void sort(J* keys, int64_t count) {
  int64_t apart = 1;
  while (MANY * apart < count) apart *= 3;
  for (; apart; apart /= 3)
    for (int64_t k = apart; k < count; ++k) {
      const J key = keys[k];
      int64_t at = k;
      for (; at >= apart && keys[at - apart] > key; at -= apart) keys[at] = keys[at - apart];
      keys[at] = key;
    }
}

// Sort at most RANKED different columns: the number of smaller ones gives each its place. `keys`: work space.
template <class J> INLINE void sort_by_ranks(J* columns, int64_t count, J* keys) {
  typedef typename Keys<J>::type Some;
  constexpr int64_t size = sizeof(Some) / sizeof(J);
  for (int64_t k = 0; k < count; ++k) keys[k] = columns[k];
  for (int64_t k = count; k < count + size; ++k) keys[k] = 0;
  for (int64_t begin = 0; begin < count; begin += size) {
    Some some, places{};
    memcpy(&some, keys + begin, sizeof some);
    for (int64_t k = 0; k < count; ++k) places -= keys[k] < some;              // true is −1
    for (int64_t k = 0; k < std::min(size, count - begin); ++k) columns[places[k]] = some[k];
  }
}

// Sort different columns with one bit a column; only words of 64 bits need a sort. `bits`: zero before and after.
template <class J> void sort_by_bits(J* columns, int64_t count, uint64_t* bits, J* words) {
  int64_t used = 0;
  for (int64_t k = 0; k < count; ++k) {
    const J word = columns[k] >> 6;
    const uint64_t before = bits[word];
    bits[word] = before | uint64_t(1) << (columns[k] & 63);
    words[used] = word;
    used += before == 0;
  }
  sort(words, used);
  for (int64_t k = 0; k < used; ++k) {
    uint64_t left = bits[words[k]];
    bits[words[k]] = 0;
    for (; left; left &= left - 1) *columns++ = J(int64_t(words[k]) << 6) + J(__builtin_ctzll(left));
  }
}

// The number of rows from row i on, before row `last`, that have the columns of row i; at most TOGETHER.
template <class T, class I> INLINE int64_t alike(const Csr<T, I>& A, int64_t i, int64_t last) {
  const int64_t begin = A.indptr[i], length = A.indptr[i + 1] - begin;
  int64_t rows = 1;
  while (rows < TOGETHER && i + rows < last && A.indptr[i + rows + 1] - A.indptr[i + rows] == length &&
         !memcmp(A.indices.data + begin + rows * length, A.indices.data + begin, size_t(length) * sizeof(I)))
    ++rows;
  return rows;
}

// Add `rows` rows of A, from row i on and with equal columns, times B to `sums`: W ≥ rows sums for each column of C.
// place_of(column) returns the column's place in C's row.
template <int W, class T, class I, class Place>
INLINE void add_products(int64_t i, int64_t rows, const Csr<T, I>& A, const Csr<T, I>& B, T* sums, Place place_of) {
  const int64_t begin = A.indptr[i], length = A.indptr[i + 1] - begin;
  for (int64_t k = begin; k < begin + length; ++k) {
    ask(k, A, B);
    T a[W];
    for (int r = 0; r < W; ++r) a[r] = r < rows ? A.data[k + r * length] : T(0);
    for (int64_t entry = B.indptr[A.indices[k]], end = B.indptr[A.indices[k] + 1]; entry < end; ++entry) {
      const T b = B.data[entry];
      T* const sum = sums + W * place_of(B.indices[entry]);
      for (int r = 0; r < W; ++r) sum[r] += a[r] * b;
    }
  }
}

// Like `add_products`, with the least W. Returns it.
template <class T, class I, class Place>
INLINE int64_t add_all(int64_t i, int64_t rows, const Csr<T, I>& A, const Csr<T, I>& B, T* sums, Place place_of) {
  if (rows == 1) return add_products<1>(i, rows, A, B, sums, place_of), 1;
  if (rows == 2) return add_products<2>(i, rows, A, B, sums, place_of), 2;
  if (rows <= 4) return add_products<4>(i, rows, A, B, sums, place_of), 4;
  return add_products<TOGETHER>(i, rows, A, B, sums, place_of), TOGETHER;
}

// Write rows first to last − 1 of C from index `at` on, and their lengths. place[j] is the last index at which column j
// was written; it belongs to the present rows if it is at least `begin`. New and known columns run the same
// instructions, since no processor predicts which comes next.
template <class T, class I, class J>
void fill_rows(int64_t first, int64_t last, int64_t at, Csr<T, I> A, Csr<T, I> B, int64_t columns, Array<J> indices,
               Array<T> data, Array<int64_t> counts) {
  int64_t longest = 0;
  for (int64_t i = first; i < last; ++i) longest = std::max(longest, counts[i]);
  std::vector<T> held(size_t(std::max(longest, TOGETHER * std::min(longest, LONG))), T(0));
  std::vector<J> places(size_t(columns), J(-1)), work(size_t(columns / 64 + 2));
  std::vector<uint64_t> bits(size_t(columns / 64 + 1), 0);
  J keys[RANKED + KEYS];
  T* const sums = held.data();
  J* const place = places.data();
  for (int64_t i = first; i < last;) {
    const int64_t begin = at, rows = counts[i] <= LONG ? alike(A, i, last) : 1;
    const int64_t width = add_all(i, rows, A, B, sums, [&](I column) {
      const bool fresh = place[column] < begin;
      const int64_t found = fresh ? at : place[column];
      place[column] = J(found);
      indices[found] = J(column);
      at += fresh;
      return found - begin;
    });
    const int64_t count = at - begin;
    if (count <= INSERTION) sort(&indices[begin], count);
    else if (count <= RANKED) sort_by_ranks(&indices[begin], count, keys);
    else sort_by_bits(&indices[begin], count, bits.data(), work.data());
    for (int64_t k = 0; k < count; ++k) {
      const int64_t from = width * (place[indices[begin + k]] - begin);
      for (int64_t r = 0; r < rows; ++r) data[begin + r * count + k] = sums[from + r];
    }
    for (int64_t k = 0; k < width * count; ++k) sums[k] = T(0);
    for (int64_t r = 0; r < rows; ++r, ++i, at = begin + r * count) {
      if (r) std::copy_n(&indices[begin], count, &indices[begin + r * count]);
      counts[i] = count;
    }
  }
}

// Write the columns and values of C, and the entries of each row. Chunk c has the rows bounds[c] to bounds[c + 1] − 1,
// and writes them without gaps from index starts[bounds[c]] on: see `close_gaps`. On entry `counts` has upper bounds.
template <class T, class I, class J>
void fill(Array<const I> a_indptr, Array<const I> a_indices, Array<const T> a_data, Array<const I> b_indptr,
          Array<const I> b_indices, Array<const T> b_data, int64_t columns, Array<const int64_t> bounds,
          Array<const int64_t> starts, Array<J> indices, Array<T> data, Array<int64_t> counts) {
  const Csr<T, I> A{a_indptr, a_indices, a_data}, B{b_indptr, b_indices, b_data};
  parallel_for(counts.size, bounds.size - 1, [=](int64_t c) {
    fill_rows(bounds[c], bounds[c + 1], starts[bounds[c]], A, B, columns, indices, data, counts);
  });
}

// Move the chunks that `fill` wrote so that no gaps remain. Chunk c begins at starts[bounds[c]] and moves to
// indptr[bounds[c]]. It moves in pieces no longer than the shift, so that threads never overwrite what others read.
template <class T, class J>
void close_gaps(Array<const int64_t> bounds, Array<const int64_t> starts, Array<const int64_t> indptr,
                Array<J> indices, Array<T> data) {
  for (int64_t c = 1; c < bounds.size - 1; ++c) {
    const int64_t source = starts[bounds[c]], target = indptr[bounds[c]], size = indptr[bounds[c + 1]] - target;
    const int64_t apart = source - target;
    if (!apart) continue;
    for (int64_t begin = 0; begin < size; begin += apart) {
      const int64_t length = std::min(apart, size - begin), from = source + begin, to = target + begin;
      ranges(length, apart < FEW ? 0 : length, [=](int64_t first, int64_t last) {
        for (int64_t k = first; k < last; ++k) indices[to + k] = indices[from + k], data[to + k] = data[from + k];
      });
    }
  }
}

// Write the values of C on its known pattern. Chunk c has the rows bounds[c] to bounds[c + 1] − 1. GPUs use `rows`.
template <class T, class I, class J>
void values(Array<const I> a_indptr, Array<const I> a_indices, Array<const T> a_data, Array<const I> b_indptr,
            Array<const I> b_indices, Array<const T> b_data, int64_t columns, Array<const int64_t> rows,
            Array<const int64_t> bounds, Array<const J> indptr, Array<const J> indices, Array<T> data) {
  const Csr<T, I> A{a_indptr, a_indices, a_data}, B{b_indptr, b_indices, b_data};
  parallel_for(indptr.size - 1, bounds.size - 1, [=](int64_t c) {
    const std::unique_ptr<J[]> place(new J[size_t(columns)]);
    std::vector<T> sums;
    for (int64_t i = bounds[c]; i < bounds[c + 1];) {
      const int64_t begin = indptr[i], count = indptr[i + 1] - begin, together = alike(A, i, bounds[c + 1]);
      for (int64_t k = 0; k < count; ++k) place[indices[begin + k]] = J(k);
      sums.assign(size_t(TOGETHER * count), T(0));
      const int64_t width = add_all(i, together, A, B, sums.data(), [&](I column) { return int64_t(place[column]); });
      for (int64_t k = 0; k < count; ++k)
        for (int64_t r = 0; r < together; ++r) data[begin + r * count + k] = sums[width * k + r];
      i += together;
    }
  });
}

}  // namespace

#define OUT(f, T) INSTANCE(f, T, int32_t, int32_t), INSTANCE(f, T, int32_t, int64_t), \
    INSTANCE(f, T, int64_t, int32_t), INSTANCE(f, T, int64_t, int64_t)
#define ALL(f) OUT(f, double), OUT(f, float), OUT(f, complex<double>), OUT(f, complex<float>)
KERNELS("swell.formats.product", INDICES(products), INDICES(count), ALL(fill), VALUES_INDICES(close_gaps), ALL(values))
