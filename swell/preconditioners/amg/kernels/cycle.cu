// The matrices of a cycle, and its products, on a GPU; see balancing.py one folder up. Setup is in double precision, T
// being double or its complex type; V: the cycle's type.
//
// Products are rounded before they are subtracted, and sums take the entries in their order: the bits equal a CPU's.
#include "modulus.cuh"
#include "rows.cuh"
#include "sliced.cuh"

// scales[i] = √(ω / Σⱼ |aᵢⱼ|); 1 for an empty row.
// launch: elements of scales, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename T, typename I>
__global__ void l1_scales(Context* ctx, const I* indptr, const T* data, double omega, double* scales, long long n,
                          long long data_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, data_size), [&](const Portion& p) {
    double moduli = 0;
    for (long long k = p.begin + p.part; any_left(p, k); k += p.lanes)
      add_in_order(moduli, k < p.end ? modulus(data[k]) : 0, p.lanes);
    if (p.there && p.part == 0) scales[p.row] = moduli > 0 ? sqrt(omega / moduli) : 1.0;
  });
}

// left a right, rounded after each product.
DEVICE double scaled(double left, double a, double right) { return __dmul_rn(left * a, right); }
DEVICE double times(double a, double by) { return a * by; }
template <class R> DEVICE complex<R> times(complex<R> a, double by) { return {R(a.re * by), R(a.im * by)}; }
template <class R> DEVICE complex<R> scaled(double left, complex<R> a, double right) {
  return {R(__dmul_rn(left * a.re, right)), R(__dmul_rn(left * a.im, right))};
}

// out = the values of S = I − D A D with D = diag(scales).
// launch: elements of scales, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename T, typename I, typename V>
__global__ void smoothing_matrix(Context* ctx, const I* indptr, const I* indices, const T* data, const double* scales,
    V* out, long long n, long long data_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, data_size), [&](const Portion& p) {
    const double own = p.there ? scales[p.row] : 0.0;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) {
      const I j = indices[k];
      out[k] = V(T(j == p.row ? 1.0 : 0.0) - scaled(own, data[k], scales[j]));
    }
  });
}

// out = the values of diag(fine)⁻¹ P diag(coarse); 0 in rows with fine[i] = 0.
// launch: elements of fine, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I, typename V>
__global__ void balance(Context* ctx, const I* indptr, const I* indices, const double* data, const double* fine,
                        const double* coarse, V* out, long long n, long long data_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, data_size), [&](const Portion& p) {
    const double own = p.there ? fine[p.row] : 1.0;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes)
      out[k] = V(own > 0 ? data[k] / own * coarse[indices[k]] : 0.0);
  });
}

// out = the values of diag(coarse) R diag(fine)⁻¹; 0 in columns with fine[j] = 0.
// launch: elements of coarse, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I, typename V>
__global__ void balance_restriction(Context* ctx, const I* indptr, const I* indices, const double* data,
    const double* fine, const double* coarse, V* out, long long n, long long data_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, data_size), [&](const Portion& p) {
    const double own = p.there ? coarse[p.row] : 0.0;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) {
      const double its = fine[indices[k]];
      out[k] = V(its > 0 ? own * data[k] / its : 0.0);
    }
  });
}

// out = the values of Q = (D⁻¹ P − D A P) D_c on the pattern of A P, which contains P's pattern.
// launch: elements of fine, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename T, typename I, typename P, typename V>
__global__ void smoothed_interpolation(Context* ctx, const I* indptr, const I* indices, const T* data,
    const P* p_indptr, const P* p_indices, const double* p_data, const double* fine, const double* coarse, V* out,
    long long n, long long data_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, data_size), [&](const Portion& p) {
    if (!p.there) return;
    const double own = fine[p.row];
    const long long first = p_indptr[p.row], last = p_indptr[p.row + 1];
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) {
      const long long column = indices[k];
      double value = 0;
      for (long long at = first; at < last; ++at)
        if (p_indices[at] == column) value = own > 0 ? p_data[at] / own : 0.0;
      out[k] = V(times(T(value) - scaled(own, data[k], 1.0), coarse[column]));
    }
  });
}

// aᵢᵢ, 0 if it is not stored.
template <class T, class I> DEVICE T diagonal_entry(long long i, const I* indptr, const I* indices, const T* data) {
  for (long long k = indptr[i]; k < indptr[i + 1]; ++k)
    if (indices[k] == i) return data[k];
  return T(0);
}

