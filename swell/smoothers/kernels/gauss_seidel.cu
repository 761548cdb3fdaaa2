// Gauss-Seidel by colours on a GPU, one thread for each row. gauss_seidel.cpp has the kernels for a CPU, which needs no
// four loads in flight.
#include "context.cuh"

// Solve the rows of one colour, which do not couple. Slices of 32 rows store their entries position by position. -1
// marks a missing row or column.
// launch: elements of rows, 256 threads
template <typename T, typename I>
__global__ void color(Context* ctx, const I* rows, const I* ptr, const T* inverse, const I* columns, const T* values,
                      const T* b, T* x, long long n) {
  if (stopped(ctx)) return;
  const long long place = thread_id();
  if (place >= n) return;
  const I row = rows[place], end = ptr[place / 32 + 1];
  if (row < 0) return;
  T total = b[row];
  for (I at = ptr[place / 32] + I(place % 32); at < end; at += 128) {        // loads of four entries in flight
    I column[4];
    T value[4], gathered[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) column[k] = at + 32 * k < end ? __ldcs(columns + at + 32 * k) : I(-1);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (column[k] >= 0) {
        value[k] = load_stream(values + at + 32 * k);
        gathered[k] = x[column[k]];
      }
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (column[k] >= 0) total = fused(-value[k], gathered[k], total);
    if (column[3] < 0) break;
  }
  x[row] = total * inverse[place];
}
