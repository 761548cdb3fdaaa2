// Tentative and smoothed prolongators on a GPU; aggregation.py one folder up describes them.
#include "rows.cuh"

// The sum of a warp's values, in every lane.
DEVICE double warp_total(double value) { return lanes_sum(value, 32); }

// modes: 1 in the column that is the unknown's place among the `width` unknowns of its node, else 0; nodes[d] = d /
// width.
// launch: elements of nodes, 256 threads
template <typename I> __global__ void constants(Context* ctx, I* nodes, int width, double* modes, long long n) {
  if (stopped(ctx)) return;
  const long long d = thread_id();
  if (d >= n) return;
  nodes[d] = I(d / width);
  for (int j = 0; j < width; ++j) modes[d * width + j] = j == d % width;
}

// modes: translations, then rotations about the origin, of displacements in 2 or 3 dimensions at `points`. Row d i + a
// is the displacement of point i along axis a.
// launch: elements of points, 256 threads
template <typename T>
__global__ void rigid_motions(Context* ctx, const double* points, int dimensions, double* modes, long long n) {
  if (stopped(ctx)) return;
  const long long d = thread_id();
  if (d >= n) return;
  const int axis = int(d % dimensions), width = dimensions * (dimensions + 1) / 2;
  const double* point = points + (d - axis);
  double* row = modes + d * width;
  for (int j = 0; j < dimensions; ++j) row[j] = j == axis;
  for (int j = 0; j < width - dimensions; ++j) {               // in the plane of axis j and the next one
    const int after = (j + 1) % dimensions;
    row[dimensions + j] = axis == j ? -point[after] : axis == after ? point[j] : 0.0;
  }
}

// Orthonormalise the modes of each aggregate, in place: modified Gram–Schmidt, twice. A warp has an aggregate, and a
// lane each 32nd of its unknowns, so that no lane reads what another one writes. tentative.cpp explains the arrays.
// launch: elements of ranks, 128 threads, a warp each
template <typename I>
__global__ void orthonormalise(Context* ctx, const I* starts, const I* members, int width, double dependent, double* q,
                               double* coefficients, int* ranks, long long n) {
  if (stopped(ctx)) return;
  const long long g = thread_id() / 32;
  const int lane = threadIdx.x % 32;
  if (g >= n) return;
  const long long begin = starts[g] + lane, end = starts[g + 1];
  double* R = coefficients + g * width * width;
  const auto dot = [&](int a, int b) {
    double sum = 0;
    for (long long m = begin; m < end; m += 32)
      sum += q[(long long)members[m] * width + a] * q[(long long)members[m] * width + b];
    return warp_total(sum);
  };
  int rank = 0;
  for (int j = 0; j < width; ++j) {
    const double before = dot(j, j);
    for (int c = 0; c < 2 * rank; ++c) {
      const int slot = c % rank;
      const double part = dot(slot, j);
      for (long long m = begin; m < end; m += 32) {
        double* row = q + (long long)members[m] * width;
        row[j] -= part * row[slot];
      }
      if (lane == 0) R[slot * width + j] += part;
    }
    const double after = dot(j, j);
    if (!(after > 0 && after > dependent * dependent * before)) continue;
    const double norm = sqrt(after);
    for (long long m = begin; m < end; m += 32) {
      double* row = q + (long long)members[m] * width;
      row[rank] = row[j] / norm;
    }
    if (lane == 0) R[rank * width + j] = norm;
    ++rank;
  }
  if (lane == 0) ranks[g] = rank;
}

// lengths[d] = the rank of the aggregate members[d] of unknown d; 0 if it has none.
// launch: elements of lengths, 256 threads
template <typename I>
__global__ void row_lengths(Context* ctx, const I* members, const int* ranks, int* lengths, long long n,
    long long ranks_size) {
  if (stopped(ctx)) return;
  const long long d = thread_id();
  if (d < n) lengths[d] = members[d] < I(ranks_size) ? ranks[members[d]] : 0;
}

// The columns and values of the tentative prolongator; first[g] is the first column of aggregate g.
// launch: elements of members, 256 threads
template <typename I>
__global__ void place(Context* ctx, const I* members, const I* first, int width, const double* q, const I* indptr,
    I* indices, double* data, long long n) {
  if (stopped(ctx)) return;
  const long long d = thread_id();
  if (d >= n) return;
  for (I k = indptr[d]; k < indptr[d + 1]; ++k) {
    const I c = k - indptr[d];
    indices[k] = first[members[d]] + c;
    data[k] = q[d * width + c];
  }
}

// The modes and nodes of the next level: unknown first[g] + c has row c of R of aggregate g, and node g.
// launch: elements of first, 256 threads
template <typename I>
__global__ void coarse_modes(Context* ctx, const I* first, int width, const double* coefficients, double* modes,
    I* nodes, long long n) {
  if (stopped(ctx)) return;
  const long long g = thread_id();
  if (g >= n - 1) return;
  for (I d = first[g]; d < first[g + 1]; ++d) {
    nodes[d] = I(g);
    for (int j = 0; j < width; ++j)
      modes[(long long)d * width + j] = coefficients[(g * width + (d - first[g])) * width + j];
  }
}

// out = the values of P = T − diag(scales)² A T on the pattern of A T, which contains T's pattern.
// launch: elements of scales, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I, typename P>
__global__ void smooth(Context* ctx, const I* indptr, const I* indices, const double* data, const P* t_indptr,
    const P* t_indices, const double* t_data, const double* scales, double* out, long long n, long long data_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n, lanes_for(n, data_size), [&](const Portion& p) {
    if (!p.there) return;
    const double weight = scales[p.row] * scales[p.row];
    const long long first = t_indptr[p.row], last = t_indptr[p.row + 1];
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) {
      const I column = indices[k];
      double value = 0;
      for (long long at = first; at < last; ++at)
        if (I(t_indices[at]) == column) value = t_data[at];
      out[k] = value - __dmul_rn(weight, data[k]);
    }
  });
}
