// The choice of a pivot and the swap of two rows, on a GPU; pivoting.cpp is the CPU's version.
// The threads of a block search a column together here; a CPU scans it, in crout.cpp too.
#include "context.cuh"
#include "pivot.cuh"

// pivots[j] = the row of the largest element in column j from row j on; -1 if |lu[j, j]| is above `tolerance`.
// launch: one block of 1024 threads
template <typename T> __global__ void __launch_bounds__(1024) pick_pivot(Context* ctx, const T* lu, long long row,
    long long column, int j, double tolerance, int n, int* pivots) {
  if (stopped(ctx)) return;
  const bool wanted = !(double(modulus(lu[j * (row + column)])) > tolerance);
  double size = -1;
  int where = n;
  for (int i = j + threadIdx.x; wanted && i < n; i += blockDim.x)
    take_larger(size, where, size_of(lu[i * row + j * column]), i);
  largest_of_block(size, where);
  if (threadIdx.x == 0) pivots[j] = wanted ? where : -1;
}

// Swap row j with its pivot's row, a thread an element; the array of pivots has the length of a row.
// launch: elements of pivots, 256 threads
template <typename T> __global__ void swap_rows(Context* ctx, T* lu, long long row, long long column, int j, int n,
                                                const int* pivots) {
  if (stopped(ctx)) return;
  const long long k = thread_id();
  const int p = pivots[j];
  if (k >= n || p <= j) return;
  const T a = lu[j * row + k * column], b = lu[p * row + k * column];
  lu[j * row + k * column] = b, lu[p * row + k * column] = a;
}
