// Matrices gathered over the faces of each cell, on a GPU: one thread a cell, no atomics. assembly.cpp is for a CPU.
#include "context.cuh"

// Computes the matrix rows from the fluxes F = a p_O + b p_N of the faces; see the CPU version. In CSR (indptr is not
// empty) a block collects its rows in shared memory and writes them in whole lines. In SELL neighbouring threads write
// neighbouring values anyway, and shared memory would only take space from the cache.
// launch: elements of middle, 128 threads
template <typename T, typename I, bool INDPTR>
__global__ void assemble(Context* ctx, const I* ptr, const I* faces, const I* places, const I* middle, const T* a,
    const T* b, const T* diagonal, const I* indptr, T* values, long long n, long long diagonal_size) {
  constexpr int ROOM = INDPTR ? 8192 / sizeof(T) : 1;          // 8 doubles a row on average; beyond, direct writes
  __shared__ alignas(16) char room[ROOM * sizeof(T)];
  if (stopped(ctx)) return;
  long long i = thread_id(), first = blockIdx.x * (long long)blockDim.x, end = min(first + blockDim.x, n);
  I from = INDPTR ? indptr[first] : I(0), count = INDPTR ? indptr[end] - from : I(0);
  bool gathered = INDPTR && count <= ROOM;
  T* target = gathered ? reinterpret_cast<T*>(room) : values;
  I shift = gathered ? from : I(0);
  if (i < n) {
    T own = diagonal_size ? diagonal[i] : T(0), other(0);
    I last = -1;
    for (I k = ptr[i]; k < ptr[i + 1]; ++k) {
      I f = faces[k], place = places[k];
      T part(0);
      if (f >= 0) {
        own += a[f];
        if (place >= 0) part = b[f];
      } else {
        own -= b[~f];
        part = -a[~f];
      }
      if (place >= 0) {
        other = place == last ? other + part : part;
        target[place - shift] = other;
      }
      last = place;
    }
    target[middle[i] - shift] = own;
  }
  if (!gathered) return;                             // uniform across the block, so that the barrier below is safe
  __syncthreads();
  for (I k = threadIdx.x; k < count; k += blockDim.x) values[from + k] = target[k];
}
