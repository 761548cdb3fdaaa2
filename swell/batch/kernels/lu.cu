// Dense LU with partial pivoting for a batch: a block factors, solves and checks a system in one launch.
//
// A pivot is the largest of its column to 12 bits: one integer holds the leading bits of a modulus and the row, so one
// warp instruction finds both. Both kernels refine a solution once if its residual misses the tolerance.
#include "batch.hpp"

constexpr unsigned ROW = 255;                                    // the bits of a key that hold the row
DEVICE unsigned key_of(float size, int row) { return (__float_as_uint(size) & ~ROW) | (ROW - row); }
DEVICE unsigned key_of(double size, int row) {
  return (unsigned(__double_as_longlong(size) >> 32) & ~ROW) | (ROW - row);
}
DEVICE unsigned key(float a, int row) { return key_of(fabs(a), row); }
DEVICE unsigned key(double a, int row) { return key_of(fabs(a), row); }
template <class R> DEVICE unsigned key(complex<R> a, int row) { return key_of(fabs(a.re) + fabs(a.im), row); }
// True for zero and for subnormal numbers, whose inverses overflow.
template <class T> DEVICE bool vanishes(unsigned key) { return key < (sizeof(real_t<T>) == 8 ? 1u << 20 : 1u << 23); }
DEVICE int row_of(unsigned key) { return ROW - (key & ROW); }
DEVICE unsigned largest_of_warp(unsigned key) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  for (int o = 16; o; o >>= 1) key = max(key, __shfl_xor_sync(~0u, key, o));
  return key;
#else
  return __reduce_max_sync(~0u, key);
#endif
}

// D = A, dense, rows `width` elements apart, in shared memory. Many loads are on their way at once.
template <class T> DEVICE void spread(const System<T>& A, const unsigned* places, T* D, int width) {
  const int nnz = A.indptr[A.n];
  for (int k = threadIdx.x; k < A.n * width; k += blockDim.x) D[k] = T(0);
  __syncthreads();
#pragma unroll 8
  for (int k = threadIdx.x; k < nnz; k += blockDim.x) D[(places[k] >> 16) * width + (places[k] & 0xFFFF)] = A.a[k];
  __syncthreads();
}

// ---- a row in the registers of each thread --------------------------------------------------------------------------

// Elimination while the rows that are left have W − 7 to W columns, then in narrower steps. Thread t has row t: a[0] is
// its entry in column j, and each step shifts the row by one register, so that every index is a constant. y: right-hand
// sides. The pivot row of step j goes to U + j width, with the inverse of the pivot, and its sides behind `N` entries.
// False if a pivot vanishes.
template <int W, class T, int N, int SIDES>
DEVICE bool eliminate(T (&a)[N], T (&y)[SIDES], T* U, int width, unsigned* keys, int& j, int n, bool& open) {
  constexpr int S = Pack<T>::size;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (; j < n && n - j > W - 8; ++j) {
    __syncthreads();                                             // keys
    unsigned best = keys[0];
    for (int w = 1; w < warps; ++w) best = max(best, keys[w]);
    if (vanishes<T>(best)) return false;
    T* row = U + (long long)j * width;
    const bool pivot = threadIdx.x == row_of(best);
    if (pivot) {
      open = false;
      a[0] = T(1) / a[0];
#pragma unroll
      for (int k = W - S; k >= 0; k -= S) {                      // the inverse last: it is not ready yet
        Pack<T> pack;
#pragma unroll
        for (int e = 0; e < S; ++e) pack.at[e] = a[k + e];
        reinterpret_cast<Pack<T>*>(row)[k / S] = pack;
        if (k == W - S)
#pragma unroll
          for (int c = 0; c < SIDES; ++c) row[N + c] = y[c];
      }
    }
    __syncthreads();                                             // the pivot row
    unsigned mine = 0;
    T l = T(0);
    if (open) {
      l = -(a[0] * row[0]);                                      // −l_ij
      a[0] = fused(l, row[1], a[1]);                  // the next column first: its pivot is searched meanwhile
      mine = key(a[0], threadIdx.x);
    }
    mine = largest_of_warp(mine);
    if (lane == 0) keys[warp] = mine;
    if (open) {
#pragma unroll
      for (int k = 0; k < W; k += S) {
        const Pack<T> pack = reinterpret_cast<const Pack<T>*>(row)[k / S];
#pragma unroll
        for (int e = 0; e < S; ++e)
          if (k + e > 1) a[k + e - 1] = fused(l, pack.at[e], a[k + e]);        // a_i: −= l_ij u_j:
      }
#pragma unroll
      for (int c = 0; c < SIDES; ++c) y[c] = fused(l, row[N + c], y[c]);
    }
  }
  if constexpr (W > 8) return eliminate<W - 8>(a, y, U, width, keys, j, n, open);
  else return true;
}

