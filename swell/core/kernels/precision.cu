// Conversion of vectors between two precisions, on a GPU; precision.cpp is the CPU version. See core/in_precision.py. T
// is the type of the outer vectors, V of the inner ones. A vector has WIDTH columns; the values of a row are
// contiguous.
#include "context.cuh"

// y = factor[0] scale x, rounded to the type of y.
// launch: elements of y, 256 threads
template <typename T, typename V, int WIDTH>
__global__ void enter(Context* ctx, const T* x, const real_t<T>* scale, const double* factor, int width, V* y,
    long long n) {
  if (stopped(ctx)) return;
  const long long at = thread_id();
  if (at < n) y[at] = V(real_t<T>(factor[0]) * (scale[at / WIDTH] * x[at]));
}

// out = alpha scale y / factor[0] + beta out; beta = 0 never reads out.
// launch: elements of out, 256 threads
template <typename T, typename V, int WIDTH>
__global__ void leave(Context* ctx, const V* y, const real_t<T>* scale, const double* factor, int width, T* out,
    T alpha, T beta, long long n) {
  if (stopped(ctx)) return;
  const long long at = thread_id();
  if (at >= n) return;
  const T value = alpha * (scale[at / WIDTH] * (real_t<T>(1 / factor[0]) * T(y[at])));
  out[at] = beta == T(0) ? value : value + beta * out[at];
}

// out = scale y / factor[0]; for each column c, dots[c] = (w, out) and dots[width + c] = (out, out).
// launch: elements of scale, 256 threads, at most 8 blocks per multiprocessor
template <typename T, typename V, int WIDTH>
__global__ void leave_dots(Context* ctx, const V* y, const real_t<T>* scale, const double* factor, int width, T* out,
    const T* w, acc_t<T>* dots, long long n) {
  if (stopped(ctx)) return;
  constexpr int EACH = Two<T>::count;
  const real_t<T> inverse(1 / factor[0]);
  acc_t<T> wy[WIDTH];
  double yy[WIDTH];
#pragma unroll
  for (int c = 0; c < WIDTH; ++c) wy[c] = acc_t<T>(0), yy[c] = 0;
  for (long long i = thread_id(); i < n; i += threads())
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) {
      const long long at = i * WIDTH + c;
      const T value = scale[i] * (inverse * T(y[at]));
      out[at] = value;
      wy[c] = conj_fused(w[at], value, wy[c]);
      yy[c] += abs2(acc_t<T>(value));
    }
  double all[WIDTH * EACH];
#pragma unroll
  for (int c = 0; c < WIDTH; ++c) split(all + c * EACH, wy[c]), all[c * EACH + EACH - 1] = yy[c];
  if (!grid_sum(ctx, all)) return;
  for (int c = 0; c < WIDTH; ++c) {
    join(dots[c], all + c * EACH);
    dots[WIDTH + c] = acc_t<T>(all[c * EACH + EACH - 1]);
  }
}
