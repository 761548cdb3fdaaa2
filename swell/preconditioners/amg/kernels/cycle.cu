// What a cycle reads, computed on a GPU; see cycle.py and smoother.py one folder up. Setup in double, V: what the cycle stores.
//
// Products are rounded before they are subtracted, and sums take the entries in their order: the bits are a CPU's.
#include "rows.cuh"

// scales[i] = √(ω / Σⱼ |aᵢⱼ|); 1 for an empty row.
// launch: elements of scales, 256 threads
template <typename I>
__global__ void l1_scales(Context* ctx, const I* indptr, const double* data, double omega, double* scales, long long n,
                          long long data_size) {
  if (stopped(ctx)) return;
  visit_rows(indptr, thread_id() - threadIdx.x % 32, n, lanes_for(n, data_size), [&](const Portion& p) {
    double moduli = 0;
    for (long long k = p.begin + p.part; any_left(p, k); k += p.lanes) add_in_order(moduli, k < p.end ? fabs(data[k]) : 0, p.lanes);
    if (p.there && p.part == 0) scales[p.row] = moduli > 0 ? sqrt(omega / moduli) : 1.0;
  });
}

// The values of S = I − D A D with D = diag(scales).
// launch: elements of scales, 256 threads
template <typename I, typename V>
__global__ void smoothing_matrix(Context* ctx, const I* indptr, const I* indices, const double* data, const double* scales, V* out,
                                 long long n, long long data_size) {
  if (stopped(ctx)) return;
  visit_rows(indptr, thread_id() - threadIdx.x % 32, n, lanes_for(n, data_size), [&](const Portion& p) {
    const double own = p.there ? scales[p.row] : 0.0;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) {
      const I j = indices[k];
      out[k] = V((j == p.row ? 1.0 : 0.0) - __dmul_rn(own * data[k], scales[j]));
    }
  });
}

// The values of diag(fine)⁻¹ P diag(coarse).
// launch: elements of fine, 256 threads
template <typename I, typename V>
__global__ void balance(Context* ctx, const I* indptr, const I* indices, const double* data, const double* fine,
                        const double* coarse, V* out, long long n, long long data_size) {
  if (stopped(ctx)) return;
  visit_rows(indptr, thread_id() - threadIdx.x % 32, n, lanes_for(n, data_size), [&](const Portion& p) {
    const double own = p.there ? fine[p.row] : 1.0;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) out[k] = V(data[k] / own * coarse[indices[k]]);
  });
}

// y = the product of a square matrix, row after row, with the WIDTH columns of x, whose rows are contiguous. A warp a row;
// what it needs of the matrix, 128 bytes a lane at first, is on its way while the kernel before this one drains. The matrix stays
// in the second-level cache.
// launch: elements of x, 256 threads, a warp each
template <typename T, int WIDTH>
__global__ void __launch_bounds__(256) dense_product(Context* ctx, const T* matrix, int width, const T* x, T* y, long long x_size) {
  constexpr int AHEAD = 128 / sizeof(T);
  let_next_start();
  const long long i = thread_id() / 32, n = x_size / WIDTH;
  const int lane = threadIdx.x % 32;
  const T* row = matrix + i * n;
  T ahead[AHEAD], sum[WIDTH];
#pragma unroll
  for (int e = 0; e < AHEAD; ++e) ahead[e] = i < n && lane + 32 * e < n ? row[lane + 32 * e] : T(0);
  if (stopped(ctx) || i >= n) return;
#pragma unroll
  for (int c = 0; c < WIDTH; ++c) sum[c] = T(0);
#pragma unroll
  for (int e = 0; e < AHEAD; ++e)
    if (lane + 32 * e < n)
#pragma unroll
      for (int c = 0; c < WIDTH; ++c) sum[c] = fused(ahead[e], x[(lane + 32 * e) * WIDTH + c], sum[c]);
#pragma unroll 8
  for (long long j = lane + 32 * AHEAD; j < n; j += 32) {
    const T entry = row[j];
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) sum[c] = fused(entry, x[j * WIDTH + c], sum[c]);
  }
#pragma unroll
  for (int c = 0; c < WIDTH; ++c) {
    for (int o = 16; o; o >>= 1) sum[c] = sum[c] + shuffle_xor(sum[c], o);
    if (lane == 0) y[i * WIDTH + c] = sum[c];
  }
}
