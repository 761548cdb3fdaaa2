// Local approximate ideal restriction on a GPU; local_restriction.py one folder up describes it. Values are double, as
// in every setup. Sums and choices take the entries in a CPU's order, so both devices find the same patterns.
#include "rows.cuh"

constexpr int MOST = 31;               // most unknowns of a local system: with the right-hand side, a column a lane
constexpr double SINGULAR = 1e-12;    // a pivot of at most this times the largest entry of its local system is rounding
constexpr int WARPS = 4;               // of a block that solves local systems, as in the launch of ideal_weights

// strong[k] = 1 if |aᵢⱼ| ≥ θ maxₖ |aᵢₖ| > 0 with j, k ≠ i for entry k, else 0.
// launch: elements of indptr, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I>
__global__ void strong_moduli(Context* ctx, const I* indptr, const I* indices, const double* data, double theta,
                              unsigned char* strong, long long n, long long data_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n - 1, lanes_for(n - 1, data_size), [&](const Portion& p) {
    double largest = 0;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes)
      if (indices[k] != p.row) largest = fmax(largest, fabs(data[k]));
    largest = lanes_max(largest, p.lanes);
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes)
      strong[k] = indices[k] != p.row && largest > 0 && fabs(data[k]) >= theta * largest;
  });
}

// parents[i] = the number of row i's strongest coarse column, the first of equal ones; its own number if row i is
// coarse, −1 if no strong link leads to a coarse row. lengths[i] = 0 for −1, else 1.
// launch: elements of state, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I>
__global__ void one_point(Context* ctx, const I* indptr, const I* indices, const double* data,
    const unsigned char* strong, const unsigned char* state, const I* numbers, I* parents, int* lengths, long long n,
    long long data_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, data_size), [&](const Portion& p) {
    double largest = 0;
    long long found = -1;                                      // a row of A
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes)
      if (strong[k] && state[indices[k]] == COARSE && fabs(data[k]) > largest) found = indices[k],
          largest = fabs(data[k]);
    for (int o = p.lanes / 2; o; o >>= 1) {
      const double its = __shfl_xor_sync(~0u, largest, o);
      const long long other = __shfl_xor_sync(~0u, found, o);
      if (its > largest || (its == largest && other >= 0 && other < found)) found = other, largest = its;
    }
    if (!p.there || p.part) return;
    const I parent = state[p.row] == COARSE ? numbers[p.row] : found < 0 ? I(-1) : numbers[found];
    parents[p.row] = parent;
    lengths[p.row] = parent >= 0;
  });
}

// indices[indptr[i]] = parents[i] for each row i that has a parent.
// launch: elements of parents, 256 threads
template <typename I, typename P>
__global__ void place_parents(Context* ctx, const I* parents, const P* indptr, P* indices, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i < n && parents[i] >= 0) indices[indptr[i]] = P(parents[i]);
}

// rows[numbers[i]] = i for each coarse row i.
// launch: elements of state, 256 threads
template <typename I>
__global__ void coarse_rows(Context* ctx, const unsigned char* state, const I* numbers, I* rows, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i < n && state[i] == COARSE) rows[numbers[i]] = I(i);
}

// The strong links of A to fine rows.
template <class I> struct FineLinks {
  const I *indptr, *indices;
  const double* data;
  const unsigned char *strong, *state;
  DEVICE bool has(long long k) const { return strong[k] && state[indices[k]] != COARSE; }
};

// Write to `found` the strong fine columns of row i, the largest |aᵢⱼ| first, at most MOST. A warp works together.
// Returns their number.
template <class I> DEVICE int nearest(const FineLinks<I>& A, long long i, I* found) {
  const int lane = threadIdx.x % 32;
  double limit = 0;
  long long after = -1;
  int count = 0;
  for (; count < MOST; ++count) {
    double best = -1;
    long long at = -1;
    for (long long k = A.indptr[i] + lane; k < A.indptr[i + 1]; k += 32) {
      if (!A.has(k)) continue;
      const double size = fabs(A.data[k]);
      const long long j = A.indices[k];
      if ((count == 0 || size < limit || (size == limit && j > after)) && size > best) best = size, at = j;
    }
    __syncwarp();
    for (int o = 16; o; o >>= 1) {
      const double its = __shfl_xor_sync(~0u, best, o);
      const long long other = __shfl_xor_sync(~0u, at, o);
      if (its > best || (its == best && other >= 0 && other < at)) best = its, at = other;
    }
    if (at < 0) break;
    if (lane == 0) found[count] = I(at);
    limit = best, after = at;
  }
  __syncwarp();
  return count;
}

