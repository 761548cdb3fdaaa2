// Interpolation weights on a GPU; interpolation.py one folder up has the formulas. Values are double, as in every
// setup.
//
// The candidates of a fine row are the coarse columns that it reaches. They are in shared memory, in a CPU's order.
// Sums take their terms in a CPU's order, and no product is fused with a sum. So the weights, and the choice among
// equal ones, are equal to a CPU's to the bit.
//
// `interpolate` makes many short rows, each by a thread, which searches its candidates: a tenth of the instructions of
// a warp that shares the row. If a thread has no room for the candidates of its row, its warp makes the row.
//
// `interpolate_long` makes rows by warps (interpolation.cuh). A CPU's thread has a place for
// every coarse column instead.
#include "interpolation.cuh"

constexpr int EACH_ROOM = 24;                                            // most candidates of a thread

// lengths[i] = the number of strong coarse columns of fine row i; 0 for other rows.
// launch: elements of state, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I>
__global__ void coarse_lengths(Context* ctx, const I* indptr, const I* indices, const unsigned char* strong,
                               const unsigned char* state, int* lengths, long long n, long long indices_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, indices_size), [&](const Portion& p) {
    const bool fine = p.there && state[p.row] == FINE;
    int count = 0;
    for (long long k = p.begin + p.part; fine && k < p.end; k += p.lanes) count += strong[k]
        && state[indices[k]] == COARSE;
    for (int o = p.lanes / 2; o; o >>= 1) count += __shfl_xor_sync(~0u, count, o);
    if (p.there && p.part == 0) lengths[p.row] = count;
  });
}

// Write the strong coarse entries of fine rows, columns numbered as on the next level, and sums[i] = βᵢ, their sum.
// launch: elements of state, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I>
__global__ void coarse_entries(Context* ctx, const I* indptr, const I* indices, const double* data,
    const unsigned char* strong, const unsigned char* state, const I* numbers, const I* c_indptr, I* c_indices,
    double* c_data, double* sums, long long n, long long indices_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, indices_size), [&](const Portion& p) {
    long long to = p.there ? (long long)c_indptr[p.row] : 0;
    const long long end = p.there && to < c_indptr[p.row + 1] ? p.end : p.begin;       // of a row that has any
    double total = 0;
    for (long long k = p.begin + p.part; __any_sync(~0u, k - p.part < end); k += p.lanes) {
      const I j = k < end ? indices[k] : I(0);
      const bool taken = k < end && strong[k] && state[j] == COARSE;
      const double value = taken ? data[k] : 0.0;
      const unsigned takers = lane_votes(taken, p.lanes);
      if (taken) {
        const long long at = to + __popc(takers & ((1u << p.part) - 1));
        c_indices[at] = numbers[j];
        c_data[at] = value;
      }
      to += __popc(takers);
      add_in_order(total, value, p.lanes);
    }
    if (p.there && p.part == 0) sums[p.row] = total;
  });
}

// The candidates and weights of a warp's threads; each thread has a column of the arrays.
struct Candidates {
  double weights[EACH_ROOM][32];
  int columns[EACH_ROOM][32];
};

// The candidates of one thread.
struct Own {
  Candidates& all;
  int lane, count;
  DEVICE double& weight(int c) const { return all.weights[c][lane]; }
  DEVICE int& column(int c) const { return all.columns[c][lane]; }

