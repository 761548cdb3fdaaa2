// Which columns of x a product takes together: as many as the cache holds the entries of, near a row's.
//
// A product with k columns reads the matrix once, but needs k vectors in the cache at once. Where the columns of a row
// lie far apart, as in a mesh without an ordering, one vector alone fills the cache, and k products one after the other
// take less time.
#pragma once
#include <cstdlib>
#include <tuple>
#include <vector>

#include "../../core/kernels/array.hpp"
#include "../../core/native/threads.hpp"

constexpr int64_t CACHE = 1 << 20;     // bytes of x that stay in a core's caches while rows pass
constexpr int64_t SAMPLES = 64;        // rows or slices that tell how far the columns of a row lie apart
constexpr int64_t PIECE = 512;         // rows whose entries stay in the cache until all columns are done

// The number of `columns` to be taken at once: all, or pairs, or one. `reach`: the distance between the first and the
// last column of a row, on average. `bytes`: of a number.
inline int64_t group_size(int64_t columns, double reach, int64_t bytes) {
  const int64_t size = int64_t(double(CACHE) / (double(bytes) * std::max(reach, 1.0)));
  return size >= columns ? columns : std::max<int64_t>(size & ~int64_t(1), 1);
}

// The distance between the first and the last column of a row: the mean over some rows. (indptr, indices): a pattern of
// CSR, or of BSR with blocks of `size` columns.
template <class I> double reach(Array<const I> indptr, Array<const I> indices, int64_t size = 1) {
  int64_t distance = 0;
  const int64_t n = indptr.size - 1;
  if (n < 1) return 0;
  for (int64_t sample = 0; sample < SAMPLES; ++sample) {
    const int64_t row = sample * n / SAMPLES, begin = indptr[row], end = indptr[row + 1];
    if (begin < end) distance += std::abs(int64_t(indices[end - 1]) - int64_t(indices[begin]));
  }
  return double(distance * size) / SAMPLES;
}

// body(group) for groups that together are `columns`.
template <class F> void each_group(Array<const int64_t> columns, double reach, int64_t bytes, const F& body) {
  const int64_t size = group_size(columns.size, reach, bytes);
  for (int64_t begin = 0; begin < columns.size; begin += size)
    body(Array<const int64_t>{columns.data + begin, std::min(size, columns.size - begin)});
}

// dots[j] = the sums (w[j], y[j]) and (y[j], y[j]) of each column j of `group`, with the bits of `in_order` of
// lanes.hpp. part(begin, end, sums) adds what units begin to end − 1 give to sums[k], of the k-th column of the group.
template <class A, class F>
void column_dots(Array<const int64_t> group, int64_t rows, int64_t units, Table<A> dots, const F& part) {
  struct Sums { A wy; double yy; };
  const int64_t chunks = chunks_of(rows), count = group.size;
  std::vector<Sums> parts(chunks * count, Sums{A(0), 0.0});
  Sums* const first = parts.data();
  parallel_for(rows, chunks, [&part, units, chunks, count, first](int64_t chunk) {
    const F own = part;
    own(chunk_begin(units, chunk, chunks), chunk_begin(units, chunk + 1, chunks), first + chunk * count);
  });
  for (int64_t k = 0; k < count; ++k) {
    Sums total{A(0), 0.0};
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      total.wy += first[chunk * count + k].wy;
      total.yy += first[chunk * count + k].yy;
    }
    dots[group[k]][0] = total.wy, dots[group[k]][1] = A(total.yy);
  }
}
