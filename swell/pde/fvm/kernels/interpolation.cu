// Interpolation of cell values to faces, on a GPU; interpolation.cpp is the CPU version.
#include "context.cuh"

// out = w p_O + (1 - w) p_N, or the harmonic mean 1 / ((1 - w) / p_O + w / p_N); p_O on boundary faces.
// launch: elements of out, 256 threads
template <typename T, typename I>
__global__ void to_faces(Context* ctx, const I* owner, const I* neighbour, const T* weight, const T* p, bool harmonic,
    T* out, long long n, long long neighbour_size) {
  if (stopped(ctx)) return;
  long long f = thread_id();
  if (f >= n) return;
  T value = p[owner[f]];
  if (f < neighbour_size) {
    T other = p[neighbour[f]], w = weight[f];
    value = harmonic ? T(1) / ((T(1) - w) / value + w / other) : w * value + (T(1) - w) * other;
  }
  out[f] = value;
}
