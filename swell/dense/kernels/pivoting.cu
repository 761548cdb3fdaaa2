// The choice of a pivot and the swap of two rows, on a GPU; as in pivoting.py.
#include "context.cuh"
#include "settled.cuh"

// The larger of two, the first of them where they are equal.
DEVICE void take_larger(double& size, int& where, double other, int there) {
  if (other > size || (other == size && there < where)) size = other, where = there;
}

// launch: one block of 1024 threads
template <typename T> __global__ void __launch_bounds__(1024) pick_pivot(Context* ctx, const T* lu, long long row,
    long long column, int j, double tolerance, int n, int* pivots) {
  if (stopped(ctx)) return;
  __shared__ double sizes[32];
  __shared__ int places[32];
  if (double(modulus(lu[j * (row + column)])) > tolerance) {
    if (threadIdx.x == 0) pivots[j] = -1;
    return;
  }
  double size = -1;
  int where = n;
  for (int i = j + threadIdx.x; i < n; i += blockDim.x) {
    double own = modulus(lu[i * row + j * column]);
    if (!(own >= 0)) own = __longlong_as_double(0x7FF0000000000000ll);           // a NaN counts as the largest
    take_larger(size, where, own, i);
  }
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int o = 16; o; o >>= 1) take_larger(size, where, shuffle_xor(size, o), __shfl_xor_sync(~0u, where, o));
  if (lane == 0) sizes[warp] = size, places[warp] = where;
  __syncthreads();
  if (warp) return;
  size = sizes[lane], where = places[lane];
  for (int o = 16; o; o >>= 1) take_larger(size, where, shuffle_xor(size, o), __shfl_xor_sync(~0u, where, o));
  if (lane == 0) pivots[j] = where;
}

// A thread an element of the rows: there are as many as there are pivots.
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
