// SELL products on a GPU, one thread a row over the full grid; the layout is described in formats/sell.py.
//
// Occupancy decides: 32 registers, so that 2048 threads share a multiprocessor, and all loads of a batch issued before the
// first is used. Matrix entries are read once and pass by the cache (load_stream), which leaves it to x. Padding is known by
// its offset: neither its value nor any x is used. HEIGHT is a constant, since a division by it costs registers.
#include "context.cuh"

constexpr unsigned PAD = 0xFFFF;

template <class T, class I> struct Matrix {
  const I *ptr, *base;
  const unsigned short* offsets;
  const T* values;
  const I* high_ptr;
  const unsigned short* high;
};

// The product with x of the row at `slot` of the sorted order; 0 past the last slice.
template <int HEIGHT, bool HIGH, class T, class I> DEVICE T row_product(const Matrix<T, I>& A, const T* x, I slot, I slices) {
  constexpr int BATCH = scalar<T>::parts == 1 ? 3 : 4;
  const I slice = slot / HEIGHT, lane = slot % HEIGHT;
  I start = 0, up = -1;                                // slice columns before this slice, here and among the wide ones
  int width = 0;
  if (slice < slices) {
    start = __ldg(A.ptr + slice) / HEIGHT;
    width = int(__ldg(A.ptr + slice + 1) / HEIGHT - start);
    if constexpr (HIGH) up = __ldg(A.high_ptr + slice);
  }
  T sum(0);
  for (int k = 0; k < width; k += BATCH) {
    I column[BATCH];                                   // -1: padding
    T value[BATCH], gathered[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      unsigned low = PAD;
      I from = 0;
      if (k + i < width) {
        const I at = (start + k + i) * HEIGHT + lane;
        low = load_stream(A.offsets + at);
        value[i] = load_stream(A.values + at);
        from = __ldg(A.base + start + k + i);
      }
      column[i] = low == PAD ? I(-1) : from + I(low);
      if constexpr (HIGH)
        if (up >= 0 && k + i < width) {                // a slice whose columns need more than 16 bits
          const unsigned top = load_stream(A.high + up + (k + i) * HEIGHT + lane);
          column[i] = low == PAD && top == PAD ? I(-1) : I(low) + (I(top) << 16);
        }
    }
#pragma unroll
    for (int i = 0; i < BATCH; ++i)
      if (column[i] >= 0) gathered[i] = x[column[i]];
#pragma unroll
    for (int i = 0; i < BATCH; ++i)
      if (column[i] >= 0) sum = fused(value[i], gathered[i], sum);
  }
  return sum;
}

// The row at a place of the sorted order.
template <class W, class I> DEVICE I row_at(const W* rows, I slot, int window) {
  return rows ? (slot & -I(window)) + __ldg(rows + slot) : slot;
}

// y = alpha A x + beta y; beta = 0 never reads y.
// launch: elements of y, 256 threads
template <typename T, typename I, typename W, int HEIGHT, bool HIGH>
__global__ void __launch_bounds__(256, scalar<T>::parts == 1 ? 8 : 4) product(Context* ctx, const I* ptr, const I* base,
    const unsigned short* offsets, const T* values, const W* rows, const I* high_ptr, const unsigned short* high, const T* x,
    T* y, int height, int window, T alpha, T beta, long long n, long long ptr_size) {
  if (stopped(ctx)) return;
  const I slot = I(thread_id());
  const T sum = row_product<HEIGHT, HIGH>(Matrix<T, I>{ptr, base, offsets, values, high_ptr, high}, x, slot, I(ptr_size - 1));
  if (slot >= I(ptr_size - 1) * HEIGHT) return;
  const I row = row_at(rows, slot, window);
  if (row < I(n)) y[row] = beta == T(0) ? alpha * sum : fused(beta, y[row], alpha * sum);
}

// y = A x; the parts of (w, y) and (y, y) are left for collect_dots.
// launch: elements of y, 128 threads
template <typename T, typename I, typename W, int HEIGHT, bool HIGH>
__global__ void __launch_bounds__(128, scalar<T>::parts == 1 ? 12 : 8) product_dots(Context* ctx, const I* ptr, const I* base,
    const unsigned short* offsets, const T* values, const W* rows, const I* high_ptr, const unsigned short* high, const T* x,
    T* y, const T* w, acc_t<T>* dots, int height, int window, long long n, long long ptr_size) {
  if (stopped(ctx)) return;
  const I slot = I(thread_id());
  I row = slot < I(ptr_size - 1) * HEIGHT ? row_at(rows, slot, window) : I(n);
  const T weight = row < I(n) ? w[row] : T(0);         // early: at the end its latency would be in the open
  const T sum = row_product<HEIGHT, HIGH>(Matrix<T, I>{ptr, base, offsets, values, high_ptr, high}, x, slot, I(ptr_size - 1));
  if (row < I(n)) y[row] = sum;
  Two<T> sums(conj_fused(weight, sum, acc_t<T>(0)), abs2(acc_t<T>(sum)));
  leave_sums(ctx, sums.v);
}
