// Products with the inverses of diagonal blocks, for both devices.
//
// `inverses`: blocks of `block` rows; the last block of x may be shorter. beta = 0 never reads `out`.
#include "step.hpp"

namespace {

// put(i, yᵢ) for the rows i of y = D x, where entry (r, c) of block k of D is entry(inverses[k], r, c). On a GPU the
// threads of a block's rows read one contiguous piece of memory.
template <class T, class E, class F>
DEVICE void multiply(Device device, Blocks<const T> inverses, Array<const T> x, int64_t block, E entry, F put) {
  rows_of_blocks(device, x.size, block, [=](int64_t k, int64_t size) {
    const T *const values = inverses[k], *const part = x.data + k * block;
    return [=](int64_t r) {
      T total(0);
      for (int64_t c = 0; c < size; ++c) total += entry(values, r, c) * part[c];
      put(k * block + r, total);
    };
  });
}

template <class T, class E>
DEVICE void multiply_add(Device device, Blocks<const T> inverses, Array<const T> x, Array<T> out, int64_t block,
                         T alpha, T beta, E entry) {
  if (beta == T(0)) multiply(device, inverses, x, block, entry, [=](int64_t i, T value) { out[i] = alpha * value; });
  else multiply(device, inverses, x, block, entry, [=](int64_t i, T value) { out[i] = alpha * value + beta * out[i]; });
}

// out = alpha diag(inverses) x + beta out.
// launch: elements of x, 256 threads
template <class T>
ROW_KERNEL apply(Device device, Blocks<const T> inverses, Array<const T> x, Array<T> out, int64_t block, T alpha,
                 T beta) {
  multiply_add(device, inverses, x, out, block, alpha, beta,
               [=](const T* values, int64_t r, int64_t c) { return values[r * block + c]; });
}

// out = alpha diag(inverses)ᴴ x + beta out.
// launch: elements of x, 256 threads
template <class T>
ROW_KERNEL apply_adjoint(Device device, Blocks<const T> inverses, Array<const T> x, Array<T> out, int64_t block,
                         T alpha, T beta) {
  multiply_add(device, inverses, x, out, block, alpha, beta,
               [=](const T* values, int64_t r, int64_t c) { return conj(values[c * block + r]); });
}

}  // namespace

KERNELS("swell.preconditioners.block_jacobi", VALUES(apply), VALUES(apply_adjoint))