// Write to `wide`, from place (MOST + 1) r on, the columns of row r of R in ascending order, and their number to
// lengths[r]: coarse row i = rows[r], and its strong fine neighbours at a distance of 1, or of at most 2. A warp a row.
// launch: elements of rows, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I>
__global__ void neighbourhoods(Context* ctx, const I* rows, const I* indptr, const I* indices, const double* data,
    const unsigned char* strong, const unsigned char* state, int distance, I* wide, int* lengths, long long n) {
  __shared__ I of_warp[8][MOST + 1];
  if (stopped(ctx)) return;
  const FineLinks<I> A{indptr, indices, data, strong, state};
  const int lane = threadIdx.x % 32;
  I* const found = of_warp[threadIdx.x / 32];
  for (long long r = thread_id() / 32; r < n; r += threads() / 32) {
    const int near = nearest(A, rows[r], found);
    int count = near;
    for (int t = 0; distance > 1 && t < near; ++t) {
      const long long i = found[t], end = indptr[i + 1];
      for (long long base = indptr[i]; base < end; base += 32) {
        const long long k = base + lane;
        const I j = k < end ? indices[k] : I(-1);
        bool fresh = k < end && A.has(k);
        for (int c = 0; c < count; ++c) fresh &= found[c] != j;
        const unsigned votes = __ballot_sync(~0u, fresh);
        const int at = count + __popc(votes & ((1u << lane) - 1));
        if (fresh && at < MOST) found[at] = j;
        count = min(count + __popc(votes), MOST);
        __syncwarp();
      }
    }
    if (lane == 0) found[count] = rows[r], lengths[r] = count + 1;
    __syncwarp();
    const I mine = lane <= count ? found[lane] : I(0);
    int place = 0;
    for (int c = 0; c <= count; ++c) place += found[c] < mine;
    if (lane <= count) wide[r * (MOST + 1) + place] = mine;
    __syncwarp();                                              // the next row overwrites `found`
  }
}

// Copy the columns of row r, which begin at place (MOST + 1) r of `wide`, to indptr[r] of `indices`.
// launch: elements of wide, 256 threads
template <typename I, typename P>
__global__ void compact_columns(Context* ctx, const I* wide, const P* indptr, P* indices, long long n) {
  if (stopped(ctx)) return;
  const long long from = thread_id();
  if (from >= n) return;
  const long long r = from / (MOST + 1), k = indptr[r] + from % (MOST + 1);
  if (k < indptr[r + 1]) indices[k] = P(wide[from]);
}

// A local system of at most MOST unknowns; its last column is the right-hand side.
struct Local {
  double at[MOST][MOST + 2];           // a column more than the system has: rows then begin in different banks
  long long columns[MOST];
};

// The place of `column` in the m ascending columns, −1 if it is not there.
DEVICE int place(const Local& s, int m, long long column) {
  int low = 0, high = m;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (s.columns[middle] < column) low = middle + 1;
    else high = middle;
  }
  return low < m && s.columns[low] == column ? low : -1;
}

// Solve by Gaussian elimination with partial pivoting; a lane has a column. The solution replaces column m. An unknown
// without a pivot is 0.
DEVICE void eliminate(Local& s, int m) {
  const int lane = threadIdx.x % 32;
  double largest = 0;
  for (int q = 0; lane < m && q < m; ++q) largest = fmax(largest, fabs(s.at[q][lane]));
  __syncwarp();
  largest = lanes_max(largest, 32);
  for (int p = 0; p < m; ++p) {
    double size = lane >= p && lane < m ? fabs(s.at[lane][p]) : -1.0;
    int row = lane;
    for (int o = 16; o; o >>= 1) {
      const double its = __shfl_xor_sync(~0u, size, o);
      const int other = __shfl_xor_sync(~0u, row, o);
      if (its > size || (its == size && other < row)) size = its, row = other;
    }
    if (!(size > SINGULAR * largest)) {
      if (lane == 0) s.at[p][p] = 0;
      __syncwarp();
      continue;
    }
    if (lane >= p && lane <= m) {
      const double moved = s.at[p][lane];
      s.at[p][lane] = s.at[row][lane], s.at[row][lane] = moved;
    }
    __syncwarp();
    const double own = lane > p && lane < m ? s.at[lane][p] / s.at[p][p] : 0.0;    // the factor of row `lane`
    for (int q = p + 1; q < m; ++q) {
      const double factor = __shfl_sync(~0u, own, q);        // mostly 0: upwind rows depend on few others
      if (factor != 0 && lane > p && lane <= m) s.at[q][lane] -= __dmul_rn(factor, s.at[p][lane]);
    }
    __syncwarp();
  }
  for (int p = m - 1; p >= 0; --p) {
    const double x = s.at[p][p] != 0 ? s.at[p][m] / s.at[p][p] : 0.0;
    __syncwarp();
    if (lane < p) s.at[lane][m] -= __dmul_rn(s.at[lane][p], x);
    if (lane == p) s.at[p][m] = x;
    __syncwarp();
  }
}

