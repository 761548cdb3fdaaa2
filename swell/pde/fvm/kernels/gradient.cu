// Gradients of cell values, on a GPU: one thread a cell; gradient.cpp is the CPU version.
#include "context.cuh"

// out = G⁻¹ Σ reach Δp over each cell's faces; see the CPU version.
// launch: columns of out, 128 threads
template <typename T, typename I, typename J>
__global__ void least_squares(Context* ctx, const I* ptr, const I* faces, const J* owner, const J* neighbour,
                              const T* reach, const T* inverse, const T* slope, const T* rate, const T* distance,
                              const T* p, T* out, long long n, long long neighbour_size, long long reach_stride) {
  if (stopped(ctx)) return;
  long long c = thread_id();
  if (c >= n) return;
  T x(0), y(0), z(0), jump;
  for (I at = ptr[c]; at < ptr[c + 1]; ++at) {
    I f = faces[at];
    if (f < 0) f = ~f;
    if (f < neighbour_size) {
      jump = p[neighbour[f]] - p[owner[f]];
    } else {
      long long e = f - neighbour_size;
      jump = (rate[e] - slope[e] * p[c]) * distance[e];
    }
    x += reach[f] * jump;
    y += reach[reach_stride + f] * jump;
    z += reach[2 * reach_stride + f] * jump;
  }
  const T* g = inverse + c;
  out[c] = g[0] * x + g[n] * y + g[2 * n] * z;
  out[n + c] = g[n] * x + g[3 * n] * y + g[4 * n] * z;
  out[2 * n + c] = g[2 * n] * x + g[4 * n] * y + g[5 * n] * z;
}
