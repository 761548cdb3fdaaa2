// Products C = A B on a GPU, run by run. A run is consecutive rows of A with equal columns, such as the unknowns of a
// mesh point: their rows of C have equal columns, too. product.cu finds these columns for the first row of each run;
// here each row of B is read once for all rows of a run. formats/runs.py calls these kernels, product.cpp has a CPU's.
#include "binned.cuh"

constexpr int TOGETHER = 8;       // most rows of a run, as in product.cpp
constexpr int PERIOD = 24;        // each multiple begins a run: blocks of 2, 3, 4, 6, 8 or 12 unknowns are not cut
constexpr int POOL = 49152;       // bytes of shared memory

// same[i] = 1 if row i has the columns of row i - 1, else 0; 0 at each multiple of PERIOD.
// launch: elements of same, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I>
__global__ void same_columns(Context* ctx, const I* indptr, const I* indices, unsigned char* same, long long n,
    long long indices_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, indices_size), [&](const Portion& p) {
    const bool joins = p.there && p.row % PERIOD;
    const long long apart = joins ? p.begin - (long long)indptr[p.row - 1] : -1;
    bool differs = apart != p.end - p.begin;
    for (long long k = p.begin + p.part; !differs && k < p.end; k += p.lanes)
      differs = indices[k] != indices[k - apart];
    differs = any_lane(differs, p.lanes);
    if (p.there && p.part == 0) same[p.row] = !differs;
  });
}

// first[i] = 1 if row i is the first of a run, and lengths[i] = its entries; else both 0.
// launch: elements of same, 256 threads
template <typename I>
__global__ void first_rows(Context* ctx, const unsigned char* same, const I* indptr, unsigned char* first, I* lengths,
    long long n) {
  const long long i = thread_id();
  if (stopped(ctx) || i >= n) return;
  int back = 0;
  while (same[i - back]) ++back;
  first[i] = back % TOGETHER == 0;
  lengths[i] = first[i] ? indptr[i + 1] - indptr[i] : I(0);
}

// For each run: its first row, the row pointers of the first rows alone, and where A has the row's columns. ``numbers``
// and ``starts`` are the prefix sums of ``first`` and of the lengths. rows and indptr have one entry more.
// launch: elements of first, 256 threads
template <typename I>
__global__ void place_runs(Context* ctx, const unsigned char* first, const I* numbers, const I* starts,
    const I* a_indptr, I* rows, I* indptr, long long* sources, long long n) {
  const long long i = thread_id();
  if (stopped(ctx) || i >= n) return;
  if (first[i]) {
    const I run = numbers[i];
    rows[run] = I(i);
    indptr[run] = starts[i];
    sources[run] = a_indptr[i];
  }
  if (i == n - 1) rows[numbers[n]] = I(n), indptr[numbers[n]] = starts[n];
}

// For each row of C: its length, and where its run's columns begin. For each run: the entries of all its rows.
// launch: elements of lengths, 256 threads
template <typename I>
__global__ void spread(Context* ctx, const I* numbers, const I* rows, const I* counts, const long long* starts,
    I* lengths, long long* sources, I* sizes, long long n) {
  const long long i = thread_id();
  if (stopped(ctx) || i >= n) return;
  const I run = numbers[i + 1] - 1;
  lengths[i] = counts[run];
  sources[i] = starts[run];
  if (rows[run] == i) sizes[run] = counts[run] * (rows[run + 1] - I(i));
}