// U x = y for side c, by one warp: a lane has the rows lane, lane + 32, …. Writes x.
template <int Q, int N, class T> DEVICE void back_substitute(const T* U, int width, int n, int c, T* x) {
  const int lane = threadIdx.x % 32;
  T y[Q], inverse[Q];
#pragma unroll
  for (int q = 0; q < Q; ++q) {
    const int i = lane + 32 * q;
    y[q] = i < n ? U[(long long)i * width + N + c] : T(0);
    inverse[q] = i < n ? U[(long long)i * width] : T(0);
  }
  for (int j = n; j--;) {
    T own = T(0);
#pragma unroll
    for (int q = 0; q < Q; ++q) if (q == j / 32) own = y[q] * inverse[q];
    own = shuffle(own, j % 32);                                  // x_j = y_j / u_jj
    if (lane == 0) x[j] = own;
#pragma unroll
    for (int q = 0; q < Q; ++q)
      if (lane + 32 * q < j) y[q] = fused(-own, U[(long long)(lane + 32 * q) * (width - 1) + j], y[q]);
  }
}

// Threads of a block, and blocks that shall fit on a multiprocessor: a thread has 65 536 / (threads · blocks)
// registers, its row takes at most 128, and the rest SPARE. Without that bound the compiler loads whole pivot rows
// ahead, and halves the number of blocks.
constexpr int SPARE = 40;
template <int UNKNOWNS> constexpr int threads_for = (UNKNOWNS + 31) / 32 * 32;
template <class T, int UNKNOWNS>
constexpr int blocks_for = 65536 / (threads_for<UNKNOWNS> * (UNKNOWNS * int(sizeof(T)) / 4 + SPARE));

