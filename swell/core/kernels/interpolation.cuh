// Rows of the interpolation P, each computed by a warp (or a part of one); preconditioners/amg/interpolation.py has the
// formulas.
//
// A candidate is a coarse column of the row; a hash table tells where its weight is. The warp visits one neighbour at a
// time. The lanes take different columns of that neighbour, so no two lanes add to the same weight. If a row has more
// candidates than the table has room for, its columns are divided into parts by their hash. The warp computes one part
// at a time, and keeps the largest weights so far.
#pragma once
#include "rows.cuh"

constexpr double CANCELLED = 1e-8, LARGEST = 10.0, RESCALED = 10.0;      // as in interpolation.cpp

// G neighbouring lanes of a warp; they may diverge from the rest of the warp.
template <int G> struct Group {
  int lane, first;
  unsigned mask;
  DEVICE Group() : lane(threadIdx.x % G), first(threadIdx.x % 32 - lane), mask(~0u >> (32 - G) << first) {}
  template <class V> DEVICE V get(V value, int from) const { return __shfl_sync(mask, value, from, G); }
  DEVICE unsigned votes(bool yes) const { return (__ballot_sync(mask, yes) & mask) >> first; }
  DEVICE void sync() const { __syncwarp(mask); }
  // sum += the values of the first `count` lanes, in lane order.
  DEVICE void add(double& sum, double value, int count) const {
    for (int from = 0; from < count; ++from) sum += get(value, from);
  }
  DEVICE double sum(double value) const {
    for (int o = G / 2; o; o >>= 1) value += __shfl_xor_sync(mask, value, o, G);
    return value;
  }
};

// The row of a group: its candidates with their weights, and a hash table of their positions.
template <int G> struct Table {
  static constexpr int ROOM = 4 * G, SLOTS = 8 * G;
  double weights[ROOM];
  int columns[ROOM];
  alignas(16) int keys[SLOTS];                                 // the hash table: a column, or −1 in an empty slot
  unsigned char at[SLOTS];                                     // the position of that column's weight

  DEVICE void clear(const Group<G>& g) {
    const int4 none = {-1, -1, -1, -1};
    for (int s = g.lane; s < SLOTS / 4; s += G) reinterpret_cast<int4*>(keys)[s] = none;
  }
  // The position of a column's weight, or −1 if the column is not a candidate.
  DEVICE int find(int column, unsigned hash) const {
    for (unsigned slot = hash % SLOTS;; slot = (slot + 1) % SLOTS) {
      if (keys[slot] == column) return at[slot];
      if (keys[slot] < 0) return -1;
    }
  }
};

DEVICE unsigned hash_of(int column) {                        // MurmurHash3's last step: different for different columns
  unsigned h = (unsigned)column;
  h = (h ^ h >> 16) * 0x85EBCA6Bu;
  h = (h ^ h >> 13) * 0xC2B2AE35u;
  return h ^ h >> 16;
}

// True if a column with this hash belongs to the given part; `parts` is a power of two.
DEVICE bool in_part(unsigned hash, int part, int parts) { return (hash >> 8 & (parts - 1)) == part; }

template <class I> struct Links {
  const I *indptr, *indices;
  const double *data, *mirror;
  const unsigned char *strong, *state;
  const I *numbers, *c_indptr, *c_indices;
  const double *c_data, *sums;
};

enum Outcome { DONE, UNUSABLE, FULL };

// Add `share` times the strong coarse entries `begin` to `end` - 1, all of one row, to the weights. False if the table
// is full.
template <int G, class I>
DEVICE bool gather(const Group<G>& g, Table<G>& t, const Links<I>& A, I begin, I end, double share, int& count,
    int part, int parts) {
  for (I base = begin; base < end; base += G) {
    const I k = base + g.lane;
    const bool inside = k < end;
    int column = inside ? int(A.c_indices[k]) : -1;
    const double term = __dmul_rn(share, inside ? A.c_data[k] : 0.0);
    const unsigned hash = hash_of(column);
    if (!in_part(hash, part, parts)) column = -1;
    bool fresh = false;
    unsigned slot = hash % Table<G>::SLOTS;
    while (column >= 0) {                                      // ends: at most ROOM + G slots are ever taken
      const int found = atomicCAS(t.keys + slot, -1, column);
      fresh = found == -1;
      if (fresh || found == column) break;
      slot = (slot + 1) % Table<G>::SLOTS;
    }
    const unsigned news = g.votes(fresh);
    const int total = count + __popc(news);
    if (total > Table<G>::ROOM) return false;
    if (fresh) {
      const int at = count + __popc(news & ((1u << g.lane) - 1));
      t.at[slot] = (unsigned char)at;
      t.columns[at] = column;
      t.weights[at] = term;
    } else if (column >= 0) {
      const int at = t.at[slot];
      t.weights[at] = __dadd_rn(t.weights[at], term);
    }
    count = total;
    g.sync();
  }
  return true;
}

