// Incomplete Cholesky on a GPU: in level order, a thread a row, and by fixed-point sweeps, a thread an entry.
// The factor has the form of ic.py: CSR, the diagonal last in its row.
#include "context.cuh"
#include "waiting.cuh"

// The sum of l_im conj(l_jm) over m < j, by merging rows i and j. FRESH: this launch wrote the rows.
template <bool FRESH, class T, class I> DEVICE T common(const I* indptr, const I* indices, const T* values, I i, I j) {
  T total(0);
  I p = indptr[i], q = indptr[j];
  const I p_end = indptr[i + 1], q_end = indptr[j + 1];
  while (p < p_end && q < q_end) {
    const I a = indices[p], b = indices[q];
    if (a >= j || b >= j) break;
    if (a == b) total = fused(FRESH ? peek(values + p) : values[p], conj(FRESH ? peek(values + q) : values[q]), total);
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
        const T l = (data[k] - common<true>(indptr, indices, values, i, j)) * scale;
        post(values + k, l);
        pivot -= abs2(l);
        ++k;
      }
      if (k < end) continue;
      if (!(pivot > R(tiny) * diagonal)) {
        atomicMin(bad, (long long)i);
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

// One sweep, from the old factor to the new one.
// launch: elements of data, 256 threads
template <typename T, typename I>
__global__ void fixed_point(Context* ctx, const I* indptr, const I* indices, const I* entry_rows, const T* data,
    const T* old, T* fresh, double shift, double tiny, long long* bad, long long n) {
  using R = real_t<T>;
  const long long k = thread_id();
  if (stopped(ctx) || k >= n) return;
  const I i = entry_rows[k], j = indices[k];
  const T total = common<false>(indptr, indices, old, i, j);
  if (i != j) {
    fresh[k] = (data[k] - total) * (R(1) / real(old[indptr[j + 1] - 1]));
    return;
  }
  const R diagonal = real(data[k]) * R(1 + shift), pivot = diagonal - real(total);
  const bool good = pivot > R(tiny) * diagonal;
  fresh[k] = T(good ? sqrt(pivot) : real(old[k]));
  if (!good) atomicMin(bad, (long long)i);
}

// counts = the number of entries of each row in the lower triangle, diagonal included.
// launch: elements of counts, 256 threads
template <typename I>
__global__ void count_lower(Context* ctx, const I* indptr, const I* indices, long long* counts, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i >= n) return;
  long long count = 0;
  for (I k = indptr[i]; k < indptr[i + 1]; ++k) count += indices[k] <= i;
  counts[i] = count;
}

// Copy the columns of the lower triangle. Columns ascend, so that these are the first of each row.
// launch: elements of counts, 256 threads
template <typename I>
__global__ void take_columns(Context* ctx, const I* indptr, const I* indices, const long long* counts, const I* starts,
    I* columns, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i >= n) return;
  for (I k = 0; k < counts[i]; ++k) columns[starts[i] + k] = indices[indptr[i] + k];
}

// data = the values of a matrix on the pattern of a lower triangle; zero for entries that the matrix does not store.
// launch: elements of indptr, 256 threads
template <typename T, typename I, typename J>
__global__ void take_values(Context* ctx, const J* of_indptr, const J* of_indices, const T* of_data, const I* indptr,
    const I* indices, T* data, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i >= n - 1) return;
  J e = of_indptr[i];
  const J end = of_indptr[i + 1];
  for (I k = indptr[i]; k < indptr[i + 1]; ++k) {
    while (e < end && of_indices[e] < indices[k]) ++e;
    data[k] = e < end && of_indices[e] == indices[k] ? of_data[e] : T(0);
  }
}
