// Maxima on a CPU, in one walk; in reductions.cu blocks combine what their threads have.
#include "breakdown.hpp"
#include "../native/lanes.hpp"
#include "../native/launcher.hpp"

namespace {

// out[0] = ‖x‖∞; NaN if x contains NaN.
template <class T> void norm_inf(Array<const T> x, Array<acc_t<T>> out) {
  double most = 0;
  for (int64_t i = 0; i < x.size; ++i) {
    const double size = modulus(wide(x[i]));
    if (size > most || isnan(size)) most = size;
  }
  out[0] = acc_t<T>(most);
}

// out[0] = (x, x) and out[1] = ‖x‖∞; NaN if x contains NaN.
template <class T> void norms(Array<const T> x, Array<acc_t<T>> out) {
  const auto [xx] = sums<double>(x.size, [=](auto i, auto& xx) { add(xx, i, abs2(wide(load(x, i)))); });
  out[0] = acc_t<T>(xx);
  norm_inf<T>(x, out.from(1));
}

}  // namespace

KERNELS("swell.core.reductions", VALUES(norm_inf), VALUES(norms))