// Extended+i interpolation: append the candidates of fine row i, with their weights, from position `count` on.
template <int G, class I>
DEVICE Outcome extended_row(const Group<G>& g, Table<G>& t, const Links<I>& A, long long i, int& count, int part,
    int parts) {
  const int base = count;
  const long long begin = A.indptr[i], end = A.indptr[i + 1];
  double total = 0, moduli = 0;
  if (!gather(g, t, A, A.c_indptr[i], A.c_indptr[i + 1], 1.0, count, part, parts)) return FULL;
  for (long long from = begin; from < end; from += G) {
    const int here = int(min((long long)G, end - from));
    double lumped = 0, share = 0;
    I first = 0, last = 0;
    if (g.lane < here) {
      const I j = A.indices[from + g.lane];
      const double value = A.data[from + g.lane];
      moduli += fabs(value);
      if (!A.strong[from + g.lane]) lumped = value;            // aᵢᵢ, and the weak links, whose sum is γᵢ
      else if (A.state[j] != COARSE) {
        first = A.c_indptr[j], last = A.c_indptr[j + 1];
        const double back = fmin(A.mirror[from + g.lane], 0.0), d = A.sums[j] + back;
        share = value / (d == 0 ? 1.0 : d);                    // aᵢⱼ / dᵢⱼ: neither term of dᵢⱼ is positive
        lumped = d == 0 ? value : __dmul_rn(share, back);      // a neighbour that leads nowhere is lumped whole
      }
    }
    g.add(total, lumped, here);
    for (unsigned givers = g.votes(first < last); givers; givers &= givers - 1) {
      const int giver = __ffs(givers) - 1;
      const I its_first = g.get(first, giver), its_last = g.get(last, giver);
      if (!gather(g, t, A, its_first, its_last, g.get(share, giver), count, part, parts)) return FULL;
    }
  }
  moduli = g.sum(moduli);
  if (!(total > CANCELLED * moduli)) return UNUSABLE;
  bool usable = true;
  for (int c = base + g.lane; c < count; c += G) {
    t.weights[c] /= -total;
    usable = usable && fabs(t.weights[c]) <= LARGEST;
  }
  return g.votes(!usable) ? UNUSABLE : DONE;
}

// Direct interpolation: the weights of fine row i, computed from its strong coarse columns only.
template <int G, class I>
DEVICE Outcome direct_row(const Group<G>& g, Table<G>& t, const Links<I>& A, long long i, int& count, int part,
    int parts) {
  const long long begin = A.indptr[i], end = A.indptr[i + 1];
  double diagonal = 0, negative = 0;
  for (long long from = begin; from < end; from += G) {
    const int here = int(min((long long)G, end - from));
    const bool inside = g.lane < here;
    const double value = inside ? A.data[from + g.lane] : 0.0;
    const bool below = inside && A.indices[from + g.lane] != i && value < 0;
    g.add(negative, below ? value : 0.0, here);
    g.add(diagonal, below ? 0.0 : value, here);                // positive links are lumped
  }
  if (!(diagonal > 0)) return DONE;                            // the row of P stays empty
  const double factor = -negative / A.sums[i] / diagonal;
  return gather(g, t, A, A.c_indptr[i], A.c_indptr[i + 1], factor, count, part, parts) ? DONE : FULL;
}

// Sort the first `count` candidates, EACH a lane at most, by before(weight, column, other weight, other column), a
// strict order; only the first `most` are written back.
template <int EACH, int G, class Before>
DEVICE void sort(const Group<G>& g, Table<G>& t, int count, int most, Before before) {
  double weights[EACH];
  int columns[EACH], ranks[EACH];
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int c = g.lane + e * G;
    weights[e] = c < count ? t.weights[c] : 0.0;
    columns[e] = c < count ? t.columns[c] : 0;
    ranks[e] = c < count ? 0 : Table<G>::ROOM;
  }
  for (int c = 0; c < count; ++c) {
    const double weight = t.weights[c];
    const int column = t.columns[c];
#pragma unroll
    for (int e = 0; e < EACH; ++e)
      if (e * G < count) ranks[e] += before(weight, column, weights[e], columns[e]);
  }
  g.sync();                                                    // all lanes have read the data that is overwritten now
