// SELL products on a GPU, one thread a row; the layout is described in formats/sell.py.
//
// Entries are loaded in batches, offsets and values first, so that eight loads are in flight before the first use of
// x. They are read once and pass by the cache (__ldcs), which leaves it to x. Padding is known by its offset: neither its
// value nor any x is used.
#include "context.cuh"

constexpr unsigned PAD = 0xFFFF;
constexpr int BATCH = 4;

// The product of one row with x. slot: the row's place in the sorted order.
template <class T, class I>
DEVICE T row_product(const I* ptr, const I* base, const unsigned short* offsets, const T* values, const I* high_ptr,
                     const unsigned short* high, const T* x, long long slot, int height) {
  const int shift = __ffs(height) - 1;                 // height and window are powers of two: no division
  long long slice = slot >> shift;
  int lane = slot & (height - 1);
  I first = __ldg(ptr + slice), width = (__ldg(ptr + slice + 1) - first) >> shift;
  const I* column = base + (first >> shift);
  const unsigned short* offset = offsets + first + lane;
  const T* value = values + first + lane;
  I up = high_ptr ? __ldg(high_ptr + slice) : I(-1);
  T sum(0);
  if (up >= 0) {                                       // a slice whose columns need more than 16 bits
    const unsigned short* upper = high + up + lane;
    for (I k = 0; k < width; ++k) {
      unsigned low = offset[k * height], top = upper[k * height];
      if (low != PAD || top != PAD) sum = fused(value[k * height], x[(long long)low + ((long long)top << 16)], sum);
    }
    return sum;
  }
  for (I k = 0; k < width; k += BATCH) {
    unsigned o[BATCH];
    T v[BATCH], xv[BATCH];
    I c[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      o[i] = PAD;
      if (k + i < width) {
        o[i] = __ldcs(offset + (k + i) * height);
        v[i] = load_stream(value + (k + i) * height);
        c[i] = __ldg(column + k + i);
      }
    }
#pragma unroll
    for (int i = 0; i < BATCH; ++i)
      if (o[i] != PAD) xv[i] = x[c[i] + I(o[i])];
#pragma unroll
    for (int i = 0; i < BATCH; ++i)
      if (o[i] != PAD) sum = fused(v[i], xv[i], sum);
  }
  return sum;
}

// The row at a place of the sorted order.
template <class W> DEVICE long long row_at(const W* rows, long long slot, int window) {
  return rows ? (slot & -(long long)window) + __ldg(rows + slot) : slot;
}

// y = alpha A x + beta y; beta = 0 never reads y.
// launch: elements of y, 256 threads
template <typename T, typename I, typename W>
__global__ void __launch_bounds__(256, 6) product(Context* ctx, const I* ptr, const I* base, const unsigned short* offsets,
    const T* values, const W* rows, const I* high_ptr, const unsigned short* high, const T* x, T* y, int height, int window,
    T alpha, T beta, long long n, long long ptr_size) {
  long long slot = thread_id();
  if (stopped(ctx) || slot >= (ptr_size - 1) * height) return;
  T sum = row_product(ptr, base, offsets, values, high_ptr, high, x, slot, height);
  long long row = row_at(rows, slot, window);
  if (row < n) y[row] = beta == T(0) ? alpha * sum : fused(beta, y[row], alpha * sum);
}

// y = A x, dots[0] = (w, y), dots[1] = (y, y).
// launch: elements of y, 256 threads
template <typename T, typename I, typename W>
__global__ void __launch_bounds__(256, 6) product_dots(Context* ctx, const I* ptr, const I* base,
    const unsigned short* offsets, const T* values, const W* rows, const I* high_ptr, const unsigned short* high, const T* x,
    T* y, const T* w, acc_t<T>* dots, int height, int window, long long n, long long ptr_size) {
  if (stopped(ctx)) return;
  long long slot = thread_id();
  acc_t<T> wy(0);
  double yy = 0;
  if (slot < (ptr_size - 1) * height) {
    T sum = row_product(ptr, base, offsets, values, high_ptr, high, x, slot, height);
    long long row = row_at(rows, slot, window);
    if (row < n) {
      y[row] = sum;
      wy = conj_fused(w[row], sum, wy);
      yy = abs2(acc_t<T>(sum));
    }
  }
  sum_to<T>(ctx, wy, yy, dots);
}
