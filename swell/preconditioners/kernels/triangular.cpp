// Triangular solves on a CPU. preconditioners/exact.py describes the layout: the arrays from `rows` to `parts`, and
// `width`. An empty `rows` means consecutive rows, an empty `inverse` D = I. A part is (begin, end, first row, step) in
// the order of visits. S: the type of the stored factor; T: of the vectors.
//
// Rows are visited in the order of the solve, so that one kernel serves lower and upper matrices. The nearest columns
// of a row come last: their entries of x become known last. In a chain nearly every row needs its predecessor: that
// value comes from a register, since a load from memory would be too slow. Without a chain the test for it would be
// mispredicted. Widths 2 and 3 of a chain (grids of five and seven points) are unrolled.
#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"

#include <cstdlib>

namespace {

constexpr int64_t SLICE = 32;

// Return (begin, end): the entries of CSR row i strictly inside the triangle are the places begin to end − 1. `lower`
// says which triangle. Columns ascend in a row. The search reads these entries and one more.
template <class I>
std::pair<int64_t, int64_t> strict_part(Array<const I> indptr, Array<const I> indices, int64_t i, bool lower) {
  const int64_t begin = indptr[i], end = indptr[i + 1];
  int64_t middle = lower ? begin : end;
  if (lower) while (middle < end && indices[middle] < i) ++middle;
  else while (middle > begin && indices[middle - 1] > i) --middle;
  return lower ? std::pair(begin, middle) : std::pair(middle, end);
}

// Write lengths[t] = number of strictly triangular entries of the t-th visited row. Return (follows, crossing, needed,
// reach).
//
// Rows are visited from the first if `lower`, else from the last. order[i]: the place of row i in the vectors; empty
// for i. follows: number of rows that need their predecessor. crossing: first row from `middle` on that needs a row
// before `middle`, or n. needed: one more than the last row before `middle` that a row from `middle` on needs. All
// three count rows in the order of visits. reach: largest modulus of an offset between places in the vectors.
template <class I>
std::tuple<int64_t, int64_t, int64_t, int64_t> count(Array<const I> indptr, Array<const I> indices, bool lower,
                                                     Array<const I> order, int64_t middle, Array<I> lengths) {
  const int64_t n = lengths.size;
  int64_t follows = 0, crossing = n, needed = 0, reach = 0;
  for (int64_t t = 0; t < n; ++t) {
    const int64_t i = lower ? t : n - 1 - t, place = order.size ? order[i] : i;
    const auto [begin, end] = strict_part(indptr, indices, i, lower);
    int64_t nearest = -1, last = -1;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t j = indices[k], visited = lower ? j : n - 1 - j;
      nearest = std::max(nearest, visited);
      if (visited < middle) last = std::max(last, visited);
      reach = std::max(reach, std::abs(place - (order.size ? order[j] : j)));
    }
    lengths[t] = I(end - begin);
    follows += nearest >= 0 && nearest == t - 1;
    if (t < middle) continue;
    if (last >= 0) crossing = std::min(crossing, t);
    needed = std::max(needed, last + 1);
  }
  return {follows, crossing, needed, reach};
}

// Fill the layout of exact.py with the rows of one triangle of a CSR matrix. Return the first row with a zero diagonal
// entry, or −1.
//
// Writes `offsets`, `values` (rows divided by their diagonal entries) and `inverse` (1 / diagonal; not with a `unit`
// diagonal). The `width` entries of row t nearest the diagonal go to place t `width`, padded with zeros; the other
// entries go to ptr[t]. `lower` and `order` are as in `count`.
template <class S, class T, class I, class O>
int64_t pack(Array<const I> indptr, Array<const I> indices, Array<const T> data, bool lower, bool unit,
             Array<const I> order, Array<const I> ptr, Array<O> offsets, Array<S> values, Array<S> inverse,
             int64_t width) {
  const int64_t n = indptr.size - 1;
  int64_t bad = n;
  for (int64_t t = 0; t < n; ++t) {
    const int64_t i = lower ? t : n - 1 - t, place = order.size ? order[i] : i;
    const auto [begin, end] = strict_part(indptr, indices, i, lower);
    acc_t<S> d(1);
    if (!unit) {
      const int64_t at = lower ? end : begin - 1;
      const bool stored = at >= indptr[i] && at < indptr[i + 1] && indices[at] == i;
      S diagonal = stored ? S(data[at]) : S(0);
      if (diagonal == S(0)) bad = std::min(bad, i), diagonal = S(1);
      d = acc_t<S>(1) / acc_t<S>(diagonal);
      inverse[t] = S(d);
    }
    const int64_t strict = end - begin, beyond = strict - std::min(strict, width);    // not of the `width` nearest
    int64_t near = t * width, far = ptr[t];
    for (int64_t k = strict; k < width; ++k, ++near)       // padding: zero times the row's own entry of x
      offsets[near] = 0, values[near] = S(0);
    for (int64_t step = 0; step < strict; ++step) {
      const int64_t k = lower ? begin + step : end - 1 - step, at = step < beyond ? far++ : near++, j = indices[k];
      offsets[at] = O((order.size ? int64_t(order[j]) : j) - place);
      values[at] = S(d * acc_t<T>(data[k]));
    }
  }
  return bad < n ? bad : -1;
}

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

// One Jacobi sweep: y = b − N x; if `last`, y = D⁻¹ (b − N x). Writes y only.
//
// rows[t] is the row at place t, inverse[t] its inverse diagonal entry. N is in slices of 32 rows: entry k of row i of
// slice s is at ptr[s] + 32 k + i of `columns` and `values`; column −1 marks padding.
template <class S, class T, class I>
void sweep(Array<const I> rows, Array<const I> ptr, Array<const I> columns, Array<const S> values,
           Array<const S> inverse, Array<const T> b, Array<const T> x, Array<T> y, bool last) {
  ranges(ptr.size - 1, rows.size, [=](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s)
      for (int64_t t = SLICE * s; t < std::min(SLICE * (s + 1), rows.size); ++t) {
        const int64_t i = rows[t];
        T total = b[i];
        for (int64_t at = ptr[s] + t % SLICE; at < ptr[s + 1]; at += SLICE)
          if (columns[at] >= 0) total -= T(values[at]) * x[columns[at]];
        y[i] = last ? T(inverse[t]) * total : total;
      }
  });
}

}  // namespace

#define OFFSETS(f, S, T) INSTANCE(f, S, T, int32_t, int16_t), INSTANCE(f, S, T, int64_t, int16_t), \
    INSTANCE(f, S, T, int32_t, int32_t), INSTANCE(f, S, T, int64_t, int64_t)
#define ALL(f) OFFSETS(f, double, double), OFFSETS(f, float, float), OFFSETS(f, float, double), \
    OFFSETS(f, complex<double>, complex<double>), OFFSETS(f, complex<float>, complex<float>), \
    OFFSETS(f, complex<float>, complex<double>)
#define SWEEP(S, T) INSTANCE(sweep, S, T, int32_t), INSTANCE(sweep, S, T, int64_t)
KERNELS("swell.preconditioners.triangular", INDICES(count), ALL(pack), ALL(solve), ALL(solve_adjoint),
        ALL(solve_halves), ALL(solve_adjoint_halves), SWEEP(double, double), SWEEP(float, float), SWEEP(float, double),
        SWEEP(complex<double>, complex<double>), SWEEP(complex<float>, complex<float>),
        SWEEP(complex<float>, complex<double>))
