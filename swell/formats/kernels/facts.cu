// Facts of a matrix in CSR, gathered in one pass on a GPU; formats/slots.py names them, formats/facts.py reads them.
//
// A warp has 32 rows. The mean row length decides how many lanes share a row; the whole warp takes a much longer row. A
// thread keeps its sums and maxima in registers. The results of blocks are merged in a fixed order. A CPU compares each
// pair once, from below the diagonal: so the two devices have a text each.
#include "context.cuh"

constexpr int TOTALS = LARGEST, COUNT = REACH + 1;                   // totals first, then extremes
constexpr int LONG = 64;                                            // a row with more than LONG entries a lane is long

DEVICE bool finite(float a) { return isfinite(a); }
DEVICE bool finite(double a) { return isfinite(a); }
template <class R> DEVICE bool finite(complex<R> a) { return isfinite(a.re) && isfinite(a.im); }
DEVICE double imaginary(double) { return 0; }
DEVICE double imaginary(complex<double> a) { return a.im; }
DEVICE double size_of(double a) { return fabs(a); }
DEVICE double size_of(complex<double> a) { return hypot(a.re, a.im); }
DEVICE double larger(double a, double b) { return a > b || isnan(a) ? a : b; }
DEVICE double merged(int fact, double a, double b) { return fact < TOTALS ? a + b : larger(a, b); }

// Sums over a row, which its lanes combine.
template <class A> struct Row {
  A sum, diagonal;
  double size;
};

// The index of a column in indices[from] to indices[to - 1], which ascend, by bisection; `to` if it is missing.
template <class I> DEVICE I place_of(const I* indices, I from, I to, long long column) {
  const I end = to;
  while (from < to) {
    const I middle = from + (to - from) / 2;
    if (indices[middle] < column) from = middle + 1; else to = middle;
  }
  return from < end && indices[from] == column ? from : end;
}

template <class I> DEVICE bool sound(I begin, I end, long long nnz) { return begin >= 0 && begin <= end && end <= nnz; }

// Add entry k of `row` to the facts v and to the row's sums. The row ends before `end`.
template <class T, class I>
DEVICE void look_at(double (&v)[COUNT], Row<acc_t<T>>& here, const I* indptr, const I* indices, const T* data,
    long long k, long long end, long long row, long long rows, long long columns, long long nnz, bool search) {
  using A = acc_t<T>;
  const long long j = indices[k];
  const A a(data[k]);
  const double size = size_of(a);
  if (!finite(data[k])) v[NOT_FINITE] += 1;
  if (k + 1 < end) {
    const long long next = indices[k + 1];
    if (next <= j) v[DISORDERED] += 1;
    if (next == j + 1) v[ADJOINING] += 1;
  }
  here.sum = here.sum + a;
  here.size += size;
  v[LARGEST] = larger(size, v[LARGEST]);
  v[FROBENIUS2] += size * size;
  if (j < 0 || j >= columns) {
    v[OUT_OF_RANGE] += 1;
    return;
  }
  v[BANDWIDTH] = larger(fabs(double(row - j)), v[BANDWIDTH]);
  A other = a;
  double weight = 1;
  if (j == row) {
    here.diagonal = here.diagonal + a;
  } else if (search) {
    const I first = indptr[j], last = indptr[j + 1];
    const I place = sound(first, last, nnz) ? place_of(indices, first, last, row) : last;
    if (place == last) {                        // a_ji is not stored, so only a_ij visits this pair
      v[UNMATCHED] += 1;
      weight = 2;
    }
    other = place == last ? A(0) : A(data[place]);
  }
  if (!search) return;
  const double plain = size_of(a - other), hermitian = size_of(a - conj(other));
  v[DIFFERENCE] = larger(plain, v[DIFFERENCE]);
  v[HERMITIAN_DIFFERENCE] = larger(hermitian, v[HERMITIAN_DIFFERENCE]);
  v[SKEW2] += weight * plain * plain;
  v[SKEW_HERMITIAN2] += weight * hermitian * hermitian;
}

DEVICE void add_lanes(double& a, int o) { a += __shfl_xor_sync(~0u, a, o); }
DEVICE void add_lanes(complex<double>& a, int o) { add_lanes(a.re, o), add_lanes(a.im, o); }