// Add the rows `from` to `to` - 1 of a run times B to `sums`; row r has `length` sums, from sums[r * length] on. The
// run begins at `row` of A. `lanes` threads share a row of B, and call sync() after it.
template <class T, class I, class N, class Place, class Sync>
DEVICE void add_rows(const I* a_indptr, const I* a_indices, const T* a_data, const I* b_indptr, const I* b_indices,
    const T* b_data, long long row, int from, int to, int lane, int lanes, N length, T* sums, Place place_of,
    Sync sync) {
  const Span<I> of_a(a_indptr, row);
  const long long entries = of_a.end - of_a.begin;
  const auto of_b = [&](long long k) { return Span<I>(b_indptr, k < of_a.end ? (long long)a_indices[k] : -1ll); };
  Span<I> present = of_b(of_a.begin);
  for (long long k = of_a.begin; k < of_a.end; ++k) {
    const Span<I> following = of_b(k + 1);
    T a[TOGETHER];
#pragma unroll
    for (int r = 0; r < TOGETHER; ++r) a[r] = from + r < to ? a_data[k + (from + r) * entries] : T(0);
    for (long long entry = (long long)present.begin + lane; entry < present.end; entry += lanes) {
      const T b = b_data[entry];
      T* const sum = sums + from * length + place_of(b_indices[entry]);
#pragma unroll
      for (int r = 0; r < TOGETHER; ++r)
        if (from + r < to) sum[r * length] = unfused(a[r], b, sum[r * length]);
    }
    sync();
    present = following;
  }
}

// data = the values of C on its known pattern. ``rows``: the first row of each run, and the number of rows. ``binned``:
// the runs sorted by bins, which begin at ``bounds``.
// launch: 4 blocks per multiprocessor of 256 threads
template <typename T, typename I, typename P>
__global__ void __launch_bounds__(256, 4) values(Context* ctx, const I* a_indptr, const I* a_indices, const T* a_data,
    const I* b_indptr, const I* b_indices, const T* b_data, const I* rows, const I* binned, const long long* bounds,
    const P* indptr, const P* indices, T* data) {
  if (stopped(ctx)) return;
  constexpr int EACH = POOL / THREADS / int(sizeof(T) + sizeof(P));                   // sums of a lane
  __shared__ alignas(16) unsigned char pool[POOL];
  T* const all_sums = reinterpret_cast<T*>(pool);
  P* const all_keys = reinterpret_cast<P*>(pool + THREADS * EACH * sizeof(T));
  for_rows(
      binned, bounds,
      [&](long long run, int lanes) {
        const long long row = run < 0 ? -1 : (long long)rows[run];
        const Span<P> of_c(indptr, row);
        const int count = run < 0 ? 0 : int(rows[run + 1] - row), length = int(of_c.end - of_c.begin);
        const int lane = lane_of(lanes), own = (threadIdx.x - lane) * EACH;
        const unsigned group = (~0u >> (32 - lanes)) << (threadIdx.x % 32 - lane);
        T* const sums = all_sums + own;
        P* const keys = all_keys + own;
        for (int x = lane; x < length; x += lanes) keys[x] = indices[of_c.begin + x];
        for (int x = lane; x < count * length; x += lanes) sums[x] = T(0);
        __syncwarp();
        add_rows(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, row, 0, count, lane, lanes, length, sums,
            [&](I column) { return first_from(keys, 0, length, column); }, [&] { __syncwarp(group); });
        __syncwarp();
        for (int x = lane; x < count * length; x += lanes) data[of_c.begin + x] = sums[x];
        __syncwarp();
      },
      [&](long long run) {
        const long long row = rows[run], count = rows[run + 1] - row;
        const Span<P> of_c(indptr, row);
        const long long length = of_c.end - of_c.begin;
        const bool keys_fit = length <= THREADS * EACH, fits = count * length <= THREADS * EACH;
        T* const sums = fits ? all_sums : data + of_c.begin;
        const P* const keys = keys_fit ? all_keys : indices + of_c.begin;
        for (long long x = threadIdx.x; keys_fit && x < length; x += THREADS) all_keys[x] = indices[of_c.begin + x];
        for (long long x = threadIdx.x; x < count * length; x += THREADS) sums[x] = T(0);
        __syncthreads();
        const int parts = count > TOGETHER / 2 ? 2 : 1, lanes = THREADS / parts;   // of the rows, each with its lanes
        const int each = TOGETHER / parts, from = threadIdx.x / lanes * each;
        add_rows(a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, row, from, min(int(count), from + each),
            threadIdx.x % lanes, lanes, length, sums,
            [&](I column) { return first_from(keys, 0ll, length, column); }, [] { __syncthreads(); });
        for (long long x = threadIdx.x; fits && x < count * length; x += THREADS) data[of_c.begin + x] = sums[x];
        __syncthreads();
      });
}
