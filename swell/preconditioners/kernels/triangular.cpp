// Triangular solves on a CPU. preconditioners/exact.py describes the layout: the arrays from `rows` to `parts`, and
// `width`. An empty `rows` means consecutive rows, an empty `inverse` D = I. A part is (begin, end, first row, step) in
// the order of visits. S is the type of the stored factor, T that of the vectors.
//
// Rows are visited in the order of the solve, so that one kernel serves lower and upper matrices. The nearest columns
// of a row come last: their entries of x become known last. In a chain nearly every row needs its predecessor: that value
// comes from a register, since a load from memory would be too slow. Without a chain the test for it would be
// mispredicted. Widths 2 and 3 of a chain (grids of five and seven points) are unrolled.
#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"

namespace {

template <class S, class T, class I, class O> struct Factor {
  Array<const I> rows, ptr;
  Array<const O> offsets;
  Array<const S> values, inverse;
  Table<const int64_t> parts;
  int64_t width;

  // x = (I + N)⁻¹ D⁻¹ b in the rows of one part.
  template <int WIDTH, bool CHAIN> void forward(int64_t part, Array<const T> b, Array<T> x) const {
    const int64_t begin = parts[part][0], end = parts[part][1], step = parts[part][3], wide = WIDTH ? WIDTH : width;
    const bool longer = ptr[end] > ptr[begin];
    int64_t far = ptr[begin], near = begin * wide, i = parts[part][2] - step, before = -1;
    T value(0);
    for (int64_t t = begin; t < end; ++t) {
      i = rows.size ? int64_t(rows[t]) : i + step;
      T total = inverse.size ? T(inverse[t]) * b[i] : b[i];
      x[i] = total;                                    // for the padding
      if (longer)
        for (const int64_t stop = ptr[t + 1]; far < stop; ++far) total -= T(values[far]) * x[i + offsets[far]];
      for (int64_t k = 0; k < wide - CHAIN; ++k, ++near) total -= T(values[near]) * x[i + offsets[near]];
      if (CHAIN) {
        const int64_t j = i + offsets[near];
        if (j == before) total -= T(values[near]) * value;
        else total -= T(values[near]) * x[j];
        ++near;
        before = i, value = total;
      }
      x[i] = total;
    }
  }

  // Solve (I + Nᴴ) y = b, x = D⁻ᴴ y for the rows of one part, last row first. x holds b on entry. A solved row is
  // subtracted from the rows that need it; in a chain, a register holds what the next row loses. Return these rows'
  // parts of (w, x) and (x, x), if w is not empty.
  template <int WIDTH, bool CHAIN>
  std::tuple<acc_t<T>, double> backward(int64_t part, Array<T> x, Array<const T> w) const {
    const int64_t begin = parts[part][0], end = parts[part][1], step = parts[part][3], wide = WIDTH ? WIDTH : width;
    const bool longer = ptr[end] > ptr[begin];
    int64_t far = ptr[end], near = end * wide, i = parts[part][2] + step * (end - begin);
    acc_t<T> wx(0);
    double xx = 0;
    T lost(0);
    for (int64_t t = end - 1; t >= begin; --t) {
      i = rows.size ? int64_t(rows[t]) : i - step;
      T y = x[i];
      if (CHAIN) {
        y -= lost;
        --near;
        const int64_t j = i + offsets[near], next = t > begin ? rows.size ? int64_t(rows[t - 1]) : i - step : -1;
        lost = T(conj(values[near])) * y;
        if (j != next) {
          x[j] -= lost;
          lost = real_t<T>(0) * lost;                  // NaN stays
        }
      }
      for (int64_t k = 0; k < wide - CHAIN; ++k) --near, x[i + offsets[near]] -= T(conj(values[near])) * y;
      if (longer)
        for (const int64_t stop = ptr[t]; far > stop;) --far, x[i + offsets[far]] -= T(conj(values[far])) * y;
      if (inverse.size) y = T(conj(inverse[t])) * y;
      x[i] = y;
      if (w.size) wx += conj(acc_t<T>(w[i])) * acc_t<T>(y), xx += abs2(acc_t<T>(y));
    }
    return {wx, xx};
  }

  // call(forward or backward's variant) for this width. `chain`: nearly every row needs its predecessor.
  template <class F> auto unrolled(bool chain, const F& call) const {
    using std::integral_constant;
    if (!chain) return call(integral_constant<int, 0>(), integral_constant<bool, false>());
    if (width == 2) return call(integral_constant<int, 2>(), integral_constant<bool, true>());
    if (width == 3) return call(integral_constant<int, 3>(), integral_constant<bool, true>());
    return call(integral_constant<int, 0>(), integral_constant<bool, true>());
  }
  void forward(int64_t part, Array<const T> b, Array<T> x, bool chain) const {
    unrolled(chain, [=](auto width, auto chain) { forward<width, chain>(part, b, x); });
  }
  auto backward(int64_t part, Array<T> x, Array<const T> w, bool chain) const {
    return unrolled(chain, [=](auto width, auto chain) { return backward<width, chain>(part, x, w); });
  }
};

#define FACTOR Array<const I> rows, Array<const I> ptr, Array<const O> offsets, Array<const S> values, \
    Array<const S> inverse, Table<const int64_t> parts
#define MAKE const Factor<S, T, I, O> factor{rows, ptr, offsets, values, inverse, parts, width}

// x = T⁻¹ b, one part after the other.
template <class S, class T, class I, class O>
void solve(FACTOR, Array<const T> b, Array<T> x, int64_t width, bool chain) {
  MAKE;
  for (int64_t part = 0; part < parts.rows; ++part) factor.forward(part, b, x, chain);
}

// x = T⁻ᴴ x. If w is not empty, also dots[0] = (w, x) and dots[1] = (x, x) with the new x.
template <class S, class T, class I, class O>
void solve_adjoint(FACTOR, Array<T> x, Array<const T> w, Array<acc_t<T>> dots, int64_t width, bool chain) {
  MAKE;
  acc_t<T> wx(0);
  double xx = 0;
  for (int64_t part = parts.rows - 1; part >= 0; --part) {
    const auto [some, more] = factor.backward(part, x, w, chain);
    wx += some, xx += more;
  }
  if (w.size) dots[0] = wx, dots[1] = acc_t<T>(xx);
}

// x = T⁻¹ b for three parts, two of them independent and solved on two threads. `serial_part` (0 or 2): the part that
// one thread solves, before or after the other two.
template <class S, class T, class I, class O>
void solve_halves(FACTOR, int64_t serial_part, Array<const T> b, Array<T> x, int64_t width, bool chain) {
  MAKE;
  if (serial_part == 0) factor.forward(0, b, x, chain);
  parallel_for(x.size, 2, [=](int64_t half) { factor.forward(half + (serial_part == 0), b, x, chain); });
  if (serial_part == 2) factor.forward(2, b, x, chain);
}

// Like `solve_adjoint`, for three parts: the last, then the first two on two threads.
template <class S, class T, class I, class O>
void solve_adjoint_halves(FACTOR, Array<T> x, Array<const T> w, Array<acc_t<T>> dots, int64_t width, bool chain) {
  MAKE;
  std::tuple<acc_t<T>, double> found[3];
  found[2] = factor.backward(2, x, w, chain);
  parallel_for(x.size, 2, [&](int64_t half) { found[half] = factor.backward(half, x, w, chain); });
  acc_t<T> wx(0);
  double xx = 0;
  for (const auto& [some, more] : found) wx += some, xx += more;
  if (w.size) dots[0] = wx, dots[1] = acc_t<T>(xx);
}

}  // namespace

#define OFFSETS(f, S, T) KERNEL(f, S, T, int32_t, int16_t), KERNEL(f, S, T, int64_t, int16_t), \
    KERNEL(f, S, T, int32_t, int32_t), KERNEL(f, S, T, int64_t, int64_t)
#define ALL(f) OFFSETS(f, double, double), OFFSETS(f, float, float), OFFSETS(f, float, double), \
    OFFSETS(f, complex<double>, complex<double>), OFFSETS(f, complex<float>, complex<float>), \
    OFFSETS(f, complex<float>, complex<double>)
KERNELS("swell.preconditioners.triangular", ALL(solve), ALL(solve_adjoint), ALL(solve_halves),
        ALL(solve_adjoint_halves))