// Add a row to the facts v, by `width` neighbouring lanes; this lane has number `part`. All lanes of the warp call
// this.
template <class T, class I>
DEVICE void look_at_row(double (&v)[COUNT], const I* indptr, const I* indices, const T* data, long long row, int part,
    int width, long long rows, long long columns, long long nnz, bool search) {
  Row<acc_t<T>> here{acc_t<T>(0), acc_t<T>(0), 0};
  const bool there = row < rows;
  const I begin = there ? indptr[row] : I(0), end = there ? indptr[row + 1] : I(0);
  const bool good = sound(begin, end, nnz);
  if (good)
    for (long long k = (long long)begin + part; k < end; k += width)
      look_at<T, I>(v, here, indptr, indices, data, k, end, row, rows, columns, nnz, search);
  for (int o = width / 2; o; o >>= 1) add_lanes(here.sum, o), add_lanes(here.diagonal, o), add_lanes(here.size, o);
  if (!there || part) return;
  if (!good) {
    v[OUT_OF_RANGE] += 1;
    return;
  }
  const double length = double(end - begin), d = size_of(here.diagonal), re = real(here.diagonal);
  if (begin == end) v[EMPTY_ROWS] += 1;
  if (d == 0) {
    v[ZERO_DIAGONAL] += 1;
    v[FIRST_ZERO] = larger(-double(row), v[FIRST_ZERO]);
  }
  if (d >= (here.size - d) * (1 - 1e-12)) v[DOMINANT_ROWS] += 1;
  if (!(size_of(here.sum) <= 1e-12 * here.size)) v[UNBALANCED_ROWS] += 1;
  v[LENGTH2] += length * length;
  v[NORM_INF] = larger(here.size, v[NORM_INF]);
  v[LONGEST_ROW] = larger(length, v[LONGEST_ROW]);
  v[DIAGONAL_LARGEST] = larger(d, v[DIAGONAL_LARGEST]);
  v[DIAGONAL_LEAST] = larger(-d, v[DIAGONAL_LEAST]);
  v[DIAGONAL_LOWEST] = larger(-re, v[DIAGONAL_LOWEST]);
  v[DIAGONAL_IMAGINARY] = larger(fabs(imaginary(here.diagonal)), v[DIAGONAL_IMAGINARY]);
  v[REACH] = larger(here.size - 2 * re, v[REACH]);
}

// out = the facts. Only `search`, which needs a square matrix, compares a_ij with a_ji.
// launch: elements of indptr, 256 threads, at most 4 blocks per multiprocessor
template <typename T, typename I>
__global__ void __launch_bounds__(256) gather(Context* ctx, const I* indptr, const I* indices, const T* data,
    double* out, long long columns, bool search, long long n, long long data_size) {
  if (stopped(ctx)) return;
  const long long rows = n - 1, nnz = data_size;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int lanes = 1;
  while (lanes < 32 && 2 * lanes * rows <= nnz) lanes *= 2;
  double v[COUNT];
#pragma unroll
  for (int f = 0; f < COUNT; ++f) v[f] = f < TOTALS ? 0.0 : __longlong_as_double(0xFFF0000000000000ll);     // 0, −∞
  for (long long first = thread_id() - lane; first < rows; first += threads())
    for (int pass = 0; pass < lanes; ++pass) {
      const long long row = first + pass * (32 / lanes) + lane / lanes;
      const bool is_long = lanes < 32 && row < rows && (long long)indptr[row + 1] - indptr[row] > LONG * lanes;
      look_at_row<T, I>(v, indptr, indices, data, is_long ? rows : row, lane % lanes, lanes, rows, columns, nnz,
          search);
      for (unsigned left = __ballot_sync(~0u, is_long && lane % lanes == 0); left; left &= left - 1) {
        const long long one = __shfl_sync(~0u, row, __ffs(left) - 1);
        look_at_row<T, I>(v, indptr, indices, data, one, lane, 32, rows, columns, nnz, search);
      }
    }
  __shared__ double of_warp[8][COUNT];
#pragma unroll
  for (int f = 0; f < COUNT; ++f) {
    for (int o = 16; o; o >>= 1) v[f] = merged(f, v[f], __shfl_xor_sync(~0u, v[f], o));
    if (lane == 0) of_warp[warp][f] = v[f];
  }
  __syncthreads();
  const int fact = threadIdx.x;
  if (fact < COUNT) {
    double all = of_warp[0][fact];
    for (int w = 1; w < 8; ++w) all = merged(fact, all, of_warp[w][fact]);
    ctx->partials[blockIdx.x * (long long)COUNT + fact] = all;
  }
  __syncthreads();                              // all threads have written before one signals it
  if (!last_block(ctx) || fact >= COUNT) return;
  double all = __ldcg(ctx->partials + fact);
#pragma unroll 8
  for (int b = 1; b < gridDim.x; ++b) all = merged(fact, all, __ldcg(ctx->partials + b * (long long)COUNT + fact));
  out[fact] = all;
}
