// Incomplete Cholesky on a GPU: in level order, a thread a row. The factor has the form of ic.py: CSR, the diagonal
// last in its row. A CPU takes one row after the other.
#include "context.cuh"
#include "pivots.hpp"
#include "waiting.cuh"

// The sum of l_im conj(l_jm) over m < j, by merging rows i and j, which this launch wrote.
template <class T, class I> DEVICE T common(const I* indptr, const I* indices, const T* values, I i, I j) {
  T total(0);
  I p = indptr[i], q = indptr[j];
  const I p_end = indptr[i + 1], q_end = indptr[j + 1];
  while (p < p_end && q < q_end) {
    const I a = indices[p], b = indices[q];
    if (a >= j || b >= j) break;
    if (a == b) total = fused(peek(values + p), conj(peek(values + q)), total);
    p += a <= b;
    q += b <= a;
  }
  return total;
}

// Factor rows in level order, each as soon as the rows that it needs are done. inverse: the inverse pivot of a finished
// row, 0 before.
// launch: elements of sequence, 256 threads, at most 1 blocks per multiprocessor
template <typename T, typename I>
__global__ void __launch_bounds__(256) factor_rows(Context* ctx, const I* indptr, const I* indices, const T* data,
    T* values, real_t<T>* inverse, const I* sequence, int* drawn, double shift, double tiny, long long* bad,
    long long n) {
  using R = real_t<T>;
  if (stopped(ctx)) return;
  for (;;) {
    const long long t = draw(drawn);
    if (t - threadIdx.x % 32 >= n) break;
    bool done = t >= n;
    const I i = done ? I(0) : sequence[t], end = indptr[i + 1] - 1;
    I k = indptr[i];
    const R diagonal = real(data[end]) * R(1 + shift);
    R pivot = diagonal;
    while (__any_sync(~0u, !done)) {
      if (done) continue;
      while (k < end) {
        const I j = indices[k];
        const R scale = peek(inverse + j);
        if (scale == R(0)) break;
        __threadfence();
        const T l = (data[k] - common(indptr, indices, values, i, j)) * scale;
        post(values + k, l);
        pivot -= abs2(l);
        ++k;
      }
      if (k < end) continue;
      if (!(pivot > R(tiny) * diagonal)) {
        record(bad, i);
        pivot = R(1);
      }
      const R root = sqrt(pivot);
      post(values + end, T(root));
      __threadfence();
      post(inverse + i, R(1) / root);
      done = true;
    }
  }
}
