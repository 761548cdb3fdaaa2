// The dense inverse of the coarsest level on a GPU, in one launch; see coarsest.py one folder up.
#include "context.cuh"

// The inverse of a symmetric matrix, in place, by symmetric sweeps: one for each pivot, without exchanges. Sweep k needs row k
// as sweep k - 1 left it, which is column k, too: it is copied to one half of `rows` while the other half is read, so that one
// barrier a sweep does. matrix: row by row. Row and column k become zero where pivot k is at most `singular` times the diagonal
// entry that it was. worst[0] = the least such ratio, 1 at most. record[0] is the barrier's count, 0 before the launch.
// launch: 1 blocks per multiprocessor of 512 threads, all at once
template <typename P>
__global__ void __launch_bounds__(512) invert(Context* ctx, double* matrix, double* pivots, double* rows, double singular,
                                              double* worst, P* record, long long pivots_size) {
  if (stopped(ctx)) return;
  unsigned long long* arrived = reinterpret_cast<unsigned long long*>(record);
  const long long n = pivots_size;
  for (long long k = thread_id(); k < n; k += threads()) pivots[k] = matrix[k * n + k], rows[k] = matrix[k];
  grid_wait(arrived);
  double least = 1;
  for (long long k = 0; k < n; ++k) {
    const double *row = rows + k % 2 * n, before = __ldcg(pivots + k), pivot = __ldcg(row + k);
    double* next = rows + (k + 1) % 2 * n;
    const double ratio = before > 0 ? pivot / before : min(pivot, 0.0);
    const double inverse = ratio > singular ? 1 / pivot : 0.0;
    least = min(least, ratio);
    for (long long i = blockIdx.x; i < n; i += gridDim.x) {
      const double factor = __ldcg(row + i);
      for (long long j = threadIdx.x; j < n; j += blockDim.x) {
        double value = matrix[i * n + j];                             // written by this thread alone
        if (i == k || j == k) value = i == j ? -inverse : (i == k ? __ldcg(row + j) : factor) * inverse;
        else value -= factor * __ldcg(row + j) * inverse;
        matrix[i * n + j] = k + 1 < n ? value : -value;
        if (i == k + 1) next[j] = value;
      }
    }
    grid_wait(arrived);
  }
  if (thread_id() == 0) worst[0] = least;
}
