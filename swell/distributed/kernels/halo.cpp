// Halo kernels of a distributed product on a CPU: pack the entries to send, add the off-diagonal product. halo.cu has
// the GPU's.
//
// The off-diagonal part A is in BSR, with row-major blocks of `block` rows; blocks of 1 are CSR. It has one row for
// each of `rows`, which are distinct.
#include "../../core/native/block_size.hpp"
#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"

namespace {

// Write out[k] = x[index[k]].
template <class T> void pack(Array<const int32_t> index, Array<const T> x, Array<T> out) {
  each(index.size, [=](int64_t k) { out[k] = x[index[k]]; });
}

// Row k of A x.
template <class T, class S>
T row_product(Array<const int32_t> indptr, Array<const int32_t> indices, Array<const T> data, Array<const T> x, S size,
              int64_t k) {
  const int64_t i = k / size, r = k % size;
  T total(0);
  for (int64_t at = indptr[i]; at < indptr[i + 1]; ++at) {
    const T *const row = data.data + (at * size + r) * size, *const part = x.data + indices[at] * int64_t(size);
    for (int64_t c = 0; c < size; ++c) total += row[c] * part[c];
  }
  return total;
}

// Add to out: out[rows] += alpha A x.
template <class T>
void add_product(Array<const int32_t> rows, Array<const int32_t> indptr, Array<const int32_t> indices,
                 Array<const T> data, Array<const T> x, Array<T> out, int64_t block, T alpha) {
  with_size<int32_t>(block, [=](auto size) {
    each(rows.size, [=](int64_t k) { out[rows[k]] += alpha * row_product(indptr, indices, data, x, size, k); });
  });
}

// Like add_product with alpha = 1: out[rows] += A x. It also adds the resulting change of the inner product (w, out) to
// dots[0].
template <class T>
void add_product_dot(Array<const int32_t> rows, Array<const int32_t> indptr, Array<const int32_t> indices,
                     Array<const T> data, Array<const T> x, Array<T> out, Array<const T> w, Array<acc_t<T>> dots,
                     int64_t block) {
  with_size<int32_t>(block, [=](auto size) {
    const auto [change] = row_sums<acc_t<T>>(rows.size, [=](int64_t k, acc_t<T>& change) {
      T& y = out[rows[k]];
      const T before = y;
      y += row_product(indptr, indices, data, x, size, k);
      change += conj(wide(w[rows[k]])) * wide(y) - conj(wide(w[rows[k]])) * wide(before);
    });
    dots[0] += change;
  });
}

}  // namespace

KERNELS("swell.distributed.halo", VALUES(pack), VALUES(add_product), VALUES(add_product_dot))
