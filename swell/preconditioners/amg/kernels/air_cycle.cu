// The matrices of AIR's cycle on a GPU; see air_cycle.py one folder up. Setup is in double; V: the cycle's type.
#include "rows.cuh"

// diagonal[i] = aᵢᵢ, in modulus at least `least` times the row's largest |aᵢⱼ|; 1 for a row without a non-zero entry.
// launch: elements of diagonal, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I>
__global__ void relaxed_diagonal(Context* ctx, const I* indptr, const I* indices, const double* data, double least,
                                 double* diagonal, long long n, long long data_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, data_size), [&](const Portion& p) {
    double largest = 0, own = 0;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) {
      largest = fmax(largest, fabs(data[k]));
      if (indices[k] == p.row) own = data[k];
    }
    largest = lanes_max(largest, p.lanes);
    own = lanes_sum(own, p.lanes);
    if (!p.there || p.part) return;
    if (largest == 0) own = 1;
    else if (fabs(own) < least * largest) own = own < 0 ? -least * largest : least * largest;
    diagonal[p.row] = own;
  });
}

// The place of each row in the order of the cycle, and the row at each place: fine rows first, in their order, then
// from `begin` on the coarse rows, each coarse_places of its number further on. `rows` must hold −1 beforehand.
// launch: elements of state, 256 threads
template <typename I>
__global__ void places(Context* ctx, const unsigned char* state, const I* numbers, const I* coarse_places,
    long long begin, I* own_places, I* rows, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i >= n) return;
  const long long at = state[i] == COARSE ? begin + coarse_places[numbers[i]] : i - numbers[i];
  own_places[i] = I(at);
  rows[at] = I(i);
}

// lengths[r] = the number of entries of row rows[r] of a CSR matrix; 0 for −1.
// launch: elements of rows, 256 threads
template <typename I, typename P>
__global__ void picked_lengths(Context* ctx, const P* indptr, const I* rows, int* lengths, long long n) {
  if (stopped(ctx)) return;
  const long long r = thread_id();
  if (r < n) lengths[r] = rows[r] >= 0 ? int(indptr[rows[r] + 1] - indptr[rows[r]]) : 0;
}

// Row r of a new CSR pattern: row rows[r] of the given one, its columns renumbered by `columns`.
// launch: elements of rows, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I, typename P, typename J>
__global__ void pick_columns(Context* ctx, const P* indptr, const P* indices, const I* rows, const I* columns,
                             const J* to_indptr, J* to_indices, long long n, long long to_indices_size) {
  if (stopped(ctx)) return;
  visit_all(to_indptr, n, lanes_for(n, to_indices_size), [&](const Portion& p) {
    if (!p.there || rows[p.row] < 0) return;
    const long long from = (long long)indptr[rows[p.row]] - p.begin;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) to_indices[k] = J(columns[indices[from + k]]);
  });
}

// The values of row r of a new matrix: eⱼ − row i of the given one divided by diagonal[i], with i = rows[r] and eⱼ the
// unit vector of column j = parents[i], nothing for −1.
// launch: elements of rows, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I, typename P, typename J, typename V>
__global__ void pick_complement(Context* ctx, const P* indptr, const P* indices, const double* data, const I* rows,
                                const double* diagonal, const I* parents, const J* to_indptr, V* to_data, long long n,
                                long long to_data_size) {
  if (stopped(ctx)) return;
  visit_all(to_indptr, n, lanes_for(n, to_data_size), [&](const Portion& p) {
    if (!p.there || rows[p.row] < 0) return;
    const long long i = rows[p.row], from = (long long)indptr[i] - p.begin, parent = parents[i];
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes)
      to_data[k] = V((indices[from + k] == parent ? 1.0 : 0.0) - data[from + k] / diagonal[i]);
  });
}

// The values of row r of a new matrix: row i = rows[r] of the given one, its columns multiplied by `fine` and divided
// by coarse[i].
// launch: elements of rows, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I, typename P, typename J, typename V>
__global__ void pick_balanced(Context* ctx, const P* indptr, const P* indices, const double* data, const I* rows,
                              const double* fine, const double* coarse, const J* to_indptr, V* to_data, long long n,
                              long long to_data_size) {
  if (stopped(ctx)) return;
  visit_all(to_indptr, n, lanes_for(n, to_data_size), [&](const Portion& p) {
    if (!p.there || rows[p.row] < 0) return;
    const long long i = rows[p.row], from = (long long)indptr[i] - p.begin;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes)
      to_data[k] = V(data[from + k] * fine[indices[from + k]] / coarse[i]);
  });
}

// y[places[i]] = factor[0] x[i], divided by diagonal[i] if `divide`.
// launch: elements of places, 256 threads
template <typename T, typename I, typename V>
__global__ void enter(Context* ctx, const T* x, const I* places, const double* diagonal, bool divide,
    const double* factor, V* y, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i < n) y[places[i]] = V(real_t<T>(divide ? factor[0] / diagonal[i] : factor[0]) * x[i]);
}

// out[i] = alpha y[places[i]] / factor[0] + beta out[i], y divided by diagonal[i] too if `divide`; beta = 0 never reads
// out.
// launch: elements of places, 256 threads
template <typename T, typename I, typename V>
__global__ void leave(Context* ctx, const V* y, const I* places, const double* diagonal, bool divide,
    const double* factor, T* out, T alpha, T beta, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i >= n) return;
  const T value = alpha * (real_t<T>(divide ? 1 / factor[0] / diagonal[i] : 1 / factor[0]) * T(y[places[i]]));
  out[i] = beta == T(0) ? value : value + beta * out[i];
}
