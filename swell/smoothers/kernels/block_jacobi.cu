// Block smoothers on a GPU; block_jacobi.cpp has the same kernels for a CPU. A thread block has a slice of modified
// SELL, and each thread has a row.
//
// The local system A_ll y = (b - A x)_l stays in shared memory: two vectors, then the values of the block's
// off-diagonals, position by position, then their columns in 16 bits. Each thread keeps its diagonal, right-hand side
// and y in registers. It also keeps its row of the block there if the row has up to HELD entries (HELD = 0: the row
// stays in shared memory), since the bandwidth of shared memory limits the sweeps. In an asynchronous sweep x and out
// are one vector: threads then read x from L2, where the writes of other blocks arrive.
#include "context.cuh"

extern __shared__ double4 shared_memory[];

template <class T> DEVICE T fresh(const T* p) {
  auto word = __ldcg(reinterpret_cast<const typename Word<sizeof(T)>::type*>(p));
  return reinterpret_cast<T&>(word);
}

// A thread's row of the local system.
template <class T> struct Local {
  T *first, *second;           // two vectors of the block
  T* values;                   // this row's entry k: values[k * blockDim.x], its column: columns[k * blockDim.x]
  unsigned short* columns;
  int count;                   // entries of this row
  T d, r, x;                   // diagonal, right-hand side, and x before the sweep
  long long row;
  bool real;                   // the last slice may have fewer rows than threads
  DEVICE T off_diagonal(const T* y, int from, int to) const {
    T sum(0);
#pragma unroll 4
    for (int k = from; k < to; ++k) sum = fused(values[k * blockDim.x], y[columns[k * blockDim.x]], sum);
    return sum;
  }
  DEVICE void scale() {
    const T inverse = T(1) / d;
    r = r * inverse;
    for (int k = 0; k < count; ++k) values[k * blockDim.x] = values[k * blockDim.x] * inverse;
  }
};

// Equation (4.8), the right-hand side, in one pass over the slice. KEEP: store the block's off-diagonals. Afterwards
// second is free; first is free after the next barrier.
template <bool KEEP, class T, class I>
DEVICE Local<T> assemble(const I* slice_ptr, const T* diag, const T* entries, const I* col_idx, const T* b, const T* x,
                         bool in_place, int zero, int width, long long n) {
  Local<T> local;
  const int t = threadIdx.x, height = blockDim.x;
  const long long begin = blockIdx.x * (long long)height;
  local.first = reinterpret_cast<T*>(shared_memory);
  local.second = local.first + height;
  local.values = local.second + height + t;
  local.columns = reinterpret_cast<unsigned short*>(local.second + height + width * height) + t;
  local.count = 0;
  local.row = begin + t;
  local.real = local.row < n;
  local.d = local.real ? diag[local.row] : T(1);
  local.r = local.real ? b[local.row] : T(0);
  local.x = local.real && !zero ? x[local.row] : T(0);
  if (!zero) {
    local.first[t] = local.x;
    local.r = fused(-local.d, local.x, local.r);
    __syncthreads();
  }
  const I end = slice_ptr[blockIdx.x + 1];
  for (I at = slice_ptr[blockIdx.x] + t; at < end; at += 4 * height) {       // loads of four entries in flight
    I code[4];
    T value[4], gathered[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) code[k] = at + k * height < end ? __ldcs(col_idx + at + k * height) : I(0);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (code[k]) {
        value[k] = load_stream(entries + at + k * height);
        if (code[k] > 0 && !zero) gathered[k] = in_place ? fresh(x + code[k] - 1) : x[code[k] - 1];
      }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (code[k] < 0) {
        const int column = int(-code[k] - 1);
        if (!zero) local.r = fused(-value[k], local.first[column], local.r);
        if (KEEP) {
          local.values[local.count * height] = value[k];
          local.columns[local.count * height] = (unsigned short)column;
          ++local.count;
        }
      } else if (code[k] > 0 && !zero) {
        local.r = fused(-value[k], gathered[k], local.r);
      }
    }
    if (!code[3]) break;
  }
  return local;
}

