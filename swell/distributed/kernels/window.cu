// Matrices whose columns are numbered in a window, on a GPU; amg/window.py describes windows. A thread has a row.
#include "context.cuh"

// Rows in window order, from the diagonal block and the ghost columns. at[i]: the row of `rest` for row i, -1 for none.
// launch: elements of at, 256 threads
template <typename T, typename I, typename J>
__global__ void join(Context* ctx, const I* own_indptr, const I* own_indices, const T* own_data, const int* at, const J* rest_indptr,
                     const J* rest_indices, const T* rest_data, long long below, const I* indptr, I* indices, T* data, long long n) {
  const long long i = thread_id();
  if (stopped(ctx) || i >= n) return;
  long long k = indptr[i], t = 0, end = 0;
  if (at[i] >= 0) t = rest_indptr[at[i]], end = rest_indptr[at[i] + 1];
  for (; t < end && rest_indices[t] < below; ++t, ++k) indices[k] = I(rest_indices[t]), data[k] = rest_data[t];
  for (long long s = own_indptr[i]; s < own_indptr[i + 1]; ++s, ++k) indices[k] = I(own_indices[s] + below), data[k] = own_data[s];
  for (; t < end; ++t, ++k) indices[k] = I(rest_indices[t] + n), data[k] = rest_data[t];
}

// counts[i] = the number of entries of row i in columns outside low … high - 1; touched[i] = 1 if there are some.
// launch: elements of counts, 256 threads
template <typename I>
__global__ void outside(Context* ctx, const I* indptr, const I* indices, long long low, long long high, I* counts,
                        unsigned char* touched, long long n) {
  const long long i = thread_id();
  if (stopped(ctx) || i >= n) return;
  long long count = 0;
  for (long long k = indptr[i]; k < indptr[i + 1]; ++k) count += indices[k] < low || indices[k] >= high;
  counts[i] = I(count);
  touched[i] = count > 0;
}

// Split a matrix into the columns low … high - 1, renumbered from 0, and the others, numbered without them.
// launch: elements of own_indptr, 256 threads
template <typename T, typename I>
__global__ void split(Context* ctx, const I* indptr, const I* indices, const T* data, long long low, long long high, const I* outs,
                      const I* places, const I* own_indptr, I* own_indices, T* own_data, int* rows, int* rest_indptr, int* rest_indices,
                      T* rest_data, long long n) {
  const long long i = thread_id();
  if (stopped(ctx) || i + 1 >= n) return;                      // n: the rows and one
  long long own = own_indptr[i], rest = outs[i];
  const long long place = places[i];
  if (places[i + 1] > place) rows[place] = int(i), rest_indptr[place + 1] = int(outs[i + 1]);
  for (long long k = indptr[i]; k < indptr[i + 1]; ++k) {
    const long long j = indices[k];
    if (low <= j && j < high) own_indices[own] = I(j - low), own_data[own++] = data[k];
    else rest_indices[rest] = int(j < low ? j : j - (high - low)), rest_data[rest++] = data[k];
  }
}

// Copy the given rows of a matrix, one after the other: row rows[r] to starts[r].
// launch: elements of rows, 256 threads
template <typename T, typename I>
__global__ void copy_rows(Context* ctx, const I* rows, const I* indptr, const I* indices, const T* data, const I* starts, I* out_indices,
                          T* out_data, long long n) {
  const long long r = thread_id();
  if (stopped(ctx) || r >= n) return;
  const long long begin = indptr[rows[r]], end = indptr[rows[r] + 1], to = starts[r];
  for (long long k = begin; k < end; ++k) out_indices[to + k - begin] = indices[k], out_data[to + k - begin] = data[k];
}

// Columns of one window in the numbers of another: j + shift for own columns, moved[g] for ghost g.
// launch: elements of indices, 256 threads
template <typename I>
__global__ void renumber(Context* ctx, const I* indices, long long low, long long high, long long shift, const I* moved, I* out,
                         long long n) {
  const long long k = thread_id();
  if (stopped(ctx) || k >= n) return;
  const long long j = indices[k];
  out[k] = low <= j && j < high ? I(j + shift) : moved[j < low ? j : j - (high - low)];
}
