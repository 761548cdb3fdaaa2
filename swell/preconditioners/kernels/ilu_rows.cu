// Incomplete LU on a GPU: in level order, a thread a row. The factors have the form of ilu.py: one CSR pattern;
// `diagonal` has the places of the diagonal entries. A CPU has levels of rows instead of rows that wait.
#include "context.cuh"
#include "pivots.hpp"
#include "waiting.cuh"

// Factor rows in level order, in place in `values`, which hold A; each starts as soon as the rows that it needs are
// done.
// launch: elements of sequence, 256 threads, at most 1 blocks per multiprocessor
template <typename T, typename I> __global__ void __launch_bounds__(256) factor_rows(Context* ctx, const I* indptr,
    const I* indices, const I* diagonal, const real_t<T>* scale, T* values, int* done, const I* sequence, int* drawn,
    double tiny, double replacement, long long* bad, long long n) {
  if (stopped(ctx)) return;
  for (;;) {
    const long long t = draw(drawn);
    if (t - threadIdx.x % 32 >= n) break;
    bool ended = t >= n;
    const I i = ended ? I(0) : sequence[t], middle = diagonal[i], end = indptr[i + 1];
    I k = indptr[i];
    while (__any_sync(~0u, !ended)) {
      if (ended) continue;
      while (k < middle) {
        const I j = indices[k];
        if (!peek(done + j)) break;
        __threadfence();
        const T l = peek(values + k) / peek(values + diagonal[j]);
        post(values + k, l);
        I p = k + 1;
        for (I m = diagonal[j] + 1; m < indptr[j + 1]; ++m) {
          const I c = indices[m];
          while (p < end && indices[p] < c) ++p;
          if (p == end) break;
          if (indices[p] == c) post(values + p, fused(-l, peek(values + m), peek(values + p)));
        }
        ++k;
      }
      if (k < middle) continue;
      const T pivot = peek(values + middle);
      const bool good = is_good(pivot, scale[i], tiny);
      if (!good) record(bad, i);
      post(values + middle, good ? pivot : replaced(pivot, scale[i], replacement));
      __threadfence();
      post(done + i, 1);
      ended = true;
    }
  }
}
