// Incomplete LU on a GPU: in level order, a thread a row, and by fixed-point sweeps, a thread an entry. The factors
// have the form of ilu.py: one CSR pattern; `diagonal` has the places of the diagonal entries.
#include "context.cuh"
#include "waiting.cuh"

template <class R> DEVICE R modulus(R a) { return fabs(a); }
template <class R> DEVICE R modulus(complex<R> a) { return hypot(a.re, a.im); }

// Return the pivot. One that is tiny or not finite is counted, and replaced by `replacement` times scale, with its
// sign.
template <class T, class R> DEVICE T settled(T pivot, R scale, double tiny, double replacement, long long i,
    long long* bad) {
  const R size = modulus(pivot);
  if (size > R(tiny) * scale && isfinite(size)) return pivot;
  atomicMin(bad, i);
  atomicAdd((unsigned long long*)(bad + 1), 1ull);
  const R wanted = scale * R(replacement);
  return size > R(0) && isfinite(size) ? wanted * ((R(1) / size) * pivot) : T(wanted);
}

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
      post(values + middle, settled(peek(values + middle), scale[i], tiny, replacement, (long long)i, bad));
      __threadfence();
      post(done + i, 1);
      ended = true;
    }
  }
}

// One sweep, from the old factors to the new ones, by merging row i and column j for each entry.
// launch: elements of data, 256 threads
template <typename T, typename I> __global__ void __launch_bounds__(256) fixed_point(Context* ctx, const I* indptr,
    const I* indices, const I* diagonal, const I* entry_rows, const I* starts, const I* column_rows, const I* places,
    const T* data, const real_t<T>* scale, const T* old, T* fresh, double tiny, double replacement, long long* bad,
    long long n) {
  const long long k = thread_id();
  if (stopped(ctx) || k >= n) return;
  const I i = entry_rows[k], j = indices[k], stop = min(i, j);
  T total = data[k];
  I p = indptr[i], q = starts[j], a = indices[p], b = column_rows[q];
  while (a < stop && b < stop) {
    if (a == b) total = fused(-old[p], old[places[q]], total);
    const bool left = a <= b, right = b <= a;
    if (left) a = indices[++p];
    if (right) b = column_rows[++q];
  }
  if (i > j) total = total / old[diagonal[j]];
  if (i == j) total = settled(total, scale[i], tiny, replacement, (long long)i, bad);
  fresh[k] = total;
}