// x = A⁻¹ b for at most UNKNOWNS unknowns, `sides` columns at a time; nothing is stored, and a refinement eliminates
// again. `unknowns` is a multiple of 8. Shared memory: the matrix, then U; the solutions and residuals of SIDES
// columns.
// launch: a block of threads threads for each row of values, shared bytes shared
template <typename T, int UNKNOWNS, int SIDES>
__global__ void __launch_bounds__(threads_for<UNKNOWNS>, blocks_for<T, UNKNOWNS>) lu_rows(Context* ctx,
    const int* indptr, const int* indices, const unsigned short* ell, const int* diagonal, const unsigned* places,
    const T* values, const T* b, T* x, double* record, int size, int columns, int lanes, int unknowns, int sides,
    double rtol, double atol, int threads, int shared) {
  if (stopped(ctx)) return;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ unsigned keys[4];
  Team team{memory, 0};
  const long long system = blockIdx.x, nnz = indptr[size];
  const System<T> A{indptr, indices, diagonal, ell, values + system * nnz, size, lanes};
  const int n = size, t = threadIdx.x, warp = t / 32, warps = blockDim.x / 32;
  constexpr int S = Pack<T>::size, LENGTH = (UNKNOWNS + SIDES + S - 1) / S * S, Q = (UNKNOWNS + 31) / 32;
  constexpr int WIDTH = (LENGTH + 1) / 2 * 2;                // even: substitution reads U with the odd stride WIDTH − 1
  T* D = team.take<T>((long long)n * (UNKNOWNS + 1 > WIDTH ? UNKNOWNS + 1 : WIDTH));
  T *xs = team.take<T>(SIDES * n), *better = team.take<T>(SIDES * n), *rs = team.take<T>(SIDES * n);
  for (int first = 0; first < columns; first += SIDES) {
    const int count = columns - first < SIDES ? columns - first : SIDES;
    const T* of_b = b + system * n * columns + first;
    T* out = x + system * n * columns + first;
    for (int k = t; k < SIDES * n; k += blockDim.x) {
      xs[k] = T(0);
      rs[k] = k / n < count ? of_b[(long long)(k % n) * columns + k / n] : T(0);
    }
    Norms now[SIDES];
    int steps[SIDES];
    bool found = true;
    for (int attempt = 0; attempt < 2; ++attempt) {              // the second one refines
      spread(A, places, D, UNKNOWNS + 1);
      T a[UNKNOWNS], y[SIDES];
      bool open = t < n;
#pragma unroll
      for (int k = 0; k < UNKNOWNS; ++k) a[k] = open && k < n ? D[t * (UNKNOWNS + 1) + k] : T(0);
#pragma unroll
      for (int c = 0; c < SIDES; ++c) y[c] = open ? rs[c * n + t] : T(0);
      const unsigned mine = largest_of_warp(open ? key(a[0], t) : 0u);
      if (t % 32 == 0) keys[warp] = mine;
      __syncthreads();                                           // D is free for U
      int j = 0;
      found = eliminate<UNKNOWNS>(a, y, D, WIDTH, keys, j, n, open);
      __syncthreads();
      if (found)
        for (int c = warp; c < count; c += warps) back_substitute<Q, UNKNOWNS>(D, WIDTH, n, c, better + c * n);
      __syncthreads();
      if (found)
        for (int k = t; k < count * n; k += blockDim.x) better[k] = xs[k] + better[k];
      else
        for (int k = t; k < count * n; k += blockDim.x) better[k] = xs[k];
      bool missed = false;
      for (int c = 0; c < count; ++c) {
        const Column<const T> of_c{of_b + c, columns};
        const Norms plain = true_residual(team, A, of_c, better + c * n, rs + c * n, false);
        const Norms then = confirmed(team, A, of_c, better + c * n, rs + c * n, plain, fmax(rtol * plain.rhs, atol));
        if (attempt == 0 || then.norm < now[c].norm) {
          now[c] = then, steps[c] = attempt + 1;
          for (int k = t; k < n; k += blockDim.x) xs[c * n + k] = better[c * n + k];
        }
        if (isfinite(then.norm) && then.norm > fmax(rtol * then.rhs, atol)) missed = true;
      }
      if (!missed || !found) break;
      __syncthreads();
    }
    for (int c = 0; c < count; ++c) {
      for (int k = t; k < n; k += blockDim.x) out[(long long)k * columns + c] = xs[c * n + k];
      leave(team, record + (system * columns + first + c) * PLACES, now[c], steps[c],
            judged(found ? int(CONVERGED) : int(SINGULAR), now[c], fmax(rtol * now[c].rhs, atol), epsilon_of(T())));
    }
    __syncthreads();
  }
}

// ---- the matrix in shared memory ------------------------------------------------------------------------------------

// y = U⁻¹ L⁻¹ y by the first warp; the rows of D are `width` elements apart, its diagonal holds inverses.
template <class T> DEVICE void substitute(const T* D, int width, int n, T* y) {
  __syncthreads();
  if (threadIdx.x < 32) {
    for (int j = 0; j < n; ++j) {                                // L z = y
      const T own = y[j];
      for (int i = j + 1 + threadIdx.x; i < n; i += 32) y[i] = fused(-D[i * width + j], own, y[i]);
      __syncwarp();
    }
    for (int j = n; j--;) {                                      // U x = z
      const T own = y[j] * D[j * width + j];
      __syncwarp();
      for (int i = threadIdx.x; i < j; i += 32) y[i] = fused(-D[i * width + j], own, y[i]);
      if (threadIdx.x == 0) y[j] = own;
      __syncwarp();
    }
  }
  __syncthreads();
}

