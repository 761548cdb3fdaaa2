// Block incomplete LU on a GPU: in level order, a warp a block row, and by fixed-point sweeps, a warp a block. The
// factors have the form of block_ilu.cpp. Lane (g, c) has column c of a block; of a product of two blocks it has rows
// g, g + TAKEN, .... BLOCK is a constant.
#include "context.cuh"
#include "waiting.cuh"

// Place of a column in sorted columns, which have it.
template <class I> DEVICE I find(const I* columns, I low, I high, I column) {
  while (low < high) {
    const I middle = low + (high - low) / 2;
    if (columns[middle] < column) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Write A's entries to their places in `blocks`, which is zero elsewhere, a thread a row of A.
// launch: elements of indptr, 256 threads
template <typename T, typename C, typename I, int BLOCK> __global__ void __launch_bounds__(256) load(Context* ctx,
    const C* indptr, const C* indices, const T* data, const I* place, const I* lower, const I* upper, const I* columns,
    T* blocks, int block, long long diagonal, long long n, long long place_size) {
  const long long row = thread_id();
  if (stopped(ctx) || row + 1 >= n) return;
  const bool mapped = place_size > 0;
  const I r = I(row % BLOCK), i = mapped ? place[row / BLOCK] : I(row / BLOCK), end = I(indptr[row + 1]);
  I before = -1;
  T* to = blocks;
  for (I e = I(indptr[row]); e < end; ++e) {
    const I given = I(indices[e]) / BLOCK, c = I(indices[e]) % BLOCK;
    if (given != before) {
      before = given;
      const I j = mapped ? place[given] : given;
      const I k = j < i ? find(columns, lower[i], lower[i + 1], j) : j > i ? find(columns, upper[i], upper[i + 1], j)
                  : I(diagonal) + i;
      to = blocks + ((long long)k * BLOCK + r) * BLOCK;
    }
    to[c] = data[e];
  }
}

template <class R> DEVICE R modulus(R a) { return fabs(a); }
template <class R> DEVICE R modulus(complex<R> a) { return hypot(a.re, a.im); }

// Row g of A times column c of B. The lanes of group g hold the row of A; B is read past the caches. All lanes call it.
template <int BLOCK, class T> DEVICE T row_times(T a, const T* B, int g, int c, bool active) {
  T sum = T(0);
#pragma unroll
  for (int t = 0; t < BLOCK; ++t) {
    const T at = shuffle(a, (g * BLOCK + t) % 32);
    if (active) sum = fused(at, peek(B + t * BLOCK + c), sum);
  }
  return sum;
}

// W = D⁻¹ by Gauss–Jordan elimination, a lane a column; W may be D. The pivot is the entry of a column that is largest
// relative to its row's scale. A tiny pivot is replaced. Returns the number of tiny pivots.
template <int BLOCK, class T>
DEVICE int invert(const T* D, T* W, const real_t<T>* scale, double tiny, double replacement) {
  using R = real_t<T>;
  const int lane = threadIdx.x % 32;
  const bool column = lane < BLOCK;
  for (int r = 0; r < BLOCK; ++r)
    if (column) post(W + r * BLOCK + lane, peek(D + r * BLOCK + lane));
  int order = lane, count = 0, swapped = lane;               // order: D's row that is now row `lane` of W
  __syncwarp();
  for (int k = 0; k < BLOCK; ++k) {
    R size = column && lane >= k ? modulus(peek(W + lane * BLOCK + k)) / scale[order] : R(-1);
    if (!(size >= R(0))) size = R(-1);                       // a NaN is no pivot
    int best = lane;
#pragma unroll
    for (int o = 16; o; o >>= 1) {
      const R other = __shfl_xor_sync(~0u, size, o);
      const int where = __shfl_xor_sync(~0u, best, o);
      if (other > size || (other == size && where < best)) size = other, best = where;
    }
    if (best < k || best >= BLOCK || size < R(0)) best = k;
    if (column && best != k) {
      const T a = peek(W + k * BLOCK + lane), b = peek(W + best * BLOCK + lane);
      post(W + k * BLOCK + lane, b), post(W + best * BLOCK + lane, a);
    }
    const int from = lane == k ? best : lane == best ? k : lane;
    order = __shfl_sync(~0u, order, from);
    if (lane == k) swapped = best;
    const int row = __shfl_sync(~0u, order, k);
    T pivot = shuffle(column ? peek(W + k * BLOCK + lane) : T(0), k);
    const R modulo = modulus(pivot), least = R(tiny) * scale[row];
    if (!(modulo > least && isfinite(modulo))) {
      const R wanted = scale[row] * R(replacement);
      pivot = modulo > R(0) && isfinite(modulo) ? wanted * ((R(1) / modulo) * pivot) : T(wanted);
      ++count;
    }
    const T factor = T(1) / pivot;
    const T own = lane == k ? factor : column ? peek(W + k * BLOCK + lane) * factor : T(0);
    if (column) post(W + k * BLOCK + lane, own);
    for (int r = 0; r < BLOCK; ++r) {
      if (r == k) continue;
      const T v = column ? peek(W + r * BLOCK + lane) : T(0), l = shuffle(v, k);
      if (column) post(W + r * BLOCK + lane, fused(-l, own, lane == k ? T(0) : v));
    }
    __syncwarp();
  }
  for (int r = 0; r < BLOCK; ++r) {                          // row exchanges of D are column exchanges of its inverse
    T v = column ? peek(W + r * BLOCK + lane) : T(0);
    for (int k = BLOCK - 1; k >= 0; --k) {
      const int other = __shfl_sync(~0u, swapped, k);
      v = shuffle(v, lane == k ? other : lane == other ? k : lane);
    }
    if (column) post(W + r * BLOCK + lane, v);
  }
  return count;
}

// Factor block rows in level order, in place in `blocks`, which hold A; each starts when those that it needs are done.
// launch: elements of sequence, 256 threads, a warp each, at most 2 blocks per multiprocessor
template <typename T, typename I, int BLOCK>
__global__ void __launch_bounds__(256) factor_rows(Context* ctx, const I* lower, const I* upper, const I* indices,
    T* blocks, int block, long long diagonal, const real_t<T>* scale, int* done, const I* sequence, int* drawn,
    double tiny, double replacement, long long* bad, long long n) {
  if (stopped(ctx)) return;
  constexpr int TAKEN = 32 / BLOCK, AREA = BLOCK * BLOCK;
  const int lane = threadIdx.x % 32, g = lane / BLOCK, c = lane % BLOCK;
  T* const inverse = blocks + diagonal * AREA;
  for (;;) {
    const long long task = draw(drawn) / 32;
    if (task >= n) break;
    const I i = sequence[task], middle = lower[i + 1], end = upper[i + 1];
    for (I k = lower[i]; k < middle; ++k) {
      const I j = indices[k];
      while (__any_sync(~0u, !peek(done + j))) {}
      __threadfence();
      T* own = blocks + (long long)k * AREA;
      for (int r = 0; r < BLOCK; r += TAKEN) {               // L = A D⁻¹: a row of L needs only this row of A
        const bool active = g < TAKEN && r + g < BLOCK;
        const T a = active ? peek(own + (r + g) * BLOCK + c) : T(0);
        const T l = row_times<BLOCK>(a, inverse + (long long)j * AREA, g, c, active);
        if (active) post(own + (r + g) * BLOCK + c, l);
      }
      I left = k + 1, right = upper[i];
      for (I m = upper[j]; m < upper[j + 1]; ++m) {
        const I wanted = indices[m];
        while (left < middle && indices[left] < wanted) ++left;
        while (wanted > i && right < end && indices[right] < wanted) ++right;
        const I p = wanted < i ? left : wanted > i ? right : I(diagonal) + i;
        if (wanted < i ? left == middle : wanted > i && right == end) continue;
        if (indices[p] != wanted) continue;
        T* target = blocks + (long long)p * AREA;
        for (int r = 0; r < BLOCK; r += TAKEN) {
          const bool active = g < TAKEN && r + g < BLOCK;
          const T l = active ? peek(own + (r + g) * BLOCK + c) : T(0);
          const T product = row_times<BLOCK>(l, blocks + (long long)m * AREA, g, c, active);
          if (active) post(target + (r + g) * BLOCK + c, peek(target + (r + g) * BLOCK + c) - product);
        }
      }
    }
    __threadfence();
    __syncwarp();
    T* D = inverse + (long long)i * AREA;
    const int count = invert<BLOCK>(D, D, scale + (long long)i * BLOCK, tiny, replacement);
    if (count && lane == 0) {
      atomicMin(bad, (long long)i);
      atomicAdd((unsigned long long*)(bad + 1), (unsigned long long)count);
    }
    __threadfence();
    __syncwarp();
    if (lane == 0) post(done + i, 1);
  }
}

// Replace the blocks U(i, j), from place `first` on, by U(i, j) times the inverse diagonal block j, a warp a block.
// launch: 8 blocks per multiprocessor of 256 threads
template <typename T, typename I, int BLOCK> __global__ void __launch_bounds__(256) scale_columns(Context* ctx,
    const I* indices, T* blocks, int block, long long diagonal, long long first, long long indices_size) {
  if (stopped(ctx)) return;
  constexpr int TAKEN = 32 / BLOCK, AREA = BLOCK * BLOCK;
  const int lane = threadIdx.x % 32, g = lane / BLOCK, c = lane % BLOCK;
  for (long long k = first + thread_id() / 32; k < indices_size; k += threads() / 32) {
    T* own = blocks + k * AREA;
    const T* inverse = blocks + (diagonal + indices[k]) * AREA;
    for (int r = 0; r < BLOCK; r += TAKEN) {
      const bool active = g < TAKEN && r + g < BLOCK;
      const T u = active ? own[(r + g) * BLOCK + c] : T(0);
      const T n = row_times<BLOCK>(u, inverse, g, c, active);
      if (active) own[(r + g) * BLOCK + c] = n;
    }
  }
}

// Invert the diagonal blocks; replace and count their tiny pivots.
// launch: 8 blocks per multiprocessor of 256 threads
template <typename T, int BLOCK> __global__ void __launch_bounds__(256) invert_blocks(Context* ctx, const T* blocks,
    T* inverse, int block, long long diagonal, const real_t<T>* scale, double tiny, double replacement, long long* bad,
    long long inverse_size) {
  if (stopped(ctx)) return;
  for (long long i = thread_id() / 32; i < inverse_size / (BLOCK * BLOCK); i += threads() / 32) {
    const int count = invert<BLOCK>(blocks + (diagonal + i) * (BLOCK * BLOCK), inverse + i * (BLOCK * BLOCK),
                                    scale + i * BLOCK, tiny, replacement);
    if (count && threadIdx.x % 32 == 0) {
      atomicMin(bad, i);
      atomicAdd((unsigned long long*)(bad + 1), (unsigned long long)count);
    }
  }
}

// One sweep, from the old factors and inverses to the new factors. For each of its rows of a block, a lane merges row i
// of L and column j of U.
// launch: elements of rows, 256 threads, a warp each
template <typename T, typename I, int BLOCK>
__global__ void __launch_bounds__(256) fixed_point(Context* ctx, const I* lower, const I* indices, const I* rows,
    const I* starts, const I* column_rows, const I* places, const T* data, const T* inverse, const T* old, T* fresh,
    int block, long long n) {
  constexpr int TAKEN = 32 / BLOCK;
  constexpr long long AREA = BLOCK * BLOCK;
  const long long k = thread_id() / 32;
  if (stopped(ctx) || k >= n) return;
  const int lane = threadIdx.x % 32, g = lane / BLOCK, c = lane % BLOCK;
  const I i = rows[k], j = indices[k], stop = min(i, j), row_end = lower[i + 1], column_end = starts[j + 1];
  for (int r = 0; r < BLOCK; r += TAKEN) {
    const bool active = g < TAKEN && r + g < BLOCK;
    const int row = active ? (r + g) * BLOCK : 0, column = active ? c : 0;
    T sum = data[k * AREA + row + column];
    I p = lower[i], q = starts[j];
    while (p < row_end && q < column_end) {
      const I a = indices[p], b = column_rows[q];
      if (a >= stop || b >= stop) break;
      if (a == b) {
        const T *left = old + p * AREA + row, *right = old + places[q] * AREA + column;
        for (int t = 0; t < BLOCK; ++t) sum = fused(-left[t], right[t * BLOCK], sum);
      }
      p += a <= b;
      q += b <= a;
    }
    if (i > j) sum = row_times<BLOCK>(sum, inverse + j * AREA, g, c, active);
    if (active) fresh[k * AREA + row + c] = sum;
  }
}
