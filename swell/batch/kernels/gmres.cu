// Restarted GMRES(m), preconditioned on the right, for a batch: a block solves a system in one launch. batch.cuh has
// its parts. Classical Gram–Schmidt is done twice; a warp computes whole inner products, so a pass has two barriers.
#include "batch.cuh"

constexpr double USELESS = 64;       // times ε: the new part of a column of R that is taken for rounding (gmres.cpp)

// h[i] = (V_i, w) for i <= j, a warp each; then w −= V h, and total[i] += h[i].
template <class T> DEVICE void orthogonalise(const T* V, T* w, acc_t<T>* h, acc_t<T>* total, int j, int n) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  __syncthreads();
  for (int i = warp; i <= j; i += warps) {
    acc_t<T> sum(0);
    for (int k = lane; k < n; k += 32) sum = conj_fused(V[i * n + k], w[k], sum);
    for (int o = 16; o; o >>= 1) sum = sum + shuffle_xor(sum, o);
    if (lane == 0) h[i] = sum, total[i] = total[i] + sum;
  }
  __syncthreads();
  for (int k = threadIdx.x; k < n; k += blockDim.x) {
    T value = w[k];
    for (int i = 0; i <= j; ++i) value = value - T(h[i]) * V[i * n + k];
    w[k] = value;
  }
}

// x = A⁻¹ b for each system; x holds the starting vectors if `guess` is 1. The twin says what the arguments are.
// launch: a block of threads threads for each row of values, shared bytes shared
template <typename T, int HELD>
__global__ void __launch_bounds__(512, 2) gmres(Context* ctx, const int* indptr, const int* indices,
    const unsigned short* ell, const int* diagonal, const int* lower, const int* upper, const int* order,
    const T* values, const T* b, T* x, double* record, int size, int columns, int lanes, int kind, int block, int held,
    int guess, int maxiter, double rtol, double atol, int restart, int threads, int shared, long long lower_size,
    long long upper_size) {
  if (stopped(ctx)) return;
  using A_ = acc_t<T>;
  extern __shared__ __align__(16) unsigned char memory[];
  unsigned char* rest = memory;
  const int nnz = indptr[size], m = restart;
  const long long system = blockIdx.x;
  A_ *H = take<A_>(rest, m * (m + 1)), *h = take<A_>(rest, m + 1), *g = take<A_>(rest, m + 1),
      *sine = take<A_>(rest, m);
  double* cosine = take<double>(rest, 2 * ((m + 1) / 2));
  const System<T> A{indptr, indices, diagonal, ell, values_of<HELD>(values + system * nnz, nnz, rest), size, lanes};
  const Preconditioner<T> M{kind, block, take<T>(rest, stored(kind, size, block, nnz)), lower, upper, order,
      int(lower_size - 1), int(upper_size - 1)};
  T *xs = take<T>(rest, size), *V = take<T>(rest, (long long)(m + 1) * size);
  T *w = take<T>(rest, size), *z = kind == PLAIN ? w : take<T>(rest, size);
  T* r = V;                                                    // the residual is the first basis vector, not yet scaled
  Judge judge{rtol, atol, maxiter};
  int turn = 0;
  const bool factored = prepare(A, M);
  auto cycle = [&](int) -> int {
    if (!factored) return NOT_FACTORED;
    double norm2[1] = {0};
    for (int i = threadIdx.x; i < size; i += blockDim.x) norm2[0] += double(abs2(r[i]));
    over_block<1>(norm2, turn);
    const double beta = sqrt(norm2[0]);
    for (int i = threadIdx.x; i < size; i += blockDim.x) V[i] = V[i] * real_t<T>(1 / beta);        // v₁ = r/‖r‖
    if (threadIdx.x == 0) g[0] = A_(beta);                                     // g = ‖r‖ e₁
    int j = 0, verdict = RUNNING;
    while (j < m && verdict == RUNNING) {
      __shared__ bool useless;
      T *v = V + (long long)j * size, *next = v + size;
      A_* column = H + j * (m + 1);
      apply(A, M, v, z);                                                       // z = M v_j
      for (int i = threadIdx.x; i <= m; i += blockDim.x) column[i] = A_(0);
      __syncthreads();
      each_row<0>(A, kind == PLAIN ? v : z, [&](int i, T sum, double, double) { next[i] = sum; });         // w = A z
      __syncthreads();
      double before[1] = {0}, after[1] = {0};
      for (int i = threadIdx.x; i < size; i += blockDim.x) before[0] += double(abs2(next[i]));
      over_block<1>(before, turn);
      orthogonalise(V, next, h, column, j, size);                              // w = w − V Vᴴ w, twice
      orthogonalise(V, next, h, column, j, size);
      for (int i = threadIdx.x; i < size; i += blockDim.x) after[0] += double(abs2(next[i]));
      over_block<1>(after, turn);
      double length = sqrt(after[0]);
      const bool ended = !(length > epsilon_of(T()) * sqrt(before[0]));        // the space is invariant
      if (ended) length = 0;
      else
        for (int i = threadIdx.x; i < size; i += blockDim.x) next[i] = next[i] * real_t<T>(1 / length);
      if (threadIdx.x == 0) {                                                  // Givens rotations of the new column
        double earlier = 0;
        for (int i = 0; i < j; ++i) {
          const A_ up = column[i], down = column[i + 1];
          column[i] = cosine[i] * up + sine[i] * down;
          column[i + 1] = cosine[i] * down - conj(sine[i]) * up;
          earlier += abs2(column[i]);
        }
        const double d = modulus(column[j]), both = hypot(d, length);
        useless = j > 0 && both <= USELESS * epsilon_of(T()) * sqrt(earlier);
        const A_ phase = d > 0 ? column[j] * (1 / d) : A_(1);
        cosine[j] = both > 0 ? d / both : 0;                                   // a zero column reduces nothing
        sine[j] = both > 0 ? phase * (length / both) : A_(1);
        column[j] = phase * both;
        g[j + 1] = -conj(sine[j]) * g[j];
        g[j] = cosine[j] * g[j];
      }
      __syncthreads();
      if (useless && isfinite(before[0])) {                                    // only rounding is new in this column
        verdict = BREAKDOWN;
        break;
      }
      verdict = judge.after(abs2(g[j + 1]));
      if (!isfinite(before[0])) verdict = NONFINITE;
      ++j;
      if (ended && verdict == RUNNING) verdict = BREAKDOWN;
    }
    if (verdict == NONFINITE) return verdict;
    if (threadIdx.x == 0)
      for (int i = j; i--;) {                                                  // R y = g
        A_ sum = g[i];
        for (int k = i + 1; k < j; ++k) sum = sum - H[k * (m + 1) + i] * h[k];
        const A_ d = H[i * (m + 1) + i];
        h[i] = d == A_(0) ? A_(0) : sum / d;
      }
    __syncthreads();
    for (int k = threadIdx.x; k < size; k += blockDim.x) {
      T sum = T(0);
      for (int i = 0; i < j; ++i) sum = fused(T(h[i]), V[(long long)i * size + k], sum);
      w[k] = sum;                                                              // w = V y
    }
    T* correction = w;
    if (kind != PLAIN) apply(A, M, w, z), correction = z;
    for (int k = threadIdx.x; k < size; k += blockDim.x) xs[k] += correction[k];                   // x = x + M V y
    __syncthreads();
    return verdict;
  };
  for (int c = 0; c < columns; ++c) {
    const long long first = system * size * columns + c;
    solve_column(A, judge, b + first, x + first, columns, xs, r, guess, record, system * columns + c, turn, cycle);
  }
}