// scales[r] = 0 for a row r of the next level whose diagonal entry there is at most `singular` times Σ (p_ir /
// fine_i)².
// launch: elements of scales, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename T, typename I, typename P>
__global__ void drop_rounding(Context* ctx, const I* indptr, const I* indices, const double* data, const double* fine,
                              const P* c_indptr, const P* c_indices, const T* c_data, double singular, double* scales,
                              long long n, long long data_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, data_size), [&](const Portion& p) {
    double bound = 0;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) {
      const double own = fine[indices[k]], part = own > 0 ? data[k] / own : 0.0;
      bound += part * part;
    }
    bound = lanes_sum(bound, p.lanes);
    if (p.there && p.part == 0 && modulus(diagonal_entry(p.row, c_indptr, c_indices, c_data)) <= singular * bound)
      scales[p.row] = 0;
  });
}

// A lane's share of row i: its entry k, every 32nd of the row. Nothing is loaded for a row that is not `there`.
template <class T, class I> struct Share {
  const I* indices;
  const T* data;
  long long k, end;
  I column;
  T value;
  DEVICE Share(const I* indptr, const I* indices, const T* data, long long i, bool there)
      : indices(indices), data(data), k(there ? indptr[i] + threadIdx.x % 32 : 0), end(there ? indptr[i + 1] : 0),
        column(k < end ? indices[k] : I(0)), value(k < end ? data[k] : T(0)) {}
  DEVICE void next() {
    if ((k += 32) < end) column = indices[k], value = data[k];
  }
};

// Add to sum: a share of a row times rows of x.
template <int WIDTH, class T, class I> DEVICE void add_entries(Share<T, I> of_row, const T* x, T (&sum)[WIDTH]) {
  for (; of_row.k < of_row.end; of_row.next())
#pragma unroll
    for (int c = 0; c < WIDTH; ++c)
      sum[c] = fused(of_row.value, x[(long long)of_row.column * WIDTH + c], sum[c]);
}

// Sum over the warp; every lane gets the result.
template <int WIDTH, class T> DEVICE void add_lanes(T (&sum)[WIDTH]) {
#pragma unroll
  for (int c = 0; c < WIDTH; ++c)
    for (int o = 16; o; o >>= 1) sum[c] = sum[c] + shuffle_xor(sum[c], o);
}

// Load entry k and each `lanes`-th entry after it, up to `end`.
template <class T, class I>
DEVICE Batch<T, I> entries_from(const I* indices, const T* data, long long k, long long end, int lanes) {
  Batch<T, I> batch;
#pragma unroll
  for (int e = 0; e < batch.SIZE; ++e, k += lanes) {
    batch.column[e] = k < end ? indices[k] : I(-1);
    if (k < end) batch.value[e] = data[k];
  }
  return batch;
}

// y = alpha A x + beta z + gamma w, A in CSR; beta = 0 never reads z, which may be y. `lanes` threads share a row, a
// power of two up to 32. Each loads its first entries together, while the preceding kernel ends.
// launch: elements of y, 256 threads, lanes threads each
template <typename T, typename I>
__global__ void __launch_bounds__(256) shared_rows(Context* ctx, const I* indptr, const I* indices, const T* data,
    int lanes, const T* x, T alpha, T beta, T gamma, const T* z, const T* w, T* y, long long n) {
  let_next_start();
  const long long row = thread_id() / lanes;
  const int part = threadIdx.x % lanes;
  const bool there = row < n;
  long long k = there ? (long long)indptr[row] + part : 0;
  const long long end = there ? (long long)indptr[row + 1] : 0;
  Batch<T, I> batch = entries_from(indices, data, k, end, lanes);
  if (stopped(ctx)) return;
  T sum(0);
  for (;;) {
    sum = accumulate(batch, x, sum);
    if ((k += batch.SIZE * lanes) >= end) break;
    batch = entries_from(indices, data, k, end, lanes);
  }
  __syncwarp();
  for (int o = lanes / 2; o; o >>= 1) sum = sum + shuffle_xor(sum, o);
  if (part == 0 && there) y[row] = beta == T(0) ? alpha * sum : with_vectors(alpha * sum, z, beta, w, gamma, row);
}

// shared_rows for several columns; the lanes of a row share them at the end.
// launch: elements of y, 256 threads, lanes threads each
template <typename T, typename I, int TILE>
__global__ void __launch_bounds__(256, Room<T, TILE>::threads / 256) shared_rows_columns(Context* ctx, const I* indptr,
    const I* indices, const T* data, int lanes, const T* x, T alpha, T beta, T gamma, const T* z, const T* w, T* y,
    int tile, int vectors, long long n, long long x_step, long long z_step, long long w_step, long long y_step) {
  let_next_start();
  const long long row = row_thread() / lanes;
  const int part = threadIdx.x % lanes, there = row < n;
  long long k = there ? (long long)indptr[row] + part : 0;
  const long long end = there ? (long long)indptr[row + 1] : 0;
  Batch<T, I> batch = entries_from(indices, data, k, end, lanes);
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped()) return;
  T sums[TILE];
  clear(sums);
  for (;;) {
    accumulate(own, batch, own.of(x, x_step), x_step, sums);
    if ((k += batch.SIZE * lanes) >= end) break;
    batch = entries_from(indices, data, k, end, lanes);
  }
  __syncwarp();
  y = own.of(y, y_step), z = own.of(z, z_step), w = own.of(w, w_step);