// Sum over the block in a fixed order; every thread gets it. Two sets of sums take turns, so that one barrier is
// enough.
DEVICE double block_total(double v, int& turn) {
  __shared__ double sums[2][32];
  const int lane = threadIdx.x & 31;
  double total[1] = {v};
  warp_sum(total);
  turn ^= 1;
  if (lane == 0) sums[turn][threadIdx.x >> 5] = total[0];
  __syncthreads();
  total[0] = lane < (blockDim.x >> 5) ? sums[turn][lane] : 0.0;
  warp_sum(total);
  return total[0];
}

template <class T> DEVICE void finish(const Local<T>& local, T y, T* out, bool in_place) {
  if (local.real) out[local.row] = local.x + y;
  if (in_place) __threadfence();
}

// A thread's row of the block in registers. Lanes past the end of their row read nothing: fewer bank conflicts in
// shared memory.
template <class T, int HELD> struct Row {
  T value[HELD ? HELD : 1];
  unsigned columns[HELD ? (HELD + 1) / 2 : 1];         // two in a register
  const Local<T>& local;
  int longest;
  DEVICE Row(const Local<T>& local) : local(local), longest(local.count) {
    for (int o = 16; o; o >>= 1) longest = max(longest, __shfl_xor_sync(~0u, longest, o));
    if constexpr (HELD > 0) {
#pragma unroll
      for (int k = 0; k < HELD; ++k) {
        value[k] = k < local.count ? local.values[k * blockDim.x] : T(0);
        const unsigned column = k < local.count ? local.columns[k * blockDim.x] : 0;
        columns[k / 2] = k % 2 ? columns[k / 2] | column << 16 : column;
      }
    }
  }
  DEVICE T off_diagonal(const T* y) const {
    if constexpr (HELD == 0) return local.off_diagonal(y, 0, local.count);
    T sum(0);
#pragma unroll
    for (int k = 0; k < HELD; ++k)
      if (k < local.count) sum = fused(value[k], y[columns[k / 2] >> 16 * (k % 2) & 0xFFFF], sum);
    return sum;
  }
};

// Each thread compares the square of its own residual with tolerance / height. The barrier itself tells whether all are
// below, so that the test costs nothing. Warps without couplings only wait.
// launch: a block of height threads for each slice of slice_ptr, shared bytes shared
template <typename T, typename I, int HELD>
__global__ void __launch_bounds__(1024) jacobi(Context* ctx, const I* slice_ptr, const T* diag, const T* entries,
    const I* col_idx, const T* b, const T* x, T* out, T omega, int zero, int sweeps, T tolerance, int width, int held,
    int height, int shared, long long b_size) {
  if (stopped(ctx)) return;
  Local<T> local = assemble<true>(slice_ptr, diag, entries, col_idx, b, x, x == out, zero, width, b_size);
  local.scale();
  const Row<T, HELD> row(local);
  const real_t<T> enough = real(tolerance) / height, weight = abs2(local.d);
  const int t = threadIdx.x;
  T *next = local.first, *now = local.second, y(0);
  if (!__syncthreads_and(weight * abs2(local.r) <= enough)) {                // sweep 0: y was zero
    next[t] = now[t] = y = omega * local.r;
    const bool coupled = __syncthreads_or(local.count > 0);
    const bool at_rest = row.longest == 0 && omega == T(1);    // a warp that has nothing more to do
    for (int sweep = 1; sweep < sweeps && (coupled || omega != T(1)); ++sweep) {
      const T residual = local.r - y - row.off_diagonal(now);
      const T moved = fused(omega, residual, y);
      if (!at_rest) next[t] = moved;
      if (__syncthreads_and(weight * abs2(residual) <= enough)) break;
      y = moved;
      T* swap = now;
      now = next;
      next = swap;
    }
  }
  finish(local, y, out, x == out);
}

