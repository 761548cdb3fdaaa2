// Facts of a matrix in CSR, gathered in one pass on a CPU; formats/slots.py names them. facts.cu is for GPUs.
#include "slots/swell/formats/facts.hpp"

#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"
#include "rows.hpp"
#include "sums.hpp"

namespace {

constexpr int TOTALS = LARGEST, COUNT = REACH + 1;                   // totals first, then extremes

inline double imaginary(double) { return 0; }
inline double imaginary(complex<double> a) { return a.im; }

// The larger number; NaN if either is NaN.
inline double larger(double a, double b) { return a > b || isnan(a) ? a : b; }

// √(re² + im²); by the slower hypot if a square would over- or underflow.
inline double modulus(double re, double im) {
  if (im == 0) return fabs(re);
  const double square = re * re + im * im;
  return 1e-280 < square && square < 1e280 ? sqrt(square) : hypot(re, im);
}

// The facts of some rows. `unmatched`: the entries above the diagonal, less the mirror images found. Its sum over all
// rows is the number of entries above the diagonal without a mirror image.
struct Facts {
  double v[COUNT] = {};
  int64_t unmatched = 0;

  explicit Facts(int = 0) { std::fill(v + TOTALS, v + COUNT, -INFINITY); }
  double& operator[](int fact) { return v[fact]; }
  void most(int fact, double value) { v[fact] = std::max(v[fact], value); }
  Facts& operator+=(const Facts& other) {
    for (int k = 0; k < TOTALS; ++k) v[k] += other.v[k];
    for (int k = TOTALS; k < COUNT; ++k) v[k] = larger(v[k], other.v[k]);
    unmatched += other.unmatched;
    return *this;
  }

  // Compare `value`, an aᵢⱼ, and `other`, its aⱼᵢ. `weight`: how often the pair counts in the Frobenius norms.
  template <class A> void look_at_pair(A value, A other, double weight) {
    const double re = real(value) - real(other), im = imaginary(value) - imaginary(other);
    const double mirrored = imaginary(value) + imaginary(other);
    if (re == 0 && im == 0 && mirrored == 0) return;
    const double plain = modulus(re, im), hermitian = modulus(re, mirrored);
    v[DIFFERENCE] = larger(plain, v[DIFFERENCE]);
    v[HERMITIAN_DIFFERENCE] = larger(hermitian, v[HERMITIAN_DIFFERENCE]);
    v[SKEW2] += weight * plain * plain;
    v[SKEW_HERMITIAN2] += weight * hermitian * hermitian;
  }
};

template <class T, class I> struct Matrix {
  Array<const I> indptr, indices;
  Array<const T> data;
  int64_t columns;

  bool valid(int64_t begin, int64_t end) const { return 0 <= begin && begin <= end && end <= data.size; }

  // The index of the entry at a row and column; −1 if it is not stored.
  int64_t place(int64_t row, int64_t column) const {
    const int64_t first = indptr[row], last = indptr[row + 1];
    if (!valid(first, last)) return -1;
    const int64_t found = place_of(indices, first, last, column);
    return found < last ? found : -1;
  }

  // Update `facts` by a row. `search`: compare aᵢⱼ with aⱼᵢ; only an entry below the diagonal searches for its mirror
  // image.
  void look_at_row(Facts& facts, int64_t row, bool search) const {
    using A = acc_t<T>;
    const int64_t begin = indptr[row], end = indptr[row + 1];
    if (!valid(begin, end)) {
      facts[OUT_OF_RANGE] += 1;
      return;
    }
    A total(0), diagonal(0);
    double size = 0, largest = 0, squares = 0;
    int64_t last = -2, bad = 0, disordered = 0, adjoining = 0, outside = 0;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t column = indices[k];
      const A value(data[k]);
      const double absolute = modulus(real(value), imaginary(value));
      if (!(absolute < INFINITY))                // NaN, Inf, or a complex number whose modulus overflows
        bad += !(isfinite(real(value)) && isfinite(imaginary(value)));
      disordered += column <= last;
      adjoining += column == last + 1;
      last = column;
      total += value, size += absolute;
      largest = std::max(largest, absolute);
      squares += absolute * absolute;
      if (column < 0 || column >= columns) {
        ++outside;
      } else if (column == row) {
        diagonal += value;
        if (search) facts.look_at_pair(value, value, 1);
      } else if (search && column > row) {
        ++facts.unmatched;
      } else if (search) {
        const int64_t mirror = place(column, row);
        facts.unmatched -= mirror >= 0;
        facts[UNMATCHED] += mirror < 0;
        facts.look_at_pair(value, mirror < 0 ? A(0) : A(data[mirror]), 2);
      }
    }
    const double d = ::size(diagonal), length = double(end - begin);
    if (bad || outside || disordered || begin == end) {
      facts[NOT_FINITE] += bad;
      facts[OUT_OF_RANGE] += outside;
      facts[DISORDERED] += disordered;
      facts[EMPTY_ROWS] += begin == end;
    } else {                                     // columns ascend, so the row's ends are farthest from the diagonal
      facts.most(BANDWIDTH, double(std::max(row - int64_t(indices[begin]), last - row)));
    }
    facts[ADJOINING] += adjoining;
    if (d == 0) {
      facts[ZERO_DIAGONAL] += 1;
      facts.most(FIRST_ZERO, -double(row));
    }
    facts[DOMINANT_ROWS] += d >= (size - d) * (1 - 1e-12);
    facts[UNBALANCED_ROWS] += !(::size(total) <= 1e-12 * size);
    facts[LENGTH2] += length * length;
    facts[FROBENIUS2] += squares;
    facts.most(LARGEST, largest);
    facts[NORM_INF] = larger(size, facts[NORM_INF]);
    facts.most(LONGEST_ROW, length);
    facts.most(DIAGONAL_LARGEST, d);
    facts.most(DIAGONAL_LEAST, -d);
    facts.most(DIAGONAL_LOWEST, -real(diagonal));
    facts.most(DIAGONAL_IMAGINARY, fabs(imaginary(diagonal)));
    facts.most(REACH, size - 2 * real(diagonal));
  }

  // Update `facts` by a row's entries above the diagonal without a mirror image.
  void look_above(Facts& facts, int64_t row) const {
    for (int64_t k = indptr[row]; k < indptr[row + 1]; ++k) {
      const int64_t column = indices[k];
      if (row >= column || column >= columns || place(column, row) >= 0) continue;
      facts[UNMATCHED] += 1;
      facts.look_at_pair(acc_t<T>(data[k]), acc_t<T>(0), 2);
    }
  }
};

// out = the facts of a matrix with this number of columns. `search`: compare aᵢⱼ with aⱼᵢ, for a square matrix.
template <class T, class I>
void gather(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<double> out, int64_t columns,
            bool search) {
  const Matrix<T, I> A{indptr, indices, data, columns};
  const int64_t rows = indptr.size - 1;
  auto [facts] = row_sums<Facts>(rows, [=](int64_t row, Facts& facts) { A.look_at_row(facts, row, search); });
  if (facts.unmatched && !facts[OUT_OF_RANGE])
    facts += std::get<0>(row_sums<Facts>(rows, [=](int64_t row, Facts& facts) { A.look_above(facts, row); }));
  std::copy(facts.v, facts.v + COUNT, out.data);
}

}  // namespace

KERNELS("swell.formats.facts", VALUES_INDICES(gather))