  // Place of a column among the candidates; `count` if it is not one.
  DEVICE int find(int wanted) const {
    int at = count;
    for (int from = 0; from < count && at == count; from += 4)
#pragma unroll
      for (int c = from; c < from + 4; ++c)
        if (c < count && column(c) == wanted) at = c;
    return at;
  }
  // Add `share` times the strong coarse entries from `begin` to `end`, all of one row. False if there is no room.
  template <class I> DEVICE bool gather(const Links<I>& A, I begin, I end, double share) {
    constexpr int AHEAD = 4;
    for (I base = begin; base < end; base += AHEAD) {
      int its[AHEAD];
      double terms[AHEAD];
#pragma unroll
      for (int e = 0; e < AHEAD; ++e) {
        const bool inside = base + e < end;
        its[e] = inside ? int(A.c_indices[base + e]) : -1;
        terms[e] = __dmul_rn(share, inside ? A.c_data[base + e] : 0.0);
      }
#pragma unroll
      for (int e = 0; e < AHEAD; ++e) {
        if (its[e] < 0) continue;
        const int at = find(its[e]);
        if (at == EACH_ROOM) return false;
        column(at) = its[e];
        weight(at) = at < count ? __dadd_rn(weight(at), terms[e]) : terms[e];
        count = max(count, at + 1);
      }
    }
    return true;
  }
  // True if candidate c is kept before `other`: it has a larger weight, or an equal one and a smaller column.
  DEVICE bool precedes(int c, int other) const {
    const double mine = fabs(weight(c)), its = fabs(weight(other));
    return mine > its || (mine == its && column(c) < column(other));
  }
  DEVICE void exchange(int c, int other) {
    const double of_weight = weight(c);
    const int of_column = column(c);
    weight(c) = weight(other), column(c) = column(other);
    weight(other) = of_weight, column(other) = of_column;
  }
};

// Extended+i, by one thread.
template <class I> DEVICE Outcome extended_row(Own& t, const Links<I>& A, long long i) {
  double total = 0, moduli = 0;
  if (!t.gather(A, A.c_indptr[i], A.c_indptr[i + 1], 1.0)) return FULL;
  constexpr int AHEAD = 4;
  const long long end = A.indptr[i + 1];
  for (long long from = A.indptr[i]; from < end; from += AHEAD) {
    I columns[AHEAD];
    double values[AHEAD], back[AHEAD];
    bool links[AHEAD];
#pragma unroll
    for (int e = 0; e < AHEAD; ++e) {                          // zeros behind the end, which change no sum
      const bool inside = from + e < end;
      columns[e] = inside ? A.indices[from + e] : I(0);
      values[e] = inside ? A.data[from + e] : 0.0;
      back[e] = inside ? fmin(A.mirror[from + e], 0.0) : 0.0;
      links[e] = inside && A.strong[from + e];
    }
#pragma unroll
    for (int e = 0; e < AHEAD; ++e) {
      const I j = columns[e];
      const double value = values[e];
      moduli += fabs(value);
      if (!links[e]) {
        total += value;
        continue;
      }
      const I first = A.c_indptr[j], last = A.c_indptr[j + 1];
      const double sum = A.sums[j];
      if (A.state[j] == COARSE) continue;
      const double d = sum + back[e], share = value / (d == 0 ? 1.0 : d);
      total += d == 0 ? value : __dmul_rn(share, back[e]);
      if (!t.gather(A, first, last, share)) return FULL;
    }
  }
  if (!(total > CANCELLED * moduli)) return UNUSABLE;
  bool usable = true;
  for (int c = 0; c < t.count; ++c) {
    t.weight(c) /= -total;
    usable = usable && fabs(t.weight(c)) <= LARGEST;
  }
  return usable ? DONE : UNUSABLE;
}

// Direct interpolation, by one thread.
template <class I> DEVICE Outcome direct_row(Own& t, const Links<I>& A, long long i) {
  double diagonal = 0, negative = 0;
  for (long long k = A.indptr[i]; k < A.indptr[i + 1]; ++k) {
    const double value = A.data[k];
    if (A.indices[k] != i && value < 0) negative += value;
    else diagonal += value;                                    // positive links are lumped
  }
  if (!(diagonal > 0)) return DONE;                            // nothing is interpolated
  return t.gather(A, A.c_indptr[i], A.c_indptr[i + 1], -negative / A.sums[i] / diagonal) ? DONE : FULL;
}