// Write the values of R on its pattern: for coarse row i = rows[r] the solution z of Σₖ zₖ aₖⱼ = −aᵢⱼ, j and k in Nᵢ,
// and 1 in column i. A warp a row; lane p reads row p of A's local block and writes column p of the system.
// launch: elements of rows, 128 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I, typename P>
__global__ void __launch_bounds__(128) ideal_weights(Context* ctx, const I* rows, const I* indptr, const I* indices,
    const double* data, const P* r_indptr, const P* r_indices, double* r_data, long long n) {
  __shared__ Local of_warp[WARPS];
  if (stopped(ctx)) return;
  Local& s = of_warp[threadIdx.x / 32];
  const int lane = threadIdx.x % 32;
  for (long long r = thread_id() / 32; r < n; r += threads() / 32) {
    const long long i = rows[r], begin = r_indptr[r];
    const int width = int(r_indptr[r + 1] - begin), m = width - 1;
    const long long column = lane < width ? (long long)r_indices[begin + lane] : -1;
    const int before = __ffs(__ballot_sync(~0u, column == i)) - 1;       // place of column i among the row's columns
    const int mine = lane - (lane > before);
    const bool unknown = lane < width && lane != before;
    if (unknown) s.columns[mine] = column;
    for (int q = 0; q < m && lane <= m; ++q) s.at[q][lane] = 0;
    __syncwarp();
    if (lane <= m) {
      const long long source = lane < m ? s.columns[lane] : i;
      for (long long k = indptr[source]; k < indptr[source + 1]; ++k) {
        const int q = place(s, m, indices[k]);
        if (q >= 0) s.at[q][lane] = lane < m ? data[k] : -data[k];
      }
    }
    __syncwarp();
    eliminate(s, m);
    if (lane < width) r_data[begin + lane] = unknown ? s.at[mine][m] : 1.0;
    __syncwarp();                                              // the next row overwrites the system
  }
}

// kept[k] = 1 for the diagonal entry and for entries of at least `share` times the row's largest modulus, else 0;
// lengths[i] = the number of kept entries. A row without a diagonal entry keeps all.
// launch: elements of lengths, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I>
__global__ void mark_kept(Context* ctx, const I* indptr, const I* indices, const double* data, double share,
    unsigned char* kept, int* lengths, long long n, long long data_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, data_size), [&](const Portion& p) {
    double largest = 0;
    bool diagonal = false;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) {
      largest = fmax(largest, fabs(data[k]));
      diagonal |= indices[k] == p.row;
    }
    largest = lanes_max(largest, p.lanes);
    const double limit = any_lane(diagonal, p.lanes) ? share * largest : 0.0;
    int count = 0;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) {
      kept[k] = indices[k] == p.row || fabs(data[k]) >= limit;
      count += kept[k];
    }
    for (int o = p.lanes / 2; o; o >>= 1) count += __shfl_xor_sync(~0u, count, o);
    if (p.there && p.part == 0) lengths[p.row] = count;
  });
}

// Write the kept entries to to_indices and to_data; add the others to the diagonal entry of their row.
// launch: elements of to_indptr, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I, typename P>
__global__ void keep(Context* ctx, const I* indptr, const I* indices, const double* data, const unsigned char* kept,
                     const P* to_indptr, P* to_indices, double* to_data, long long n, long long data_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n - 1, lanes_for(n - 1, data_size), [&](const Portion& p) {
    long long to = p.there ? (long long)to_indptr[p.row] : 0, own = -1;
    double dropped = 0, diagonal = 0;
    for (long long k = p.begin + p.part; any_left(p, k); k += p.lanes) {
      const double value = k < p.end ? data[k] : 0.0;
      const bool taken = k < p.end && kept[k];
      const unsigned takers = lane_votes(taken, p.lanes);
      if (taken) {
        const long long at = to + __popc(takers & ((1u << p.part) - 1));
        to_indices[at] = P(indices[k]);
        to_data[at] = value;
        if (indices[k] == p.row) own = at, diagonal = value;
      }
      to += __popc(takers);
      add_in_order(dropped, taken ? 0.0 : value, p.lanes);
    }
    if (own >= 0) to_data[own] = diagonal + dropped;
  });
}
