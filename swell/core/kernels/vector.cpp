// Vector operations shared by all methods, on a CPU; vector.cu is the GPU version. Sums are accumulated in double.
#include "../native/lanes.hpp"
#include "../native/launcher.hpp"

namespace {

// out = alpha.
template <class T> void assign(T alpha, Array<T> out) {
  each(out.size, [=](int64_t i) { out[i] = alpha; });
}

// x = alpha x.
template <class T> void scale(T alpha, Array<T> x) {
  elements(x, [=](auto i) { store(x, i, alpha * load(x, i)); });
}

// y = alpha x + y.
template <class T> void axpy(T alpha, Array<const T> x, Array<T> y) {
  elements(y, [=](auto i) { store(y, i, alpha * load(x, i) + load(y, i)); });
}

// y = alpha x + beta y; beta = 0 never reads y.
template <class T> void axpby(T alpha, Array<const T> x, T beta, Array<T> y) {
  if (beta == T(0)) elements(y, [=](auto i) { store(y, i, alpha * load(x, i)); });
  else elements(y, [=](auto i) { store(y, i, alpha * load(x, i) + beta * load(y, i)); });
}

// y = x y, elementwise.
template <class T> void multiply(Array<const T> x, Array<T> y) {
  elements(y, [=](auto i) { store(y, i, load(y, i) * load(x, i)); });
}

// out[0] = (x, y), with x conjugated.
template <class T> void dot(Array<const T> x, Array<const T> y, Array<acc_t<T>> out) {
  std::tie(out[0]) = sums<acc_t<T>>(x.size, [=](auto i, auto& xy) {
    add(xy, i, conj(wide(load(x, i))) * wide(load(y, i)));
  });
}

// out[0] = ‖x‖₂.
template <class T> void norm(Array<const T> x, Array<acc_t<T>> out) {
  const auto [xx] = sums<double>(x.size, [=](auto i, auto& xx) { add(xx, i, abs2(wide(load(x, i)))); });
  out[0] = acc_t<T>(sqrt(xx));
}

// y = alpha x + y, out[0] = (w, y) and out[1] = (y, y).
template <class T>
void axpy_dots(T alpha, Array<const T> x, Array<T> y, Array<const T> w, Array<acc_t<T>> out) {
  const auto [wy, yy] = sums<acc_t<T>, double>(x.size, [=](auto i, auto& wy, auto& yy) {
    const auto value = alpha * load(x, i) + load(y, i);
    store(y, i, value);
    add(wy, i, conj(wide(load(w, i))) * wide(value));          // w may be y
    add(yy, i, abs2(wide(value)));
  });
  out[0] = wy, out[1] = acc_t<T>(yy);
}

// out[0] = (x, y), with x conjugated, and out[1] = (y, y).
template <class T> void dots(Array<const T> x, Array<const T> y, Array<acc_t<T>> out) {
  const auto [xy, yy] = sums<acc_t<T>, double>(x.size, [=](auto i, auto& xy, auto& yy) {
    const auto value = wide(load(y, i));
    add(xy, i, conj(wide(load(x, i))) * value);
    add(yy, i, abs2(value));
  });
  out[0] = xy, out[1] = acc_t<T>(yy);
}

// out[0] = Σ w |r|²: the squared norm of the original residual, for the residual r of a scaled system.
template <class T> void weighted_norm2(Array<const T> r, Array<const float> w, Array<acc_t<T>> out) {
  const auto [norm2] = sums<double>(r.size, [=](auto i, auto& norm2) {
    add(norm2, i, wide(load(w, i)) * abs2(wide(load(r, i))));
  });
  out[0] = acc_t<T>(norm2);
}

inline double modulus(double a) { return fabs(a); }
inline double modulus(complex<double> a) { return hypot(a.re, a.im); }

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
  dots<T>(x, x, out);
  norm_inf<T>(x, out.from(1));
}

// out = alpha d x + beta out, elementwise; beta = 0 never reads out.
template <class T> void multiply_add(Array<const T> d, Array<const T> x, Array<T> out, T alpha, T beta) {
  if (beta == T(0)) elements(out, [=](auto i) { store(out, i, alpha * load(d, i) * load(x, i)); });
  else elements(out, [=](auto i) { store(out, i, alpha * load(d, i) * load(x, i) + beta * load(out, i)); });
}

// out = d x elementwise, found[0] = (w, out) and found[1] = (out, out).
template <class T>
void multiply_dots(Array<const T> d, Array<const T> x, Array<T> out, Array<const T> w, Array<acc_t<T>> found) {
  const auto [wy, yy] = sums<acc_t<T>, double>(x.size, [=](auto i, auto& wy, auto& yy) {
    const auto value = load(d, i) * load(x, i);
    store(out, i, value);
    add(wy, i, conj(wide(load(w, i))) * wide(value));          // w may be out
    add(yy, i, abs2(wide(value)));
  });
  found[0] = wy, found[1] = acc_t<T>(yy);
}

// out = reproducible numbers in [−1, 1), equal on every device: splitmix64's mixing function of the index. `first`: the
// index of out[0] in the sequence that `seed` starts.
template <class T> void random(int64_t seed, int64_t first, Array<T> out) {
  each(out.size, [=](int64_t i) {
    uint64_t z = uint64_t(first + i) + uint64_t(seed) * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    z = z ^ (z >> 31);
    out[i] = T(real_t<T>(double(int64_t(z >> 11)) * 0x1p-52 - 1.0));
  });
}

}  // namespace

KERNELS("swell.core.vector", VALUES(assign), VALUES(scale), VALUES(axpy), VALUES(axpby), VALUES(multiply), VALUES(dot),
        VALUES(norm), VALUES(axpy_dots), VALUES(dots), VALUES(weighted_norm2), VALUES(norm_inf), VALUES(norms),
        VALUES(multiply_add), VALUES(multiply_dots), VALUES(random))
