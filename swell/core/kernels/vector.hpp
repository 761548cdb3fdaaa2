// Vector operations shared by all methods, for both devices; reductions.cu and .cpp have maxima. Sums are in double.
#include "basis.hpp"

namespace {

// y = alpha.
// launch: elements of y, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T> KERNEL assign(Device device, T alpha, Array<T> y) {
  step(device, vectors(out(y)), [=] { return [=](auto& y) { y = filled(y, alpha); }; });
}

// x = alpha x.
// launch: elements of x, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T> KERNEL scale(Device device, T alpha, Array<T> x) {
  step(device, vectors(x), [=] { return [=](auto& x) { x = alpha * x; }; });
}

// y = alpha x + y.
// launch: elements of x, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T> KERNEL axpy(Device device, T alpha, Array<const T> x, Array<T> y) {
  step(device, vectors(x, y), [=] { return [=](auto x, auto& y) { y = alpha * x + y; }; });
}

// y = alpha x + beta y; beta = 0 ignores y.
// launch: elements of x, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T> KERNEL axpby(Device device, T alpha, Array<const T> x, T beta, Array<T> y) {
  if (beta == T(0)) step(device, vectors(x, y), [=] { return [=](auto x, auto& y) { y = alpha * x; }; });
  else step(device, vectors(x, y), [=] { return [=](auto x, auto& y) { y = alpha * x + beta * y; }; });
}

// y = x y, elementwise.
// launch: elements of x, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T> KERNEL multiply(Device device, Array<const T> x, Array<T> y) {
  step(device, vectors(x, y), [=] { return [=](auto x, auto& y) { y = y * x; }; });
}

// y = alpha d x + beta y, elementwise; beta = 0 ignores y.
// launch: elements of x, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T>
KERNEL multiply_add(Device device, Array<const T> d, Array<const T> x, Array<T> y, T alpha, T beta) {
  if (beta == T(0)) step(device, vectors(d, x, y), [=] {
    return [=](auto d, auto x, auto& y) { y = alpha * d * x; };
  });
  else step(device, vectors(d, x, y), [=] {
    return [=](auto d, auto x, auto& y) { y = alpha * d * x + beta * y; };
  });
}

// out[0] = (x, y), with x conjugated.
// launch: elements of x, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T> KERNEL dot(Device device, Array<const T> x, Array<const T> y, Array<acc_t<T>> out) {
  step<acc_t<T>>(device, vectors(x, y), [=] {
    return [=](auto x, auto y, auto& xy) { xy += conj(wide(x)) * wide(y); };
  }, [=](acc_t<T> xy) { out[0] = xy; });
}

// out[0] = (x, y), with x conjugated, and out[1] = (y, y).
// launch: elements of x, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T> KERNEL dots(Device device, Array<const T> x, Array<const T> y, Array<acc_t<T>> out) {
  step<acc_t<T>, double>(device, vectors(x, y), [=] {
    return [=](auto x, auto y, auto& xy, auto& yy) {
      xy += conj(wide(x)) * wide(y);
      yy += abs2(wide(y));
    };
  }, [=](acc_t<T> xy, double yy) { out[0] = xy, out[1] = yy; });
}

// out[0] = ‖x‖₂.
// launch: elements of x, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T> KERNEL norm(Device device, Array<const T> x, Array<acc_t<T>> out) {
  step<double>(device, vectors(x), [=] {
    return [=](auto x, auto& xx) { xx += abs2(wide(x)); };
  }, [=](double xx) { out[0] = sqrt(xx); });
}

// out[0] = Σ w |r|²: the squared norm of the original residual, for the residual r of a scaled system.
// launch: elements of r, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T> KERNEL weighted_norm2(Device device, Array<const T> r, Array<const float> w, Array<acc_t<T>> out) {
  step<double>(device, vectors(r, weights<T>(w)), [=] {
    return [=](auto r, auto w, auto& norm2) { norm2 += w * abs2(wide(r)); };
  }, [=](double norm2) { out[0] = norm2; });
}

// y = alpha x + y, out[0] = (w, y) and out[1] = (y, y). w may be y.
// launch: elements of x, 512 threads, a pack each, at most 3 blocks per multiprocessor
template <class T>
KERNEL axpy_dots(Device device, T alpha, Array<const T> x, Array<T> y, Array<const T> w, Array<acc_t<T>> out) {
  packs<acc_t<T>, double>(device, y, [=] {
    return [=](auto i, auto& wy, auto& yy) {
      const auto value = alpha * load(x, i) + load(y, i);
      store(y, i, value);
      wy += conj(wide(load(w, i))) * wide(value);
      yy += abs2(wide(value));
    };
  }, [=](acc_t<T> wy, double yy) { out[0] = wy, out[1] = yy; });
}

// y = d x elementwise, out[0] = (w, y) and out[1] = (y, y). w may be y.
// launch: elements of x, 512 threads, a pack each, at most 3 blocks per multiprocessor
template <class T>
KERNEL multiply_dots(Device device, Array<const T> d, Array<const T> x, Array<T> y, Array<const T> w,
                     Array<acc_t<T>> out) {
  packs<acc_t<T>, double>(device, y, [=] {
    return [=](auto i, auto& wy, auto& yy) {
      const auto value = load(d, i) * load(x, i);
      store(y, i, value);
      wy += conj(wide(load(w, i))) * wide(value);
      yy += abs2(wide(value));
    };
  }, [=](acc_t<T> wy, double yy) { out[0] = wy, out[1] = yy; });
}

// out = reproducible numbers in [−1, 1), equal on every device: splitmix64's mixing function of the index. `first`: the
// index of out[0] in the sequence that `seed` starts.
// launch: elements of out, 256 threads
template <class T> ROW_KERNEL random(Device device, int64_t seed, int64_t first, Array<T> out) {
  rows(device, out.size, [=](int64_t i) {
    uint64_t z = uint64_t(first + i) + uint64_t(seed) * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    z = z ^ (z >> 31);
    out[i] = T(real_t<T>(double(int64_t(z >> 11)) * 0x1p-52 - 1.0));
  });
}

}  // namespace

KERNELS("swell.core.vector", VALUES(assign), VALUES(scale), VALUES(axpy), VALUES(axpby), VALUES(multiply),
        VALUES(multiply_add), VALUES(dot), VALUES(dots), VALUES(norm), VALUES(weighted_norm2), VALUES(axpy_dots),
        VALUES(multiply_dots), VALUES(random))