// x = A⁻¹ b with the factors in shared memory, for systems that do not fit into registers.
// launch: a block of threads threads for each row of values, shared bytes shared
template <typename T>
__global__ void __launch_bounds__(256) lu(Context* ctx, const int* indptr, const int* indices,
    const unsigned short* ell, const int* diagonal, const unsigned* places, const T* values, const T* b, T* x,
    double* record, int size, int columns, int lanes, double rtol, double atol, int threads, int shared) {
  if (stopped(ctx)) return;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ unsigned best;
  Team team{memory, 0};
  const long long system = blockIdx.x, nnz = indptr[size];
  const System<T> A{indptr, indices, diagonal, ell, values + system * nnz, size, lanes};
  const int n = size, width = n | 1, t = threadIdx.x, lane = t % 32, warp = t / 32, warps = blockDim.x / 32;
  T *D = team.take<T>((long long)n * width), *xs = team.take<T>(n), *better = team.take<T>(n), *r = team.take<T>(n);
  int* from = team.take<int>(n);
  bool found = true;
  spread(A, places, D, width);
  for (int j = 0; j < n; ++j) {                                  // P A = L U
    if (warp == 0) {
      unsigned mine = 0;
      for (int i = j + lane; i < n; i += 32) mine = max(mine, key(D[i * width + j], i));
      mine = largest_of_warp(mine);
      if (lane == 0) best = mine;
    }
    __syncthreads();
    const int p = row_of(best);
    if (vanishes<T>(best)) found = false;
    if (!found) break;
    if (t == 0) from[j] = p;
    for (int k = t; p != j && k < n; k += blockDim.x) {
      const T held = D[j * width + k];
      D[j * width + k] = D[p * width + k], D[p * width + k] = held;
    }
    __syncthreads();
    const T inverse = T(1) / D[j * width + j];
    __syncthreads();
    for (int i = j + 1 + t; i < n; i += blockDim.x) D[i * width + j] = D[i * width + j] * inverse;
    if (t == 0) D[j * width + j] = inverse;
    __syncthreads();
    for (int i = j + 1 + warp; i < n; i += warps) {
      const T l = D[i * width + j];
      for (int k = j + 1 + lane; k < n; k += 32) D[i * width + k] = fused(-l, D[j * width + k], D[i * width + k]);
    }
    __syncthreads();
  }
  for (int c = 0; c < columns; ++c) {
    const Column<const T> of_b{b + system * n * columns + c, columns};
    for (int k = t; k < n; k += blockDim.x) xs[k] = T(0), r[k] = of_b[k];
    Norms now;
    int steps = 0;
    for (int attempt = 0; attempt < 2; ++attempt) {
      for (int k = t; k < n; k += blockDim.x) better[k] = found ? r[k] : T(0);
      __syncthreads();
      if (found && t == 0)
        for (int j = 0; j < n; ++j) {
          const T held = better[j];
          better[j] = better[from[j]], better[from[j]] = held;
        }
      if (found) substitute(D, width, n, better);
      for (int k = t; k < n; k += blockDim.x) better[k] = xs[k] + better[k];
      const Norms plain = true_residual(team, A, of_b, better, r, false);
      const Norms then = confirmed(team, A, of_b, better, r, plain, fmax(rtol * plain.rhs, atol));
      if (attempt == 0 || then.norm < now.norm) {
        now = then, steps = attempt + 1;
        for (int k = t; k < n; k += blockDim.x) xs[k] = better[k];
      }
      if (!found || !(isfinite(then.norm) && then.norm > fmax(rtol * then.rhs, atol))) break;
      __syncthreads();
    }
    for (int k = t; k < n; k += blockDim.x) x[system * n * columns + (long long)k * columns + c] = xs[k];
    leave(team, record + (system * columns + c) * PLACES, now, steps,
          judged(found ? int(CONVERGED) : int(SINGULAR), now, fmax(rtol * now.rhs, atol), epsilon_of(T())));
    __syncthreads();
  }
}