// Row i of P, by one thread. False if the thread has no room for it.
template <class I, class P>
DEVICE bool make_row(Own t, const Links<I>& A, long long i, bool extended, int most, bool known, const P* p_indptr,
    P* p_indices, double* p_data, int* lengths) {
  const unsigned char state = A.state[i];
  const long long begin = known ? (long long)p_indptr[i] : i * most;
  if (state != FINE) {
    make_other(A, i, state, begin, known, p_indices, p_data, lengths);
    return true;
  }
  Outcome outcome = extended ? extended_row(t, A, i) : UNUSABLE;
  if (outcome == UNUSABLE) {
    t.count = 0;
    outcome = direct_row(t, A, i);
  }
  if (outcome == FULL) return false;
  double before = 0, after = 0;
  for (int c = 0; c < t.count; ++c) before += t.weight(c);
  const int kept = known ? int(p_indptr[i + 1] - begin) : min(t.count, most);
  if (!known) {
    for (int s = 0; s < kept && kept < t.count; ++s) {         // the largest to the front
      int best = s;
      for (int c = s + 1; c < t.count; ++c)
        if (t.precedes(c, best)) best = c;
      t.exchange(s, best);
    }
    for (int s = 1; s < kept; ++s)                             // in the order of their columns
      for (int c = s; c > 0 && t.column(c) < t.column(c - 1); --c) t.exchange(c, c - 1);
    for (int c = 0; c < kept; ++c) p_indices[begin + c] = P(t.column(c));
    lengths[i] = kept;
  }
  const auto weight_of = [&](int c) {
    const int at = known ? t.find(int(p_indices[begin + c])) : c;
    return at < t.count ? t.weight(at) : 0.0;
  };
  for (int c = 0; c < kept; ++c) after += weight_of(c);
  const double factor = rescale(before, after);
  for (int c = 0; c < kept; ++c) p_data[begin + c] = weight_of(c) * factor;
  return true;
}

// Make the rows of P, a thread each. With `known`, the pattern is given, and only values are written. Otherwise row i
// begins at i `most`, and its columns and lengths[i] are written too. With four blocks a multiprocessor, the rows of
// their threads fit in the first-level cache.
// launch: elements of state, 128 threads
template <typename I, typename P>
__global__ void __launch_bounds__(128, 4) interpolate(Context* ctx, const I* indptr, const I* indices,
    const double* data, const double* mirror, const unsigned char* strong, const unsigned char* state, const I* numbers,
    const I* c_indptr, const I* c_indices, const double* c_data, const double* sums, bool extended, int most,
    bool known, const P* p_indptr, P* p_indices, double* p_data, int* lengths, long long n) {
  __shared__ union Room {
    Candidates each;
    Table<32> all;
  } of_warp[4];
  if (stopped(ctx)) return;
  const Links<I> A{indptr, indices, data, mirror, strong, state, numbers, c_indptr, c_indices, c_data, sums};
  Room& room = of_warp[threadIdx.x / 32];
  const Group<32> warp;
  const long long i = thread_id();
  const bool made = i >= n || make_row(Own{room.each, warp.lane, 0}, A, i, extended, most, known, p_indptr, p_indices,
      p_data, lengths);
  for (unsigned left = warp.votes(!made); left; left &= left - 1)
    make_row(warp, room.all, A, i - warp.lane + __ffs(left) - 1, extended, most, known, p_indptr, p_indices, p_data,
        lengths);
}

// Like `interpolate`, a warp a row.
// launch: elements of state, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I, typename P>
__global__ void __launch_bounds__(256, 4) interpolate_long(Context* ctx, const I* indptr, const I* indices,
    const double* data, const double* mirror, const unsigned char* strong, const unsigned char* state, const I* numbers,
    const I* c_indptr, const I* c_indices, const double* c_data, const double* sums, bool extended, int most,
    bool known, const P* p_indptr, P* p_indices, double* p_data, int* lengths, long long n) {
  __shared__ Table<32> of_warp[8];
  if (stopped(ctx)) return;
  const Links<I> A{indptr, indices, data, mirror, strong, state, numbers, c_indptr, c_indices, c_data, sums};
  const Group<32> warp;
  for (long long i = thread_id() / 32; i < n; i += threads() / 32)
    make_row(warp, of_warp[threadIdx.x / 32], A, i, extended, most, known, p_indptr, p_indices, p_data, lengths);
}

// Copy rows that begin at i `most` to contiguous rows.
// launch: elements of from_indices, 256 threads
template <typename P>
__global__ void compact(Context* ctx, int most, const P* from_indices, const double* from_data, const P* indptr,
    P* indices, double* data, long long n) {
  if (stopped(ctx)) return;
  const long long from = thread_id();
  if (from >= n) return;
  const long long i = from / most, k = indptr[i] + from % most;
  if (k >= indptr[i + 1]) return;
  indices[k] = from_indices[from];
  data[k] = from_data[from];
}
