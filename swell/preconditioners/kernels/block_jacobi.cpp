// Products with the inverses of diagonal blocks, on a CPU; block_jacobi.cu has the same kernels for a GPU.
//
// `inverses`: blocks of `block` rows; the last block of x may be shorter. beta = 0 never reads `out`.
#include "../../core/native/launcher.hpp"
#include "../../core/native/lanes.hpp"

namespace {

// put(i, yᵢ) for the rows i of y = D x, where entry (r, c) of block k of D is entry(inverses[k], r, c).
template <class T, class E, class F>
void multiply(Blocks<const T> inverses, Array<const T> x, int64_t block, const E& entry, const F& put) {
  ranges(inverses.count, x.size, [=](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t first = k * block, size = std::min(block, x.size - first);
      for (int64_t r = 0; r < size; ++r) {
        T total(0);
        for (int64_t c = 0; c < size; ++c) total += entry(inverses[k], r, c) * x[first + c];
        put(first + r, total);
      }
    }
  });
}

template <class T, class E>
void multiply_add(Blocks<const T> inverses, Array<const T> x, Array<T> out, int64_t block, T alpha, T beta,
                  const E& entry) {
  if (beta == T(0)) multiply(inverses, x, block, entry, [=](int64_t i, T value) { out[i] = alpha * value; });
  else multiply(inverses, x, block, entry, [=](int64_t i, T value) { out[i] = alpha * value + beta * out[i]; });
}

// out = alpha diag(inverses) x + beta out.
template <class T>
void apply(Blocks<const T> inverses, Array<const T> x, Array<T> out, int64_t block, T alpha, T beta) {
  multiply_add(inverses, x, out, block, alpha, beta,
               [=](const T* values, int64_t r, int64_t c) { return values[r * block + c]; });
}

// out = alpha diag(inverses)ᴴ x + beta out.
template <class T>
void apply_adjoint(Blocks<const T> inverses, Array<const T> x, Array<T> out, int64_t block, T alpha, T beta) {
  multiply_add(inverses, x, out, block, alpha, beta,
               [=](const T* values, int64_t r, int64_t c) { return conj(values[c * block + r]); });
}

}  // namespace

KERNELS("swell.preconditioners.block_jacobi", VALUES(apply), VALUES(apply_adjoint))