#pragma unroll
  for (int c = 0; c < TILE; ++c) {
    for (int o = lanes / 2; o; o >>= 1) sums[c] = sums[c] + shuffle_xor(sums[c], o);
    if (part != (c & (lanes - 1)) || !there || !own.runs(c)) continue;
    y[c * y_step + row] = beta == T(0) ? alpha * sums[c]
                                       : with_vectors(alpha * sums[c], z + c * z_step, beta, w + c * w_step, gamma,
                                           row);
  }
}

// add_entries for several columns of x, of which it takes one of the WIDTH numbers of each row; x points to that.
template <int WIDTH, int TILE, class T, class I>
DEVICE void add_entries(const Tile<TILE>& tile, Share<T, I> of_row, const T* x, long long step, T (&sums)[TILE]) {
#pragma unroll 1
  for (; of_row.k < of_row.end; of_row.next())
    add_entry(tile, of_row.value, x, step, (long long)of_row.column * WIDTH, sums);
}

// Sum each column over the warp, with the additions of add_lanes: at each step a lane keeps half of its columns, and
// passes the others on. It gets the sum of one column, kept_column.
template <int TILE, class T> DEVICE T add_lanes_apart(T (&sums)[TILE]) {
  int o = 16, lane = threadIdx.x % 32;
#pragma unroll
  for (int half = TILE / 2; half; half /= 2, o /= 2)
#pragma unroll
    for (int c = 0; c < half; ++c) {
      const T passed = lane & o ? sums[c] : sums[c + half], kept = lane & o ? sums[c + half] : sums[c];
      sums[c] = kept + shuffle_xor(passed, o);
    }
  for (; o; o /= 2) sums[0] = sums[0] + shuffle_xor(sums[0], o);
  return sums[0];
}
template <int TILE> DEVICE int kept_column() { return threadIdx.x % 32 / (32 / TILE); }
// Does this lane write its sum?
template <int TILE>
DEVICE bool writes(const Tile<TILE>& t) { return threadIdx.x % (32 / TILE) == 0 && t.runs(kept_column<TILE>()); }

// y = the product of a CSR matrix with the WIDTH columns of x, whose rows are contiguous. A warp a row; it loads the
// first entries while the preceding kernel ends.
// launch: elements of y, 256 threads, a warp each
template <typename T, typename I, int WIDTH>
__global__ void rows_product(Context* ctx, const I* indptr, const I* indices, const T* data, int width, const T* x,
    T* y, long long y_size) {
  let_next_start();
  const long long i = thread_id() / 32, n = y_size / WIDTH;
  const bool there = i < n;
  const Share<T, I> of_row(indptr, indices, data, i, there);
  if (stopped(ctx) || !there) return;
  T sum[WIDTH] = {};
  add_entries(of_row, x, sum);
  add_lanes(sum);
  if (threadIdx.x % 32 == 0)
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) y[i * WIDTH + c] = sum[c];
}

// rows_product for several columns.
// launch: elements of y, 256 threads, a warp each
template <typename T, typename I, int WIDTH, int TILE>
__global__ void __launch_bounds__(256, Room<T, TILE>::threads / 256) rows_product_columns(Context* ctx, const I* indptr,
    const I* indices, const T* data, int width, const T* x, T* y, int tile, int vectors, long long y_size,
    long long x_step, long long y_step) {
  let_next_start();
  const long long i = row_thread() / 32, n = y_size / WIDTH;
  const bool there = i < n;
  const Share<T, I> of_row(indptr, indices, data, i, there);
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped() || !there) return;
  x = own.of(x, x_step), y = own.of(y, y_step) + kept_column<TILE>() * y_step;
#pragma unroll
  for (int c = 0; c < WIDTH; ++c) {
    T sums[TILE];
    clear(sums);
    add_entries<WIDTH>(own, of_row, x + c, x_step, sums);
    const T sum = add_lanes_apart(sums);
    if (writes(own)) y[i * WIDTH + c] = sum;
  }
}

