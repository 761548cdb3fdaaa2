// Strength of connection on a GPU; strength.py one folder up describes it. Values are double, as in every setup.
//
// Several lanes share a row: a thread a row would read a cache line for each entry of a coarse level's long rows. Sums
// take the entries in their order, so that a CPU finds the same links strong, even those at the limit.
#include "rows.cuh"

// strong[k] = 1 if entry k is a strong link, −aᵢⱼ ≥ θᵢ maxₖ(−aᵢₖ), of a row with |Σⱼ aᵢⱼ| ≤ max_row_sum aᵢᵢ. θᵢ is
// twice the sum of the positive over the sum of the negative off-diagonal entries, but at least `least` and at most
// `most`.
// launch: elements of indptr, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I>
__global__ void strong_links(Context* ctx, const I* indptr, const I* indices, const double* data, double least,
    double most, double max_row_sum, unsigned char* strong, long long n, long long data_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n - 1, lanes_for(n - 1, data_size), [&](const Portion& p) {
    double total = 0, positive = 0, diagonal = 0, largest = 0;
    for (long long k = p.begin + p.part; any_left(p, k); k += p.lanes) {
      double value = 0, above = 0;
      if (k < p.end) {
        value = data[k];
        if (indices[k] == p.row) diagonal = value;
        else largest = fmax(largest, -value), above = fmax(value, 0.0);
      }
      add_in_order(total, value, p.lanes);
      if (least < most) add_in_order(positive, above, p.lanes);
    }
    diagonal = lanes_sum(diagonal, p.lanes);
    largest = lanes_max(largest, p.lanes);
    const double negative = positive + diagonal - total;
    const double ratio = negative > 0 ? 2 * positive / negative : most;
    const double theta = fmin(fmax(ratio, least), most);
    const bool linked = largest > 0 && fabs(total) <= max_row_sum * diagonal;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) {
      const double value = data[k];
      strong[k] = linked && indices[k] != p.row && value < 0 && -value >= theta * largest;
    }
  });
}

// marked[i] = 1 if row i has an entry aᵢⱼ > bound aᵢᵢ off its diagonal.
// launch: elements of marked, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I>
__global__ void positive_rows(Context* ctx, const I* indptr, const I* indices, const double* data, double bound,
                              unsigned char* marked, long long n, long long data_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, data_size), [&](const Portion& p) {
    double diagonal = 0, largest = 0;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) {
      const double value = data[k];
      if (indices[k] == p.row) diagonal = value;
      else largest = fmax(largest, value);
    }
    diagonal = lanes_sum(diagonal, p.lanes);
    largest = lanes_max(largest, p.lanes);
    if (p.there && p.part == 0) marked[p.row] = largest > bound * diagonal;
  });
}

// forced[i] = 1 if row i or a neighbour is marked.
// launch: elements of forced, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I>
__global__ void with_neighbours(Context* ctx, const I* indptr, const I* indices, const unsigned char* marked,
    unsigned char* forced, long long n, long long indices_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, indices_size), [&](const Portion& p) {
    bool found = p.there && marked[p.row];
    for (long long k = p.begin + p.part; !found && k < p.end; k += p.lanes) found = marked[indices[k]];
    found = any_lane(found, p.lanes);
    if (p.there && p.part == 0) forced[p.row] = found;
  });
}
