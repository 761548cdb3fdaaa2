// Conversion of vectors between two precisions, on a CPU; precision.cu is the GPU version. See core/in_precision.py. T
// is the type of the outer vectors, V of the inner ones. A vector has `width` columns; the values of a row are
// contiguous.
#include "../native/lanes.hpp"
#include "../native/launcher.hpp"

namespace {

// body(i, at) for each row i and the place `at` of each of its values.
template <class F> void places(int64_t rows, int64_t width, const F& body) {
  if (width == 1) each(rows, [=](int64_t i) { body(i, i); });
  else each(rows, [=](int64_t i) { for (int64_t at = i * width; at < (i + 1) * width; ++at) body(i, at); });
}

// y = factor[0] scale x, rounded to the type of y.
template <class T, class V>
void enter(Array<const T> x, Array<const double> scale, Array<const double> factor, int64_t width, Array<V> y) {
  const double by = factor[0];
  places(scale.size, width, [=](int64_t i, int64_t at) { y[at] = V(by * (scale[i] * wide(x[at]))); });
}

// out = alpha scale y / factor[0] + beta out; beta = 0 never reads out.
template <class T, class V>
void leave(Array<const V> y, Array<const double> scale, Array<const double> factor, int64_t width, Array<T> out,
           T alpha, T beta) {
  const double inverse = 1 / factor[0];
  const auto value = [=](int64_t i, int64_t at) { return alpha * T(scale[i] * (inverse * wide(y[at]))); };
  if (beta == T(0)) places(scale.size, width, [=](int64_t i, int64_t at) { out[at] = value(i, at); });
  else places(scale.size, width, [=](int64_t i, int64_t at) { out[at] = value(i, at) + beta * out[at]; });
}

// out = scale y / factor[0]; for each column c, dots[c] = (w, out) and dots[width + c] = (out, out).
template <class T, class V>
void leave_dots(Array<const V> y, Array<const double> scale, Array<const double> factor, int64_t width, Array<T> out,
                Array<const T> w, Array<acc_t<T>> dots) {
  const double inverse = 1 / factor[0];
  if constexpr (std::is_same_v<T, acc_t<T>>) {
    if (width == 1) {
      const auto [wy, yy] = sums<T, double>(scale.size, [=](auto i, auto& wy, auto& yy) {
        const auto value = load(scale, i) * (inverse * wide(load(y, i)));
        store(out, i, value);
        add(wy, i, conj(load(w, i)) * value), add(yy, i, abs2(value));     // w may be out
      });
      dots[0] = wy, dots[1] = T(yy);
      return;
    }
  }
  for (int64_t c = 0; c < width; ++c) {
    const auto [wy, yy] = row_sums<acc_t<T>, double>(scale.size, [=](int64_t i, acc_t<T>& wy, double& yy) {
      const int64_t at = i * width + c;
      const T value(scale[i] * (inverse * wide(y[at])));
      out[at] = value;
      wy += conj(wide(w[at])) * wide(value), yy += abs2(wide(value));
    });
    dots[c] = wy, dots[width + c] = acc_t<T>(yy);
  }
}

}  // namespace

#define TYPES(f) INSTANCE(f, double, float), INSTANCE(f, complex<double>, complex<float>), \
    INSTANCE(f, double, double), INSTANCE(f, complex<double>, complex<double>), INSTANCE(f, float, float), \
    INSTANCE(f, complex<float>, complex<float>)
KERNELS("swell.core.precision", TYPES(enter), TYPES(leave), TYPES(leave_dots))