// x = b + S b + Q coarse, WIDTH columns each. A warp a row, as above.
// launch: elements of x, 256 threads, a warp each
template <typename T, typename I, typename P, int WIDTH>
__global__ void correct(Context* ctx, const I* indptr, const I* indices, const T* data, const P* q_indptr,
    const P* q_indices, const T* q_data, int width, const T* b, const T* coarse, T* x, long long x_size) {
  let_next_start();
  const long long i = thread_id() / 32, n = x_size / WIDTH;
  const bool there = i < n;
  const Share<T, I> of_s(indptr, indices, data, i, there);
  const Share<T, P> of_q(q_indptr, q_indices, q_data, i, there);
  if (stopped(ctx) || !there) return;
  T sum[WIDTH] = {};
  add_entries(of_s, b, sum);
  add_entries(of_q, coarse, sum);
  add_lanes(sum);
  if (threadIdx.x % 32 == 0)
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) x[i * WIDTH + c] = b[i * WIDTH + c] + sum[c];
}

// correct for several columns.
// launch: elements of x, 256 threads, a warp each
template <typename T, typename I, typename P, int WIDTH, int TILE>
__global__ void __launch_bounds__(256, Room<T, TILE>::fewer / 256) correct_columns(Context* ctx, const I* indptr,
    const I* indices, const T* data, const P* q_indptr, const P* q_indices, const T* q_data, int width, const T* b,
    const T* coarse, T* x, int tile, int vectors, long long x_size, long long b_step, long long coarse_step,
    long long x_step) {
  let_next_start();
  const long long i = row_thread() / 32, n = x_size / WIDTH;
  const bool there = i < n;
  const Share<T, I> of_s(indptr, indices, data, i, there);
  const Share<T, P> of_q(q_indptr, q_indices, q_data, i, there);
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped() || !there) return;
  b = own.of(b, b_step), coarse = own.of(coarse, coarse_step), x = own.of(x, x_step);
  const int j = kept_column<TILE>();
#pragma unroll
  for (int c = 0; c < WIDTH; ++c) {
    T sums[TILE];
    clear(sums);
    add_entries<WIDTH>(own, of_s, b + c, b_step, sums);
    add_entries<WIDTH>(own, of_q, coarse + c, coarse_step, sums);
    const T sum = add_lanes_apart(sums);
    if (writes(own)) x[j * x_step + i * WIDTH + c] = b[j * b_step + i * WIDTH + c] + sum;
  }
}

// y = the product of a row-major square matrix with the WIDTH columns of x, whose rows are contiguous. A warp a row; it
// loads the first 128 bytes a lane of the matrix while the preceding kernel ends. The matrix stays in the second-level
// cache.
// launch: elements of x, 256 threads, a warp each
template <typename T, int WIDTH>
__global__ void __launch_bounds__(256) dense_product(Context* ctx, const T* matrix, int width, const T* x, T* y,
    long long x_size) {
  constexpr int AHEAD = 128 / sizeof(T);
  let_next_start();
  const long long i = thread_id() / 32, n = x_size / WIDTH;
  const int lane = threadIdx.x % 32;
  const T* row = matrix + i * n;
  T ahead[AHEAD], sum[WIDTH] = {};
#pragma unroll
  for (int e = 0; e < AHEAD; ++e) ahead[e] = i < n && lane + 32 * e < n ? row[lane + 32 * e] : T(0);
  if (stopped(ctx) || i >= n) return;
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
  add_lanes(sum);
  if (lane == 0)
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) y[i * WIDTH + c] = sum[c];
}

// dense_product for several columns.
// launch: elements of x, 256 threads, a warp each
template <typename T, int WIDTH, int TILE>
__global__ void __launch_bounds__(256, 2) dense_product_columns(Context* ctx, const T* matrix, int width, const T* x,
    T* y, int tile, int vectors, long long x_size, long long x_step, long long y_step) {
  constexpr int AHEAD = 128 / sizeof(T);
  let_next_start();
  const long long i = row_thread() / 32, n = x_size / WIDTH;
  const int lane = threadIdx.x % 32;
  const T* row = matrix + i * n;
  T ahead[AHEAD];
#pragma unroll
  for (int e = 0; e < AHEAD; ++e) ahead[e] = i < n && lane + 32 * e < n ? row[lane + 32 * e] : T(0);
  const Tile<TILE> own(ctx, vectors);
  if (own.stopped() || i >= n) return;
  x = own.of(x, x_step), y = own.of(y, y_step) + kept_column<TILE>() * y_step;
#pragma unroll
  for (int c = 0; c < WIDTH; ++c) {
    T sums[TILE];
    clear(sums);
#pragma unroll
    for (int e = 0; e < AHEAD; ++e)
      if (lane + 32 * e < n) add_entry(own, ahead[e], x + c, x_step, (lane + 32 * e) * WIDTH, sums);
#pragma unroll 2
    for (long long j = lane + 32 * AHEAD; j < n; j += 32) add_entry(own, row[j], x + c, x_step, j * WIDTH, sums);
    const T sum = add_lanes_apart(sums);
    if (writes(own)) y[i * WIDTH + c] = sum;
  }
}