// Warps take turns. Inside a warp a row waits for the rows above that it depends on: its level is one above theirs.
// launch: a block of height threads for each slice of slice_ptr, shared bytes shared
template <typename T, typename I>
__global__ void gauss_seidel(Context* ctx, const I* slice_ptr, const T* diag, const T* entries, const I* col_idx,
    const T* b, const T* x, T* out, T omega, int zero, int sweeps, T tolerance, int width, int held, int height,
    int shared, long long b_size) {
  if (stopped(ctx)) return;
  Local<T> local = assemble<true>(slice_ptr, diag, entries, col_idx, b, x, x == out, zero, width, b_size);
  local.scale();
  const real_t<T> enough = real(tolerance) / height, weight = abs2(local.d);
  const int t = threadIdx.x, warp = t / 32, warps = blockDim.x / 32;
  int lower = 0, upper = 0;                            // entries [lower, upper) are rows above in the same warp
  while (lower < local.count && local.columns[lower * blockDim.x] < 32 * warp) ++lower;
  for (upper = lower; upper < local.count && local.columns[upper * blockDim.x] < t;) ++upper;
  T* y = local.second;
  y[t] = T(0);
  __syncthreads();
  int* levels = reinterpret_cast<int*>(local.first);
  int level = 0, depth = 0;
  bool changed = true;
  levels[t] = 0;
  while (changed) {
    __syncwarp();
    int found = 0;
    for (int k = lower; k < upper; ++k) found = max(found, levels[local.columns[k * blockDim.x]] + 1);
    changed = __any_sync(~0u, found != level);
    __syncwarp();
    levels[t] = level = found;
  }
  depth = level + 1;
  for (int o = 16; o; o >>= 1) depth = max(depth, __shfl_xor_sync(~0u, depth, o));
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    const T move = local.r - y[t] - local.off_diagonal(y, 0, local.count);
    if (__syncthreads_and(weight * abs2(move) <= enough)) break;
    for (int w = 0; w < warps; ++w) {                  // (4.14): rows of earlier warps are new, of later warps old
      if (w == warp) {
        const T known = local.r - local.off_diagonal(y, 0, lower) - local.off_diagonal(y, upper, local.count);
        __syncwarp();
        for (int l = 0; l < depth; ++l) {
          if (l == level) y[t] = known - local.off_diagonal(y, lower, upper);
          __syncwarp();
        }
      }
      __syncthreads();
    }
  }
  finish(local, y[t], out, x == out);
}

// launch: a block of height threads for each slice of slice_ptr, shared bytes shared
template <typename T, typename I, int HELD>
__global__ void __launch_bounds__(1024) conjugate_gradients(Context* ctx, const I* slice_ptr, const T* diag,
    const T* entries, const I* col_idx, const T* b, const T* x, T* out, T omega, int zero, int sweeps, T tolerance,
    int width, int held, int height, int shared, long long b_size) {
  if (stopped(ctx)) return;
  Local<T> local = assemble<true>(slice_ptr, diag, entries, col_idx, b, x, x == out, zero, width, b_size);
  const Row<T, HELD> row(local);
  const double enough = real(tolerance);
  T *shown = local.second, p = local.r, y(0);
  int turn = 0;
  double rho = block_total(abs2(acc_t<T>(local.r)), turn);
  for (int sweep = 0; sweep < sweeps && rho > enough; ++sweep) {
    shown[threadIdx.x] = p;
    __syncthreads();
    const T q = fused(local.d, p, row.off_diagonal(shown));
    const double sigma = block_total(real(conj_mul(acc_t<T>(p), acc_t<T>(q))), turn);
    if (!(sigma > 0)) break;
    const real_t<T> alpha(rho / sigma);
    y = y + alpha * p;
    local.r = local.r - alpha * q;
    const double new_rho = block_total(abs2(acc_t<T>(local.r)), turn);
    p = local.r + real_t<T>(new_rho / rho) * p;
    rho = new_rho;
  }
  finish(local, y, out, x == out);
}

// y = A_ll^-1 r by the dense inverse; inverse[s][j][t] is entry (t, j): neighbouring threads read neighbouring entries.
// launch: a block of height threads for each slice of slice_ptr, shared bytes shared
template <typename T, typename I>
__global__ void exact(Context* ctx, const I* slice_ptr, const T* diag, const T* entries, const I* col_idx,
    const T* inverse, const T* b, const T* x, T* out, int zero, int height, int shared, long long b_size) {
  if (stopped(ctx)) return;
  const Local<T> local = assemble<false>(slice_ptr, diag, entries, col_idx, b, x, x == out, zero, 0, b_size);
  local.second[threadIdx.x] = local.r;
  __syncthreads();
  const T* column = inverse + blockIdx.x * (long long)height * height + threadIdx.x;
  T y(0);
#pragma unroll 8
  for (int j = 0; j < height; ++j) y = fused(load_stream(column + (long long)j * height), local.second[j], y);
  finish(local, y, out, x == out);
}
