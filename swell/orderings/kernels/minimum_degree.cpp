// Approximate minimum degree on the host: the quotient graph of Amestoy, Davis and Duff 1996, in their notation.
//
// A remaining variable i has two lists in `lists`, from `start[i]` on: its `elements[i]` elements ℰ_i, then its
// variables 𝒜_i; together `length[i]` numbers. An element e has the list ℒ_e of its variables. `size[i]` is |i|, the
// number of rows in the supervariable i. It is negative while i is in the current ℒ_p, and after i was a pivot; it is
// zero after i was merged or put last. `degree` is d_i for a variable and |ℒ_e| for an element. `w[e]` is zero after e
// was absorbed. In memory variables come first, by index, then elements, by age, so that one pass closes the gaps
// (`compact`).
#include <algorithm>
#include <numeric>
#include <vector>

#include "../../core/native/launcher.hpp"

namespace {

constexpr int64_t WAITING = -2;        // value of before[i] while variable i waits, in no degree list

// Write the pattern of A + Aᵀ without its diagonal to `lists`, row after row, ascending. Return its length.
//
// `indptr` and `indices` are the pattern of A in CSR form. Row i gets length[i] numbers from start[i] on; both arrays
// are written. `lists` needs room for 2 nnz numbers.
template <class I>
int64_t symmetrise(Array<const I> indptr, Array<const I> indices, Array<I> start, Array<I> length, Array<I> lists) {
  const I n = I(length.size);
  std::vector<I> begin(n + 1), transpose(indices.size);        // Aᵀ by counting, so columns ascend in its rows
  for (int64_t k = 0; k < indices.size; ++k) ++begin[indices[k] + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<I> at(begin);
  for (I i = 0; i < n; ++i)
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) transpose[at[indices[k]]++] = i;
  int64_t end = 0;
  for (int64_t i = 0; i < n; ++i) {
    start[i] = I(end);
    for (int64_t k = indptr[i], t = begin[i]; k < indptr[i + 1] || t < begin[i + 1];) {
      const I own = k < indptr[i + 1] ? indices[k] : n, theirs = t < begin[i + 1] ? transpose[t] : n;
      const I j = std::min(own, theirs);
      k += own == j;
      t += theirs == j;
      if (j != i) lists[end++] = j;
    }
    length[i] = I(end - start[i]);
  }
  return end;
}

// The doubly linked lists of the variables of each degree d: head[d] is the first, after[i] and before[i] are the
// neighbours of i in its list, −1 for none.
template <class I> struct Degrees {
  std::vector<I> head, after, before;

  explicit Degrees(int64_t n) : head(n + 1, -1), after(n), before(n, WAITING) {}

  void link(int64_t d, I i) {
    const I first = head[d];
    if (first >= 0) before[first] = i;
    after[i] = first, before[i] = -1, head[d] = i;
  }
  void unlink(int64_t d, int64_t i) {
    if (before[i] >= 0) after[before[i]] = after[i];
    else head[d] = after[i];
    if (after[i] >= 0) before[after[i]] = before[i];
  }
};

// Move the lists in use to the front of `lists`, and update `start`. Return the first free place.
//
// In use are variables with size > 0, and the first `step` elements of `pivots` with w > 0. The list of x is
// lists[start[x]:start[x] + length[x]].
template <class I>
int64_t compact(Array<I> start, Array<const I> length, Array<I> lists, Array<const I> size,
                const std::vector<int64_t>& w, Array<const I> pivots, int64_t step) {
  const int64_t n = size.size;
  int64_t free = 0;
  for (int64_t k = 0; k < n + step; ++k) {
    const int64_t x = k < n ? k : pivots[k - n];
    if (!(k < n ? size[x] > 0 : w[x] > 0)) continue;
    const int64_t first = start[x];
    start[x] = I(free);
    for (int64_t t = first; t < first + length[x]; ++t) lists[free++] = lists[t];
  }
  return free;
}

// Merge variables of ℒ_p, lists[first:end], with equal lists. Return the next free mark.
//
// key[i] is a hash of the list of variable i. bucket[h] and chain[i] are linked lists of the variables with hash h;
// only these are compared. A variable j merged into i gets size[j] = 0 and into[j] = i. w[x] = `mark` marks the members
// of a list.
template <class I>
int64_t merge_alike(int64_t first, int64_t end, Array<const I> start, Array<const I> length,
                    const std::vector<I>& elements, Array<const I> lists, Array<I> size, std::vector<int64_t>& w,
                    int64_t mark, const std::vector<I>& key, std::vector<I>& bucket, std::vector<I>& chain,
                    Array<I> into) {
  for (int64_t t = first; t < end; ++t) {
    if (size[lists[t]] == 0) continue;
    const int64_t h = key[lists[t]];
    int64_t i = bucket[h];
    bucket[h] = -1;                                            // the whole bucket is compared now
    for (; i >= 0 && chain[i] >= 0; i = chain[i], ++mark) {
      for (int64_t k = start[i]; k < int64_t(start[i]) + length[i]; ++k) w[lists[k]] = mark;
      int64_t previous = i;
      for (int64_t j = chain[i]; j >= 0; j = chain[j]) {
        bool same = length[j] == length[i] && elements[j] == elements[i];
        for (int64_t k = start[j]; same && k < int64_t(start[j]) + length[j]; ++k) same = w[lists[k]] == mark;
        if (same) {
          size[i] += size[j];                                  // |i| ← |i| + |j|, both negative
          size[j] = 0, into[j] = I(i);
          chain[previous] = chain[j];
        } else {
          previous = j;
        }
      }
    }
  }
  return mark;
}

// Eliminate all variables with at most `dense` neighbours. Return (number of pivots, entries of L + U, flops, left).
//
// `start`, `length`, `lists` and `free`, the first free place, are the result of `symmetrise`; they are overwritten.
// weak[i] is true for a weak variable. It waits until a pivot p that is not weak has it in ℒ_p. Such a pivot releases
// about as many rows of weak variables as it eliminates. Variables that are never released come last.
//
// Writes `size`, `degree`, `pivots` and `into`. On exit `pivots` are the principal variables in order, with −|p| in
// `size` and |ℒ_p| in `degree`. into[i] is the variable that i was merged into; for a pivot, the element that absorbed
// it; −1 at the end of such a chain. The elimination stops as soon as a sum exceeds its limit, or after `visits_limit`
// looks at elements of lists. Then `left` of the result, the number of variables that were not eliminated, is not 0.
template <class I>
std::tuple<int64_t, double, double, int64_t> eliminate(
    Array<I> start, Array<I> length, Array<I> lists, int64_t free, int64_t dense, Array<const bool> weak, Array<I> size,
    Array<I> degree, Array<I> pivots, Array<I> into, double entries_limit, double flops_limit, double visits_limit) {
  const int64_t n = length.size;
  Degrees<I> degrees(n);
  auto& before = degrees.before;
  std::vector<I> elements(n), key(n), bucket(n, -1), chain(n);
  std::vector<int64_t> w(n, 1);
  int64_t left = n, step = 0, least = 0, mark = 2, visits = 0;
  double entries = 0, flops = 0;
  for (int64_t i = 0; i < n; ++i) size[i] = 1, degree[i] = length[i], into[i] = -1;
  for (int64_t i = 0; i < n; ++i)
    if (length[i] > dense) {
      size[i] = 0;
      --left;
      for (int64_t k = start[i]; k < int64_t(start[i]) + length[i]; ++k) --degree[lists[k]];
    }
  for (int64_t i = 0; i < n; ++i)
    if (size[i] && !weak[i]) degrees.link(degree[i], I(i));
  while (left > 0 && entries <= entries_limit && flops <= flops_limit && visits <= visits_limit) {
    while (least < n && degrees.head[least] < 0) ++least;
    if (least == n)
      for (int64_t i = 0; i < n; ++i)
        if (before[i] == WAITING && size[i] > 0) {
          degrees.link(degree[i], I(i));
          least = std::min(least, int64_t(degree[i]));
        }
    const int64_t p = degrees.head[least];
    degrees.unlink(least, p);
    if (free + degree[p] > lists.size) free = compact<I>(start, length, lists, size, w, pivots, step);
    // ℒ_p = (𝒜_p ∪ ⋃ ℒ_e) \ {p}, e ∈ ℰ_p
    const int64_t first = free;
    int64_t mass = size[p], d = 0;
    size[p] = 0;
    for (int64_t t = start[p], variables = t + elements[p]; t <= variables; ++t) {
      int64_t begin = t, end = int64_t(start[p]) + length[p];
      if (t < variables) {
        const int64_t e = lists[t];
        begin = start[e], end = begin + length[e];
        w[e] = 0, into[e] = I(p);                              // absorbed
      }
      for (int64_t k = begin; k < end; ++k) {
        const I i = lists[k];
        if (size[i] <= 0) continue;
        if (before[i] != WAITING) degrees.unlink(degree[i], i);
        d += size[i];
        size[i] = -size[i];
        lists[free++] = i;
      }
    }
    start[p] = I(first), elements[p] = 0;
    // w(e) − mark = |ℒ_e \ ℒ_p| for all elements adjacent to ℒ_p
    for (int64_t t = first; t < free; ++t) {
      const int64_t i = lists[t];
      for (int64_t k = start[i]; k < int64_t(start[i]) + elements[i]; ++k) {
        const int64_t e = lists[k];
        if (w[e] >= mark) w[e] += size[i];
        else if (w[e] > 0) w[e] = mark + degree[e] + size[i];
      }
    }
    // prune the lists, bound the degrees, hash
    for (int64_t t = first; t < free; ++t) {
      const int64_t i = lists[t], begin = start[i], middle = begin + elements[i], end = begin + length[i];
      int64_t at = begin, outside = 0, h = p;
      for (int64_t k = begin; k < middle; ++k) {
        const I e = lists[k];
        if (w[e] > mark) {
          outside += w[e] - mark;                              // Σ |ℒ_e \ ℒ_p|
          h += e;
          lists[at++] = e;
        } else if (w[e] > 0) {
          w[e] = 0, into[e] = I(p);                            // aggressive absorption
        }
      }
      const int64_t own = at;
      visits += length[i];
      for (int64_t k = middle; k < end; ++k) {
        const I j = lists[k];
        if (size[j] <= 0) continue;
        outside += size[j];                                    // |𝒜_i \ ℒ_p|
        h += j;
        lists[at++] = j;
      }
      if (outside == 0) {                                      // mass elimination
        mass -= size[i];
        d += size[i];
        size[i] = 0, into[i] = I(p);
        continue;
      }
      lists[at] = lists[own], lists[own] = I(p);               // p joins ℰ_i
      elements[i] = I(own + 1 - begin), length[i] = I(at + 1 - begin);
      degree[i] = I(std::min(int64_t(degree[i]), outside));
      h %= n;
      key[i] = I(h), chain[i] = bucket[h], bucket[h] = I(i);
    }
    mark = merge_alike<I>(first, free, start, length, elements, lists, size, w, mark + n + 1, key, bucket, chain, into);
    // d_i = min(n − k, d_i + |ℒ_p \ i|, |𝒜_i \ i| + |ℒ_p \ i| + Σ |ℒ_e \ ℒ_p|)
    left -= mass;
    int64_t end = first, freed = weak[p] ? 0 : mass;
    for (int64_t t = first; t < free; ++t) {
      const I i = lists[t];
      if (!size[i]) continue;
      size[i] = -size[i];
      degree[i] = I(std::min(left, degree[i] + d) - size[i]);
      if (before[i] != WAITING || freed > 0) {
        if (before[i] == WAITING) freed -= size[i];
        degrees.link(degree[i], i);
        least = std::min(least, int64_t(degree[i]));
      }
      lists[end++] = i;
    }
    free = end, length[p] = I(end - first), degree[p] = I(d), size[p] = I(-mass);
    w[p] = d != 0;
    pivots[step++] = I(p);
    for (int64_t below = d; below < d + mass; ++below) {       // entries of a column of L
      entries += 2 * below + 1;
      flops += below + 2.0 * below * below;
    }
  }
  return {step, entries, flops, left};
}

// The root of i in a forest, whose paths it shortens.
int64_t find_root(std::vector<int64_t>& root, int64_t i) {
  for (; root[i] != i; i = root[i]) root[i] = root[root[i]];
  return i;
}

// Return (the number of weak pivots that elimination in this order may leave without a value, and the number of sets of
// connected weak rows).
//
// A strong pivot adds at most 1 to the rank of the Schur complement of the weak rows that it is connected with. A set
// of s connected weak rows without a strong neighbour of its own has at most rank s − 1, as a Neumann problem has. A
// weak pivot needs one of these ranks. `start`, `length`, `lists`: the result of `symmetrise`. `weak`: true for weak
// rows.
template <class I>
std::tuple<int64_t, int64_t> count_unready(Array<const I> start, Array<const I> length, Array<const I> lists,
                                           Array<const bool> weak, Array<const int64_t> order) {
  const int64_t n = order.size;
  std::vector<int64_t> root(n), size(n, 1), rank(n), taken(n);
  std::vector<char> grounded(n, false);
  std::iota(root.begin(), root.end(), 0);
  int64_t unready = 0, sets = std::count(weak.data, weak.data + weak.size, true);
  for (int64_t t = 0; t < n; ++t) {
    const int64_t p = order[t];
    if (weak[p]) {
      const int64_t r = find_root(root, p);
      unready += std::min(rank[r], size[r] - !grounded[r]) <= taken[r];
      ++taken[r];
      continue;
    }
    int64_t first = -1, count = 0;
    for (int64_t k = start[p]; k < int64_t(start[p]) + length[p]; ++k) {
      if (!weak[lists[k]]) continue;
      const int64_t r = find_root(root, lists[k]);
      ++count;
      if (first < 0) {
        first = r;
      } else if (r != first) {
        root[r] = first;
        size[first] += size[r], rank[first] += rank[r], taken[first] += taken[r], grounded[first] |= grounded[r];
        --sets;
      }
    }
    if (count) ++rank[first], grounded[first] |= count == 1;
  }
  return {unready, sets};
}

// Add to degree[p] = |ℒ_p| the number of rows put last in which the column of L of pivot p has an entry.
//
// For each such row, these pivots lie on the paths from its neighbours to the roots in the tree of elements, where
// into[p] is the parent of p, −1 for a root. The neighbours of row r end at beside[ends[r]], where the list of row
// r + 1 begins; group[v] is the pivot of the group of variable v, −1 for none.
template <class I>
void count_last(Array<const int64_t> ends, Array<const I> beside, Array<const int64_t> group, Array<const I> into,
                Array<I> degree) {
  std::vector<int64_t> seen(degree.size, -1);
  for (int64_t row = 0, k = 0; row < ends.size; ++row)
    for (; k < ends[row]; ++k)
      for (int64_t p = group[beside[k]]; p >= 0 && seen[p] != row; p = into[p]) seen[p] = row, ++degree[p];
}

}  // namespace

KERNELS("swell.orderings.minimum_degree", INDICES(symmetrise), INDICES(eliminate), INDICES(count_unready),
        INDICES(count_last))
