// Preconditioned conjugate gradients for a batch: a block solves a system in one launch. batch.cuh has its parts.
#include "batch.cuh"

// x = A⁻¹ b for each system; x holds the starting vectors if `guess` is 1. The twin says what the arguments are.
// launch: a block of threads threads for each row of values, shared bytes shared
template <typename T, int HELD>
__global__ void __launch_bounds__(512, 2) cg(Context* ctx, const int* indptr, const int* indices,
    const unsigned short* ell, const int* diagonal,
    const int* lower, const int* upper, const int* order, const T* values, const T* b, T* x, double* record, int size,
    int columns, int lanes, int kind, int block, int held, int guess, int maxiter, double rtol, double atol,
    int threads, int shared, long long lower_size, long long upper_size) {
  if (stopped(ctx)) return;
  extern __shared__ __align__(16) unsigned char memory[];
  unsigned char* rest = memory;
  const int nnz = indptr[size];
  const long long system = blockIdx.x;
  const System<T> A{indptr, indices, diagonal, ell, values_of<HELD>(values + system * nnz, nnz, rest), size, lanes};
  const Preconditioner<T> M{kind, block, take<T>(rest, stored(kind, size, block, nnz)), lower, upper, order,
      int(lower_size - 1), int(upper_size - 1)};
  T *xs = take<T>(rest, size), *r = take<T>(rest, size), *p = take<T>(rest, size), *q = take<T>(rest, size);
  const bool pointwise = kind == PLAIN || kind == JACOBI;        // z = M r is then formed where it is needed
  T* z = pointwise ? nullptr : take<T>(rest, size);
  auto preconditioned = [&](int i) { return kind == PLAIN ? r[i] : kind == JACOBI ? M.numbers[i] * r[i] : z[i]; };
  Judge judge{rtol, atol, maxiter};
  int turn = 0;
  const bool factored = prepare(A, M);
  auto cycle = [&](int) -> int {
    if (!factored) return NOT_FACTORED;
    if (!pointwise) apply(A, M, r, z);                                         // z = M r
    double rho[1] = {0};
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
      p[i] = preconditioned(i);                                                // p = z
      rho[0] += double(real(conj_mul(r[i], p[i])));
    }
    over_block<1>(rho, turn);                                                  // ρ = (r, z)
    for (;;) {
      double sigma[1] = {0};
      each_row<0>(A, p, [&](int i, T sum, double, double) {
        q[i] = sum, sigma[0] += double(real(conj_mul(p[i], sum)));
      });
      over_block<1>(sigma, turn);                                              // q = A p;  σ = (p, q)
      if (!(sigma[0] > 0) || !(rho[0] > 0)) return isfinite(sigma[0]) && isfinite(rho[0]) ? INDEFINITE : NONFINITE;
      const real_t<T> alpha = real_t<T>(rho[0] / sigma[0]);
      double sums[2] = {0, 0};
      for (int i = threadIdx.x; i < size; i += blockDim.x) {
        xs[i] += alpha * p[i];                                                 // x = x + α p
        r[i] -= alpha * q[i];                                                  // r = r − α q
        sums[0] += double(abs2(r[i]));
        if (pointwise) sums[1] += double(real(conj_mul(r[i], preconditioned(i))));
      }
      if (!pointwise) {
        apply(A, M, r, z);                                                     // z = M r
        for (int i = threadIdx.x; i < size; i += blockDim.x) sums[1] += double(real(conj_mul(r[i], z[i])));
      }
      over_block<2>(sums, turn);                                               // ‖r‖²;  ρ' = (r, z)
      if (const int verdict = judge.after(sums[0]); verdict != RUNNING) return verdict;
      const real_t<T> beta = real_t<T>(sums[1] / rho[0]);
      rho[0] = sums[1];
      for (int i = threadIdx.x; i < size; i += blockDim.x) p[i] = preconditioned(i) + beta * p[i]; // p = z + (ρ'/ρ) p
      __syncthreads();
    }
  };
  for (int c = 0; c < columns; ++c) {
    const long long first = system * size * columns + c;
    solve_column(A, judge, b + first, x + first, columns, xs, r, guess, record, system * columns + c, turn, cycle);
  }
}
