// Matrices whose columns are numbered in a window, on a GPU; amg/window.py describes windows.
#include "rows.cuh"

// Rows in window order, from the diagonal block and the ghost columns. at[i]: the row of `rest` for row i, -1 for none.
// launch: elements of at, 256 threads
template <typename T, typename I, typename J>
__global__ void join(Context* ctx, const I* own_indptr, const I* own_indices, const T* own_data, const int* at,
    const J* rest_indptr, const J* rest_indices, const T* rest_data, long long below, const I* indptr, I* indices,
    T* data, long long n) {
  const long long i = thread_id();
  if (stopped(ctx) || i >= n) return;
  long long k = indptr[i], t = 0, end = 0;
  if (at[i] >= 0) t = rest_indptr[at[i]], end = rest_indptr[at[i] + 1];
  for (; t < end && rest_indices[t] < below; ++t, ++k) indices[k] = I(rest_indices[t]), data[k] = rest_data[t];
  for (long long s = own_indptr[i]; s < own_indptr[i + 1]; ++s, ++k) indices[k] = I(own_indices[s] + below),
      data[k] = own_data[s];
  for (; t < end; ++t, ++k) indices[k] = I(rest_indices[t] + n), data[k] = rest_data[t];
}

// counts[i] = the number of entries of row i in columns outside low … high - 1; touched[i] = 1 if there are some.
// launch: elements of counts, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I>
__global__ void outside(Context* ctx, const I* indptr, const I* indices, long long low, long long high, I* counts,
                        unsigned char* touched, long long n, long long indices_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, indices_size), [&](const Portion& p) {
    int count = 0;
    for (long long k = p.begin + p.part; any_left(p, k); k += p.lanes)
      count += __popc(lane_votes(k < p.end && (indices[k] < low || indices[k] >= high), p.lanes));
    if (p.there && p.part == 0) counts[p.row] = I(count), touched[p.row] = count > 0;
  });
}

// Split a matrix into the columns low … high - 1, renumbered from 0, and the others, numbered without them. The lanes
// of a row copy it together if it has own columns alone; else one of them copies it.
// launch: elements of own_indptr, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename T, typename I>
__global__ void split(Context* ctx, const I* indptr, const I* indices, const T* data, long long low, long long high,
    const I* outs, const I* places, const I* own_indptr, I* own_indices, T* own_data, int* rows, int* rest_indptr,
    int* rest_indices, T* rest_data, long long n, long long indices_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n - 1, lanes_for(n, indices_size), [&](const Portion& p) {      // n: the rows and one
    if (!p.there) return;
    long long own = own_indptr[p.row], rest = outs[p.row];
    const long long place = places[p.row];
    if (places[p.row + 1] == place) {
      for (long long k = p.begin + p.part; k < p.end; k += p.lanes)
        own_indices[own + k - p.begin] = I(indices[k] - low), own_data[own + k - p.begin] = data[k];
      return;
    }
    if (p.part) return;
    rows[place] = int(p.row);
    rest_indptr[place + 1] = int(outs[p.row + 1]);
    for (long long k = p.begin; k < p.end; ++k) {
      const long long j = indices[k];
      if (low <= j && j < high) own_indices[own] = I(j - low), own_data[own++] = data[k];
      else rest_indices[rest] = int(j < low ? j : j - (high - low)), rest_data[rest++] = data[k];
    }
  });
}

// Copy the given rows of a matrix, one after the other: row rows[r] to starts[r].
// launch: elements of rows, 256 threads
template <typename T, typename I>
__global__ void copy_rows(Context* ctx, const I* rows, const I* indptr, const I* indices, const T* data,
    const I* starts, I* out_indices, T* out_data, long long n) {
  const long long r = thread_id();
  if (stopped(ctx) || r >= n) return;
  const long long begin = indptr[rows[r]], end = indptr[rows[r] + 1], to = starts[r];
  for (long long k = begin; k < end; ++k) out_indices[to + k - begin] = indices[k], out_data[to + k - begin] = data[k];
}

// Columns of one window in the numbers of another: j + shift for own columns, moved[g] for ghost g.
// launch: elements of indices, 256 threads
template <typename I>
__global__ void renumber(Context* ctx, const I* indices, long long low, long long high, long long shift, const I* moved,
    I* out, long long n) {
  const long long k = thread_id();
  if (stopped(ctx) || k >= n) return;
  const long long j = indices[k];
  out[k] = low <= j && j < high ? I(j + shift) : moved[j < low ? j : j - (high - low)];
}

// marked[g] = 1 for each ghost g that is a column of an entry; columns low … high - 1 are own ones. All writers write
// 1.
// launch: elements of indices, 256 threads
template <typename I>
__global__ void mark_ghosts(Context* ctx, const I* indices, long long low, long long high, unsigned char* marked,
    long long n) {
  const long long k = thread_id();
  if (stopped(ctx) || k >= n) return;
  const long long j = indices[k];
  if (j < low || j >= high) marked[j < low ? j : j - (high - low)] = 1;
}

// How many of the ascending numbers are less than value.
DEVICE long long lower_bound(const long long* numbers, long long count, long long value) {
  long long low = 0, high = count;
  while (low < high) {
    const long long middle = (low + high) / 2;
    if (numbers[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The place in a window of each global number: own ones from place `below` on, ghosts around them.
// launch: elements of numbers, 256 threads
template <typename I>
__global__ void places(Context* ctx, const long long* numbers, long long first, long long stop, long long below,
    const long long* ghosts, I* out, long long n, long long ghosts_size) {
  const long long k = thread_id();
  if (stopped(ctx) || k >= n) return;
  const long long g = numbers[k];
  out[k] = I(first <= g && g < stop ? g - first + below : lower_bound(ghosts, ghosts_size, g)
      + (g < first ? 0 : stop - first));
}

// The global number at each place of a window.
// launch: elements of places, 256 threads
template <typename I>
__global__ void global_numbers(Context* ctx, const I* places, long long first, long long stop, long long below,
    const long long* ghosts, long long* out, long long n) {
  const long long k = thread_id();
  if (stopped(ctx) || k >= n) return;
  const long long at = places[k], own = stop - first;
  out[k] = below <= at && at < below + own ? at - below + first : ghosts[at < below ? at : at - own];
}

// marked[k] = 1 if numbers[k] lies in first … stop - 1; the reverse if not inside.
// launch: elements of numbers, 256 threads
template <typename I>
__global__ void mark_range(Context* ctx, const I* numbers, long long first, long long stop, bool inside,
    unsigned char* marked, long long n) {
  const long long k = thread_id();
  if (stopped(ctx) || k >= n) return;
  marked[k] = (first <= numbers[k] && numbers[k] < stop) == inside;
}

// marked[k] = 1 if numbers[k] is the first of its value.
// launch: elements of numbers, 256 threads
template <typename T>
__global__ void mark_first(Context* ctx, const long long* numbers, unsigned char* marked, long long n) {
  const long long k = thread_id();
  if (stopped(ctx) || k >= n) return;
  marked[k] = k == 0 || numbers[k] != numbers[k - 1];
}

// The marked elements of values, to out; starts: the prefix sums of marked.
// launch: elements of marked, 256 threads
template <typename I, typename V>
__global__ void select(Context* ctx, const unsigned char* marked, const I* starts, const V* values, V* out,
    long long n) {
  const long long k = thread_id();
  if (!stopped(ctx) && k < n && marked[k]) out[starts[k]] = values[k];
}