#pragma unroll
  for (int e = 0; e < EACH; ++e)
    if (ranks[e] < most) {
      t.weights[ranks[e]] = weights[e];
      t.columns[ranks[e]] = columns[e];
    }
  g.sync();
}

// Move the `most` largest of `count` candidates to the front; of equal ones, the smaller column wins. Returns their
// number.
template <int G> DEVICE int select(const Group<G>& g, Table<G>& t, int count, int most) {
  if (count <= most) return count;
  sort<Table<G>::ROOM / G>(g, t, count, most, [](double weight, int column, double other, int other_column) {
    return fabs(weight) > fabs(other) || (fabs(weight) == fabs(other) && column < other_column);
  });
  return most;
}

// Sort the first `kept` candidates, 16 at most, by column.
template <int G> DEVICE void sort_columns(const Group<G>& g, Table<G>& t, int kept) {
  sort<(G < 16 ? 16 / G : 1)>(g, t, kept, kept,
                              [](double, int column, double, int other_column) { return column < other_column; });
}

// The factor for the kept weights that preserves the row sum; 1 if it would exceed RESCALED or fall below 1 / RESCALED.
DEVICE double rescale(double before, double after) {
  if (before == after || !(fabs(before) <= RESCALED * fabs(after)) || !(fabs(after) <= RESCALED * fabs(before)))
    return 1.0;
  return before / after;
}

// Row i of P if i is not a fine row: a single 1 for a coarse row, else an empty row.
template <class I, class P>
DEVICE void make_other(const Links<I>& A, long long i, unsigned char state, long long begin, bool known, P* p_indices,
                       double* p_data, int* lengths) {
  if (state == COARSE) p_data[begin] = 1;
  if (known) return;
  if (state == COARSE) p_indices[begin] = P(A.numbers[i]);
  lengths[i] = state == COARSE;
}

// Row i of P, by one group. In the table, the entries kept so far precede the new candidates; if the pattern is
// `known`, its columns do.
template <int G, class I, class P>
DEVICE void make_row(const Group<G>& g, Table<G>& t, const Links<I>& A, long long i, bool extended, int most,
    bool known, const P* p_indptr, P* p_indices, double* p_data, int* lengths) {
  const unsigned char state = A.state[i];
  const long long begin = known ? (long long)p_indptr[i] : i * most;
  if (state != FINE) {
    if (g.lane == 0) make_other(A, i, state, begin, known, p_indices, p_data, lengths);
    return;
  }
  const int columns = known ? int(p_indptr[i + 1] - begin) : 0;
  bool use_extended = extended;
  for (int parts = 1;;) {
    int kept = columns;
    double before = 0;
    Outcome outcome = DONE;
    for (int part = 0; part < parts && outcome == DONE; ++part) {
      t.clear(g);
      for (int c = g.lane; part == 0 && c < columns; c += G) {
        t.columns[c] = int(p_indices[begin + c]);
        t.weights[c] = 0;
      }
      g.sync();
      int count = kept;
      outcome = use_extended ? extended_row(g, t, A, i, count, part, parts)
          : direct_row(g, t, A, i, count, part, parts);
      g.sync();
      if (outcome != DONE) break;
      for (int c = kept; c < count; ++c) before += t.weights[c];
      if (!known) {
        kept = select(g, t, count, most);
        continue;
      }
      for (int c = g.lane; c < columns; c += G) {
        const int at = t.find(t.columns[c], hash_of(t.columns[c]));
        if (at >= 0) t.weights[c] = t.weights[at];
      }
      g.sync();
    }
    if (outcome == UNUSABLE) {
      use_extended = false;
      parts = 1;
    } else if (outcome == FULL) {
      parts *= 2;
    } else {
      if (!known) sort_columns(g, t, kept);
      double after = 0;
      for (int c = 0; c < kept; ++c) after += t.weights[c];
      const double factor = rescale(before, after);
      for (int c = g.lane; c < kept; c += G) {
        p_data[begin + c] = t.weights[c] * factor;
        if (!known) p_indices[begin + c] = P(t.columns[c]);
      }
      if (!known && g.lane == 0) lengths[i] = kept;
      g.sync();                                                // the next row uses the same memory
      return;
    }
  }
}
