// BiCGSTAB, preconditioned on the right, for a batch: a block solves a system in one launch. batch.cuh has its parts.
#include "batch.cuh"
#include "breakdown.cuh"

// Two inner products of a system: (u, v), and a squared norm.
template <class T> struct Inner {
  static constexpr int count = scalar<T>::parts + 1;
  double v[count] = {};
  DEVICE void add(T left, T right, T squared) {
    acc_t<T> product;
    join(product, v);
    split(v, conj_fused(left, right, product));
    v[count - 1] += double(abs2(squared));
  }
  DEVICE void complete(int& turn) { over_block<count>(v, turn); }
  DEVICE acc_t<T> product() const {
    acc_t<T> value;
    join(value, v);
    return value;
  }
  DEVICE double square() const { return v[count - 1]; }
};

// x = A⁻¹ b for each system; x holds the starting vectors if `guess` is 1. The twin says what the arguments are.
// launch: a block of threads threads for each row of values, shared bytes shared
template <typename T, int HELD>
__global__ void __launch_bounds__(512, 2) bicgstab(Context* ctx, const int* indptr, const int* indices,
    const unsigned short* ell, const int* diagonal, const int* lower, const int* upper, const int* order,
    const T* values, const T* b, T* x, double* record, const T* shadow, int size, int columns, int lanes, int kind,
    int block, int held, int guess, int maxiter, double rtol, double atol, int threads, int shared,
    long long lower_size, long long upper_size, long long shadow_size) {
  if (stopped(ctx)) return;
  extern __shared__ __align__(16) unsigned char memory[];
  unsigned char* rest = memory;
  const int nnz = indptr[size];
  const long long system = blockIdx.x;
  const System<T> A{indptr, indices, diagonal, ell, values_of<HELD>(values + system * nnz, nnz, rest), size, lanes};
  const Preconditioner<T> M{kind, block, take<T>(rest, stored(kind, size, block, nnz)), lower, upper, order,
      int(lower_size - 1), int(upper_size - 1)};
  T *xs = take<T>(rest, size), *r = take<T>(rest, size), *p = take<T>(rest, size);
  T *v = take<T>(rest, size), *t = take<T>(rest, size);
  T *ph = kind == PLAIN ? p : take<T>(rest, size), *sh = kind == PLAIN ? r : take<T>(rest, size);
  Judge judge{rtol, atol, maxiter};
  int turn = 0;
  const bool factored = prepare(A, M);
  auto cycle = [&](int attempt) -> int {
    if (!factored) return NOT_FACTORED;
    const T* rh = shadow + attempt % int(shadow_size / size) * size;           // another r̂ for each attempt
    Inner<T> start;
    double shadow2[1] = {0};
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
      p[i] = r[i];                                                             // p = r
      start.add(rh[i], r[i], r[i]);
      shadow2[0] += double(abs2(rh[i]));
    }
    start.complete(turn);                                                      // ρ = (r̂, r)
    over_block<1>(shadow2, turn);
    acc_t<T> rho = start.product();
    if (vanishes(rho, shadow2[0], start.square())) return BREAKDOWN;
    for (;;) {
      apply(A, M, p, ph);                                                      // p̂ = M p
      __syncthreads();
      Inner<T> gamma;
      each_row<0>(A, ph, [&](int i, T sum, double, double) { v[i] = sum, gamma.add(rh[i], sum, sum); });
      gamma.complete(turn);                                                    // v = A p̂;  γ = (r̂, v)
      if (!isfinite(gamma.square())) return NONFINITE;
      if (vanishes(gamma.product(), shadow2[0], gamma.square())) return BREAKDOWN;
      const acc_t<T> alpha = quotient(rho, gamma.product());
      for (int i = threadIdx.x; i < size; i += blockDim.x) r[i] = r[i] - T(alpha) * v[i];          // s = r − α v
      apply(A, M, r, sh);                                                      // ŝ = M s
      __syncthreads();
      Inner<T> omegas;
      each_row<0>(A, sh, [&](int i, T sum, double, double) { t[i] = sum, omegas.add(sum, r[i], sum); });
      omegas.complete(turn);                                                   // t = A ŝ;  ω = (t, s)/(t, t)
      const acc_t<T> omega = quotient(omegas.product(), acc_t<T>(omegas.square()));
      Inner<T> next;
      for (int i = threadIdx.x; i < size; i += blockDim.x) {
        xs[i] = xs[i] + T(alpha) * ph[i] + T(omega) * sh[i];                   // x = x + α p̂ + ω ŝ
        r[i] = r[i] - T(omega) * t[i];                                         // r = s − ω t
        next.add(rh[i], r[i], r[i]);
      }
      next.complete(turn);                                                     // ρ' = (r̂, r);  ‖r‖²
      if (const int verdict = judge.after(next.square()); verdict != RUNNING) return verdict;
      if (omega == acc_t<T>(0) || vanishes(next.product(), shadow2[0], next.square())) return BREAKDOWN;
      const acc_t<T> beta = quotient(next.product(), rho) * quotient(alpha, omega);                // β = (ρ'/ρ)(α/ω)
      rho = next.product();
      for (int i = threadIdx.x; i < size; i += blockDim.x)
        p[i] = r[i] + T(beta) * (p[i] - T(omega) * v[i]);                      // p = r + β (p − ω v)
    }
  };
  for (int c = 0; c < columns; ++c) {
    const long long first = system * size * columns + c;
    solve_column(A, judge, b + first, x + first, columns, xs, r, guess, record, system * columns + c, turn, cycle);
  }
}
