// Entries of a CSR matrix to their places in parts, on a GPU; formats/parts.py tells the layout.
#include "context.cuh"

// The values of the entries, without the diagonal where that is `apart`; and their local columns, where `local` gives one for each.
// launch: elements of indptr, 256 threads
template <typename T, typename I>
__global__ void write_entries(Context* ctx, const I* indptr, const I* indices, const T* data, const long long* slot,
                              const long long* start, const long long* local, int chunk, bool apart,
                              T* values, unsigned short* columns, long long n, long long local_size) {
  if (stopped(ctx)) return;
  const long long row = thread_id();
  if (row >= n - 1) return;
  const long long place = slot[row], begin = start[place / 32];
  constexpr long long size = sizeof(T);
  long long k = 0;
  for (I e = indptr[row]; e < indptr[row + 1]; ++e) {
    if (apart && indices[e] == row) continue;
    const long long column = begin + k, inside = column % chunk * 32 + place % 32, of_chunk = column / chunk * chunk;
    values[of_chunk * (32 + 64 / size) + inside] = data[e];
    if (local_size) columns[of_chunk * (16 * size + 32) + chunk * 16 * size + inside] = (unsigned short)local[e];
    ++k;
  }
}
