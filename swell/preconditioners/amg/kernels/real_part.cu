// Real parts of turned rows, and mirrored values, on a GPU; see real_part.py one folder up.
//
// Products are rounded before they are added, so that a CPU computes the same bits and finds the same links strong.
#include "modulus.cuh"
#include "rows.cuh"

// out[k] = Re(aᵢⱼ āᵢᵢ) / |aᵢᵢ|; 0 in rows without a diagonal.
// launch: elements of indptr, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename T, typename I>
__global__ void turned(Context* ctx, const I* indptr, const I* indices, const T* data, double* out, long long n,
                       long long data_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n - 1, lanes_for(n - 1, data_size), [&](const Portion& p) {
    double a = 0, b = 0;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes)
      if (indices[k] == p.row) {
        const double re = real_of(data[k]), im = imaginary_of(data[k]), size = modulus(data[k]);
        if (size > 0) a = re / size, b = im / size;
      }
    a = lanes_sum(a, p.lanes), b = lanes_sum(b, p.lanes);
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes)
      out[k] = __dadd_rn(__dmul_rn(real_of(data[k]), a), __dmul_rn(imaginary_of(data[k]), b));
  });
}

// mirror[k] = aⱼᵢ for entry k = (i, j); 0 where it is not stored.
// launch: elements of indptr, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I>
__global__ void mirrored(Context* ctx, const I* indptr, const I* indices, const double* data, double* mirror,
    long long n, long long data_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n - 1, lanes_for(n - 1, data_size), [&](const Portion& p) {
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) {
      const I j = indices[k];
      long long low = indptr[j], high = indptr[j + 1];
      const long long end = high;
      while (low < high) {                                     // the first entry of row j whose column is at least i
        const long long middle = (low + high) / 2;
        if (indices[middle] < p.row) low = middle + 1;
        else high = middle;
      }
      mirror[k] = low < end && indices[low] == p.row ? data[low] : 0.0;
    }
  });
}
