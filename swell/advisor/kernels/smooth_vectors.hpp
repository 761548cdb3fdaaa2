// Smooth vectors and their Rayleigh quotients, for both devices; see smooth_vectors.py one folder up.
//
// The vectors lie side by side: entry i of vector c is x[4 i + c]. They are in single precision, so a quotient below
// 1e-13 would be rounding. A thread of a GPU has a row of one vector, and four neighbours read a column's four numbers
// at once; a thread of a CPU has a row of all.
#include "step.hpp"

namespace {

constexpr int COUNT = 4;     // vectors
#ifdef __CUDACC__
constexpr int EACH = 1;      // vectors of a thread
#else
constexpr int EACH = COUNT;
#endif

template <class T> INLINE float single(T value) { return float(value); }
template <class R> INLINE float single(complex<R> value) { return float(value.re); }

// f(i, first): row i of the vectors `first` to first + EACH − 1.
template <class F> INLINE void parts(Device device, int64_t n, F f) {
  rows(device, n * (COUNT / EACH), [=](int64_t part) { f(part * EACH / COUNT, part * EACH % COUNT); });
}

// x = cos(c π (i + ½) / n) in row i of vector c; z = 0.
// launch: elements of x, 256 threads
template <class T> ROW_KERNEL cosines(Device device, Array<float> x, Array<float> z) {
  const int64_t n = x.size / COUNT;
  const double step = 3.14159265358979323846 / n;
  parts(device, n, [=](int64_t i, int64_t first) {
    const float once = float(cos((i + 0.5) * step)), twice = 2 * once * once - 1;
    for (int64_t c = first; c < first + EACH; ++c) {
      x[COUNT * i + c] = c == 0 ? 1 : c == 1 ? once : c == 2 ? twice : (2 * twice - 1) * once;
      z[COUNT * i + c] = 0;
    }
  });
}

// y = A x, diagonal = aᵢᵢ, moduli = Σⱼ |aᵢⱼ|.
// launch: elements of x, 256 threads
template <class T, class I>
ROW_KERNEL products(Device device, Array<const I> indptr, Array<const I> indices, Array<const T> data,
                    Array<const float> x, Array<float> y, Array<float> diagonal, Array<float> moduli) {
  parts(device, diagonal.size, [=](int64_t i, int64_t first) {
    float sums[EACH] = {}, own = 0, all = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      const int64_t j = indices[k];
      const float value = single(data[k]);
      for (int c = 0; c < EACH; ++c) sums[c] += value * x[COUNT * j + first + c];
      all += fabs(value);
      own = j == i ? value : own;
    }
    for (int c = 0; c < EACH; ++c) y[COUNT * i + first + c] = sums[c];
    if (first == 0) diagonal[i] = own, moduli[i] = all;
  });
}

// A step of the smoother, with D = diag(moduli) and y = A x: z = a z − b D⁻¹ y, x += z.
// launch: elements of x, 256 threads
template <class T>
ROW_KERNEL relax(Device device, Array<const float> moduli, double a, double b, Array<const float> y, Array<float> x,
                  Array<float> z) {
  parts(device, moduli.size, [=](int64_t i, int64_t first) {
    const float by = moduli[i] > 0 ? float(b) / moduli[i] : 0.0f;
    for (int64_t at = COUNT * i + first; at < COUNT * i + first + EACH; ++at) {
      z[at] = float(a) * z[at] - by * y[at];
      x[at] += z[at];
    }
  });
}

// out = the lower triangles, row by row, of Xᵀ Y and of Xᵀ D X with D = diag(diagonal).
// launch: elements of diagonal, 256 threads, at most 2 blocks per multiprocessor
template <class T>
ROW_KERNEL energies(Device device, Array<const float> x, Array<const float> y, Array<const float> diagonal,
                    Array<double> out) {
  using D = double;
  const auto products = [=](int64_t i, auto&... sums) {
    double left[COUNT], right[COUNT], all[20];
    for (int c = 0; c < COUNT; ++c) left[c] = x[COUNT * i + c], right[c] = y[COUNT * i + c];
    int at = 0;
    for (int c = 0; c < COUNT; ++c)
      for (int e = 0; e <= c; ++e, ++at) all[at] = left[c] * right[e], all[at + 10] = left[c] * diagonal[i] * left[e];
    at = 0;
    ((sums += all[at++]), ...);
  };
  const auto write = [=](auto... sums) {
    int at = 0;
    ((out[at++] = sums), ...);
  };
  rows<D, D, D, D, D, D, D, D, D, D, D, D, D, D, D, D, D, D, D, D>(device, diagonal.size, products, write);
}

}  // namespace

KERNELS("swell.advisor.smooth_vectors", INSTANCE(cosines, float), REALS_INDICES(products), INSTANCE(relax, float),
        INSTANCE(energies, float))
