// Incomplete Cholesky on a GPU: by levels, a thread a row, and by fixed-point sweeps, a thread an entry. The factor's form is
// that of ic.py: CSR, the diagonal last in its row.
#include "context.cuh"

// The sum of l_im conj(l_jm) over m < j, by merging rows i and j.
template <class T, class I> DEVICE T common(const I* indptr, const I* indices, const T* values, I i, I j) {
  T total(0);
  I p = indptr[i], q = indptr[j];
  const I p_end = indptr[i + 1], q_end = indptr[j + 1];
  while (p < p_end && q < q_end) {
    const I a = indices[p], b = indices[q];
    if (a >= j || b >= j) break;
    if (a == b) total = fused(values[p], conj(values[q]), total);
    p += a <= b;
    q += b <= a;
  }
  return total;
}

template <class T, class I> DEVICE void factor_row(const I* indptr, const I* indices, const T* data, T* values,
                                                   real_t<T>* inverse, I i, double shift, double tiny, long long* bad) {
  using R = real_t<T>;
  const I begin = indptr[i], end = indptr[i + 1] - 1;
  const R diagonal = real(data[end]) * R(1 + shift);
  R pivot = diagonal;
  for (I k = begin; k < end; ++k) {
    const I j = indices[k];
    const T l = (data[k] - common(indptr, indices, values, i, j)) * inverse[j];
    values[k] = l;
    pivot -= abs2(l);
  }
  if (!(pivot > R(tiny) * diagonal)) {
    atomicMin(bad, (long long)i);
    pivot = R(1);
  }
  const R root = sqrt(pivot);
  values[end] = T(root);
  inverse[i] = R(1) / root;
}

// launch: elements of level_rows, 128 threads
template <typename T, typename I> __global__ void factor_level(Context* ctx, const I* indptr, const I* indices,
    const T* data, T* values, real_t<T>* inverse, const I* level_rows, double shift, double tiny, long long* bad, long long n) {
  const long long t = thread_id();
  if (stopped(ctx) || t >= n) return;
  factor_row(indptr, indices, data, values, inverse, level_rows[t], shift, tiny, bad);
}

// Many narrow levels by one block.
// launch: one block of 512 threads
template <typename T, typename I> __global__ void __launch_bounds__(512) factor_levels(Context* ctx,
    const I* indptr, const I* indices, const T* data, T* values, real_t<T>* inverse, const I* sequence, const I* bounds,
    double shift, double tiny, long long* bad, long long bounds_size) {
  if (stopped(ctx)) return;
  for (int l = 0; l + 1 < bounds_size; ++l) {
    for (I p = bounds[l] + threadIdx.x; p < bounds[l + 1]; p += blockDim.x)
      factor_row(indptr, indices, data, values, inverse, sequence[p], shift, tiny, bad);
    __syncthreads();
  }
}

// launch: elements of data, 256 threads
template <typename T, typename I> __global__ void fixed_point(Context* ctx, const I* indptr, const I* indices,
    const I* entry_rows, const T* data, const T* old, T* fresh, double shift, double tiny, long long* bad, long long n) {
  using R = real_t<T>;
  const long long k = thread_id();
  if (stopped(ctx) || k >= n) return;
  const I i = entry_rows[k], j = indices[k];
  const T total = common(indptr, indices, old, i, j);
  if (i != j) {
    fresh[k] = (data[k] - total) * (R(1) / real(old[indptr[j + 1] - 1]));
    return;
  }
  const R diagonal = real(data[k]) * R(1 + shift), pivot = diagonal - real(total);
  const bool good = pivot > R(tiny) * diagonal;
  fresh[k] = T(good ? sqrt(pivot) : real(old[k]));
  if (!good) atomicMin(bad, (long long)i);
}
