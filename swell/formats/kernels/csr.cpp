// CSR kernels on a CPU, threads sharing the rows; only GPU kernels use `lanes`. A is (indptr, indices, data).
#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"
#include "sums.hpp"

namespace {

// y = alpha A x + beta y; beta = 0 never reads y.
template <class T, class I>
void product(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const T> x, Array<T> y,
             int64_t lanes, T alpha, T beta) {
  const auto row = [=](int64_t i) { return row_product(indices.data, data.data, x.data, indptr[i], indptr[i + 1]); };
  if (beta == T(0)) each(y.size, [=](int64_t i) { y[i] = alpha * row(i); });
  else each(y.size, [=](int64_t i) { y[i] = alpha * row(i) + beta * y[i]; });
}

// y = alpha A x + beta z + gamma w; gamma = 0 never reads w. y may be z or w.
template <class T, class I>
void product_sum(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const T> x,
                 Array<const T> z, Array<const T> w, Array<T> y, int64_t lanes, T alpha, T beta, T gamma) {
  const auto sum = [=](int64_t i) {
    return alpha * row_product(indices.data, data.data, x.data, indptr[i], indptr[i + 1]) + beta * z[i];
  };
  if (gamma == T(0)) each(y.size, [=](int64_t i) { y[i] = sum(i); });
  else each(y.size, [=](int64_t i) { y[i] = sum(i) + gamma * w[i]; });
}

// y = A x, dots[0] = (w, y), dots[1] = (y, y).
template <class T, class I>
void product_dots(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const T> x, Array<T> y,
                  Array<const T> w, Array<acc_t<T>> dots, int64_t lanes) {
  const auto [wy, yy] = row_sums<acc_t<T>, double>(y.size, [=](int64_t i, acc_t<T>& wy, double& yy) {
    const T value = row_product(indices.data, data.data, x.data, indptr[i], indptr[i + 1]);
    y[i] = value;
    wy += conj_product(w[i], value);
    yy += square(value);
  });
  dots[0] = wy, dots[1] = acc_t<T>(yy);
}

}  // namespace

KERNELS("swell.formats.csr", VALUES_INDICES(product), VALUES_INDICES(product_sum), VALUES_INDICES(product_dots))
