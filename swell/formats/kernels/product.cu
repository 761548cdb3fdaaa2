// Sparse products C = A B on a GPU, row by row; product.py is the same on a CPU, formats/product.py calls both.
//
// Rows lie in bins by an upper bound of their entries. A row of bin 0 to 4 has a group of 2, 4, 8, 16 or 32 lanes of one warp
// with room for `each` entries a lane; a row of the last bin has a whole block. Blocks take the rows of the largest bin first.
//
// Pattern: a group collects columns in a hash table in shared memory (open addressing, half full at most), and sorts them by
// counting smaller ones. A block sets bits in shared memory, one for each column of a range, range after range from the row's
// first column to its last; bits come out sorted.
// Values: C's sorted columns and their sums lie in shared memory (sums of very long rows in C itself). The group goes through A's
// row in order. Its lanes share a row of B, whose columns differ, so there are no atomics and each sum has one order.
#include "context.cuh"

constexpr int LOG_THREADS = 8, THREADS = 1 << LOG_THREADS, WARPS = THREADS / 32, BINS = 6, POOL = 32768;
constexpr long long RANGE = POOL * 8ll;                             // columns that have a bit at once
template <class I> constexpr int KEYS = POOL / THREADS / int(sizeof(I)) / 2;                       // a lane's columns, see KEYS
template <class T, class P> constexpr int SUMS = POOL / THREADS / int(sizeof(T) + sizeof(P));     // and SUMS of product.py

DEVICE int bin_of(long long entries, int each) {
  int bin = 0;
  while (bin < BINS - 1 && entries > (long long)each << (bin + 1)) ++bin;
  return bin;
}

// counts = the products a_ik b_kj of each row, but no more than B has columns.
// launch: elements of counts, 256 threads
template <typename I>
__global__ void products(Context* ctx, const I* a_indptr, const I* a_indices, const I* b_indptr, long long columns, I* counts,
                         long long n, long long a_indices_size) {
  if (stopped(ctx)) return;
  const int lane = threadIdx.x % 32;
  int lanes = 1;
  while (lanes < 32 && 2 * lanes * n <= a_indices_size) lanes *= 2;
  const long long first = thread_id() - lane;
  for (int pass = 0; pass < lanes; ++pass) {
    const long long row = first + pass * (32 / lanes) + lane / lanes;
    long long total = 0;
    if (row < n)
      for (long long k = (long long)a_indptr[row] + lane % lanes; k < a_indptr[row + 1]; k += lanes)
        total += (long long)b_indptr[a_indices[k] + 1] - (long long)b_indptr[a_indices[k]];
    for (int o = lanes / 2; o; o >>= 1) total += __shfl_xor_sync(~0u, total, o);
    if (row < n && lane % lanes == 0) counts[row] = I(min(total, columns));
  }
}

// bins[b] += how many rows lie in bin b.
// launch: elements of counts, 256 threads, at most 8 blocks per multiprocessor
template <typename I>
__global__ void count_bins(Context* ctx, const I* counts, int each, long long* bins, long long n) {
  if (stopped(ctx)) return;
  __shared__ int of_block[BINS];
  if (threadIdx.x < BINS) of_block[threadIdx.x] = 0;
  __syncthreads();
  for (long long row = thread_id(); row < n; row += threads()) atomicAdd(of_block + bin_of(counts[row], each), 1);
  __syncthreads();
  if (threadIdx.x < BINS && of_block[threadIdx.x])
    atomicAdd(reinterpret_cast<unsigned long long*>(bins) + threadIdx.x, (unsigned long long)of_block[threadIdx.x]);
}

// rows = the rows by bins, of which bin b has bounds[b] to bounds[b + 1]. Behind the sizes of the bins, `bins` has as many zeros.
// The order inside a bin, nearly ascending, changes no result.
// launch: elements of rows, 256 threads, at most 8 blocks per multiprocessor
template <typename I>
__global__ void place_rows(Context* ctx, const I* counts, int each, long long* bins, I* rows, long long* bounds, long long n) {
  if (stopped(ctx)) return;
  __shared__ int of_tile[BINS];
  __shared__ long long first[BINS];
  long long start = 0;                                              // of the bin that this thread looks after
  if (threadIdx.x <= BINS)
    for (int b = 0; b < threadIdx.x; ++b) start += bins[b];
  if (blockIdx.x == 0 && threadIdx.x <= BINS) bounds[threadIdx.x] = start;
  for (long long tile = blockIdx.x * (long long)blockDim.x; tile < n; tile += threads()) {
    if (threadIdx.x < BINS) of_tile[threadIdx.x] = 0;
    __syncthreads();
    const long long row = tile + threadIdx.x;
    const int bin = row < n ? bin_of(counts[row], each) : 0;
    const int place = row < n ? atomicAdd(of_tile + bin, 1) : 0;
    __syncthreads();
    if (threadIdx.x < BINS && of_tile[threadIdx.x])
      first[threadIdx.x] = start + (long long)atomicAdd(reinterpret_cast<unsigned long long*>(bins) + BINS + threadIdx.x,
                                                        (unsigned long long)of_tile[threadIdx.x]);
    __syncthreads();
    if (row < n) rows[first[bin] + place] = I(row);
  }
}

// Every row once: of_group(row, lanes) by the lanes of a group, all groups of a warp at once, row -1 where there is none;
// of_block(row) by a block.
template <class I, class OfGroup, class OfBlock>
DEVICE void for_rows(const I* rows, const long long* bounds, OfGroup of_group, OfBlock of_block) {
  long long item = blockIdx.x;
  for (int bin = BINS - 1; bin >= 0; --bin) {
    const long long first = bounds[bin], last = bounds[bin + 1];
    const int log = bin < BINS - 1 ? bin + 1 : LOG_THREADS, groups = THREADS >> log;               // 2^log lanes a row
    const long long items = (last - first + groups - 1) >> (LOG_THREADS - log);
    for (; item < items; item += gridDim.x) {
      const long long place = first + item * groups + (threadIdx.x >> log);
      const long long row = place < last ? (long long)rows[place] : -1;
      if (bin < BINS - 1) of_group(row, 1 << log);
      else of_block(row);
    }
    item -= items;
  }
}

// This thread's place among the lanes of its group, which are a power of two.
DEVICE int lane_of(int lanes) { return threadIdx.x & (lanes - 1); }

// Where a row begins and ends; nowhere for row -1.
template <class I> struct Span {
  I begin, end;
  DEVICE Span(const I* indptr, long long row) : begin(row < 0 ? I(0) : indptr[row]), end(row < 0 ? I(0) : indptr[row + 1]) {}
};

// The largest value of the groups of a warp, each of which has one.
DEVICE long long largest(long long value, int lanes) {
  for (int o = lanes; o < 32; o *= 2) value = max(value, __shfl_xor_sync(~0u, value, o));
  return value;
}

// By groups: visit(entry of B, a_ik) for every product of a row, next() after each k; A's values may be left out. All lanes of
// a warp make the same steps of k, as their shuffles need.
template <class T, class I, class Visit, class Next>
DEVICE void for_products(const I* a_indptr, const I* a_indices, const T* a_data, const I* b_indptr, long long row, int lanes,
                         Visit visit, Next next) {
  const Span<I> of_a(a_indptr, row);
  const int lane = lane_of(lanes), group = threadIdx.x % 32 - lane;
  long long k = (long long)of_a.begin + lane;
  for (long long left = largest(of_a.end - of_a.begin, lanes); left > 0; left -= lanes, k += lanes) {
    const bool there = k < of_a.end;
    const Span<I> of_b(b_indptr, there ? (long long)a_indices[k] : -1);
    const T a = there && a_data ? a_data[k] : T(0);
    const int steps = int(min(left, (long long)lanes));
    for (int t = 0; t < steps; ++t) {
      const long long begin = __shfl_sync(~0u, of_b.begin, group + t), end = __shfl_sync(~0u, of_b.end, group + t);
      const T factor = shuffle(a, group + t);
      for (long long entry = begin + lane; entry < end; entry += lanes) visit(entry, factor);
      next();
    }
  }
}

// -- columns of a row, by a group ---------------------------------------------------------------------------------------

DEVICE int swap_if_equal(int* at, int old, int value) { return atomicCAS(at, old, value); }
DEVICE long long swap_if_equal(long long* at, long long old, long long value) {
  return (long long)atomicCAS(reinterpret_cast<unsigned long long*>(at), (unsigned long long)old, (unsigned long long)value);
}

// The hash table of a row, -1 where it is empty.
template <class I> struct Table {
  I* keys;
  unsigned size;                                                    // a power of two

  // For up to this many columns, in this group's part of the pool.
  DEVICE Table(unsigned char* pool, long long most, int lanes)
      : keys((I*)pool + (threadIdx.x - lane_of(lanes)) * (2 * KEYS<I>)), size(2) {
    while (size < 2 * most) size *= 2;
    for (unsigned s = lane_of(lanes); s < size; s += lanes) keys[s] = I(-1);
    __syncwarp();
  }

  // True in the one lane that brought a new column.
  DEVICE bool insert(I column) {
    unsigned s = (unsigned(column) * 2654435761u) >> (__clz(size) + 1);
    while (true) {
      I found = *(volatile I*)(keys + s);
      if (found == I(-1)) found = swap_if_equal(keys + s, I(-1), column);
      if (found == I(-1)) return true;
      if (found == column) return false;
      s = (s + 1) & (size - 1);
    }
  }

  // The columns to the front of the table, in any order; how many there are.
  DEVICE int gather(int lanes) {
    const int lane = lane_of(lanes), group = threadIdx.x % 32 - lane;
    const unsigned all = ~0u >> (32 - lanes), before = (1u << lane) - 1;
    const long long end = largest(size, lanes);
    int count = 0;
    __syncwarp();
    for (unsigned first = 0; first < end; first += lanes) {
      const I key = first + lane < size ? keys[first + lane] : I(-1);
      const unsigned full = (__ballot_sync(~0u, key != I(-1)) >> group) & all;
      if (key != I(-1)) keys[count + __popc(full & before)] = key;
      count += __popc(full);
      __syncwarp();
    }
    return count;
  }
};

// -- columns of a row, by a block ---------------------------------------------------------------------------------------

// The first of the places from one to another whose column, which ascend, is not below this one.
template <class I, class N> DEVICE N first_from(const I* indices, N from, N to, long long column) {
  while (from < to) {
    const N middle = from + (to - from) / 2;
    if (indices[middle] < column) from = middle + 1; else to = middle;
  }
  return from;
}

// A bit for each column of a row, range after range; take(first column of 32, their bits, how many columns are before them).
// Returns how many there are in all.
template <class I, class Take>
DEVICE long long for_bits(unsigned char* pool, const I* a_indptr, const I* a_indices, const I* b_indptr, const I* b_indices,
                          long long row, Take take) {
  __shared__ long long lowest[WARPS], highest[WARPS], of_warp[WARPS];
  unsigned* bits = reinterpret_cast<unsigned*>(pool);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Span<I> of_a(a_indptr, row);
  long long low = 0x7FFFFFFFFFFFFFFFll, high = -1;
  for (long long k = (long long)of_a.begin + threadIdx.x; k < of_a.end; k += THREADS) {
    const Span<I> of_b(b_indptr, a_indices[k]);
    if (of_b.begin == of_b.end) continue;
    low = min(low, (long long)b_indices[of_b.begin]);
    high = max(high, (long long)b_indices[of_b.end - 1]);
  }
  for (int o = 16; o; o >>= 1)
    low = min(low, __shfl_xor_sync(~0u, low, o)), high = max(high, __shfl_xor_sync(~0u, high, o));
  if (lane == 0) lowest[warp] = low, highest[warp] = high;
  __syncthreads();
  for (int w = 0; w < WARPS; ++w) low = min(low, lowest[w]), high = max(high, highest[w]);
  long long before = 0;
  for (long long base = low / 32 * 32; base <= high; base += RANGE) {
    const long long top = min(base + RANGE, high + 1);
    const int words = int((top - base + 31) / 32), part = (words + THREADS - 1) / THREADS * 32;   // words of a warp
    for (int w = threadIdx.x; w < words; w += THREADS) bits[w] = 0;
    __syncthreads();
    for (long long k = (long long)of_a.begin + warp; k < of_a.end; k += WARPS) {
      const Span<I> of_b(b_indptr, a_indices[k]);
      const I first = base <= low ? of_b.begin : first_from(b_indices, of_b.begin, of_b.end, base);
      for (long long entry = (long long)first + lane; entry < of_b.end; entry += 32) {
        const long long column = b_indices[entry];
        if (column >= top) break;
        atomicOr(bits + (column - base) / 32, 1u << (column - base) % 32);
      }
    }
    __syncthreads();
    const int begin = warp * part, end = min(begin + part, words);
    int mine = 0;
    for (int w = begin + lane; w < end; w += 32) mine += __popc(bits[w]);
    for (int o = 16; o; o >>= 1) mine += __shfl_xor_sync(~0u, mine, o);
    if (lane == 0) of_warp[warp] = mine;
    __syncthreads();
    long long at = before;
    for (int w = 0; w < WARPS; ++w) {
      if (w < warp) at += of_warp[w];
      before += of_warp[w];
    }
    for (int first = begin; first < end; first += 32) {             // all lanes of a warp make the same steps
      const unsigned word = first + lane < end ? bits[first + lane] : 0;
      int upto = __popc(word);
      for (int o = 1; o < 32; o *= 2) {
        const int below = __shfl_up_sync(~0u, upto, o);
        if (lane >= o) upto += below;
      }
      take(base + (first + lane) * 32ll, word, at + upto - __popc(word));
      at += __shfl_sync(~0u, upto, 31);
    }
    __syncthreads();
  }
  return before;
}

// -- the phases ---------------------------------------------------------------------------------------------------------

// counts = the entries of each row of C; they come as upper bounds.
// launch: 5 blocks per multiprocessor of 256 threads
template <typename I>
__global__ void __launch_bounds__(256, 5) count(Context* ctx, const I* a_indptr, const I* a_indices, const I* b_indptr,
                                             const I* b_indices, long long columns, const I* rows, const long long* bounds,
                                             I* counts) {
  if (stopped(ctx)) return;
  __shared__ alignas(16) unsigned char pool[POOL];
  for_rows(
      rows, bounds,
      [&](long long row, int lanes) {
        Table<I> table(pool, row < 0 ? 0 : (long long)counts[row], lanes);
        int found = 0;
        for_products<float>(
            a_indptr, a_indices, (const float*)nullptr, b_indptr, row, lanes,
            [&](long long entry, float) { found += table.insert(b_indices[entry]); }, [] {});
        for (int o = lanes / 2; o; o >>= 1) found += __shfl_xor_sync(~0u, found, o);
        if (row >= 0 && lane_of(lanes) == 0) counts[row] = I(found);
        __syncwarp();
      },
      [&](long long row) {
        const long long found = for_bits(pool, a_indptr, a_indices, b_indptr, b_indices, row, [](long long, unsigned, long long) {});
        if (threadIdx.x == 0) counts[row] = I(found);
        __syncthreads();
      });
}

// indices = the columns of C, sorted in each row; rows and bounds as in `count`.
// launch: 5 blocks per multiprocessor of 256 threads
template <typename I, typename P>
__global__ void __launch_bounds__(256, 5) columns(Context* ctx, const I* a_indptr, const I* a_indices, const I* b_indptr,
                                               const I* b_indices, const I* rows, const long long* bounds, const P* indptr,
                                               P* indices) {
  if (stopped(ctx)) return;
  __shared__ alignas(16) unsigned char pool[POOL];
  for_rows(
      rows, bounds,
      [&](long long row, int lanes) {
        const Span<P> of_c(indptr, row);
        Table<I> table(pool, of_c.end - of_c.begin, lanes);
        for_products<float>(
            a_indptr, a_indices, (const float*)nullptr, b_indptr, row, lanes,
            [&](long long entry, float) { table.insert(b_indices[entry]); }, [] {});
        const int count = table.gather(lanes);
        for (int x = lane_of(lanes); x < count; x += lanes) {
          const I column = table.keys[x];
          int smaller = 0;
          for (int y = 0; y < count; ++y) smaller += table.keys[y] < column;
          indices[of_c.begin + smaller] = P(column);
        }
        __syncwarp();
      },
      [&](long long row) {
        const P begin = indptr[row];
        for_bits(pool, a_indptr, a_indices, b_indptr, b_indices, row, [&](long long first, unsigned word, long long at) {
          for (; word; word &= word - 1) indices[begin + at++] = P(first + __ffs(word) - 1);
        });
        __syncthreads();
      });
}

// The values of C, whose pattern is known.
// launch: 5 blocks per multiprocessor of 256 threads
template <typename T, typename I, typename P>
__global__ void __launch_bounds__(256, 5) values(Context* ctx, const I* a_indptr, const I* a_indices, const T* a_data,
                                              const I* b_indptr, const I* b_indices, const T* b_data, long long columns,
                                              const I* rows, const long long* bounds, const P* indptr, const P* indices, T* data) {
  if (stopped(ctx)) return;
  constexpr int EACH = SUMS<T, P>;
  __shared__ alignas(16) unsigned char pool[POOL];
  T* const all_sums = reinterpret_cast<T*>(pool);
  P* const all_keys = reinterpret_cast<P*>(pool + THREADS * EACH * sizeof(T));
  for_rows(
      rows, bounds,
      [&](long long row, int lanes) {
        const Span<P> of_c(indptr, row);
        const int lane = lane_of(lanes), length = int(of_c.end - of_c.begin), own = (threadIdx.x - lane) * EACH;
        T* const sums = all_sums + own;
        P* const keys = all_keys + own;
        for (int x = lane; x < length; x += lanes) keys[x] = indices[of_c.begin + x], sums[x] = T(0);
        __syncwarp();
        for_products(
            a_indptr, a_indices, a_data, b_indptr, row, lanes,
            [&](long long entry, T a) {
              const int place = first_from(keys, 0, length, b_indices[entry]);
              sums[place] = unfused(a, b_data[entry], sums[place]);
            },
            [] { __syncwarp(); });
        for (int x = lane; x < length; x += lanes) data[of_c.begin + x] = sums[x];
        __syncwarp();
      },
      [&](long long row) {
        const Span<I> of_a(a_indptr, row);
        const Span<P> of_c(indptr, row);
        const P length = of_c.end - of_c.begin;
        const bool fits = length <= THREADS * EACH;
        T* const sums = fits ? all_sums : data + of_c.begin;
        const P* const keys = fits ? all_keys : indices + of_c.begin;
        for (P x = threadIdx.x; x < length; x += THREADS) {
          if (fits) all_keys[x] = indices[of_c.begin + x];
          sums[x] = T(0);
        }
        __syncthreads();
        for (I k = of_a.begin; k < of_a.end; ++k) {
          const Span<I> of_b(b_indptr, a_indices[k]);
          const T a = a_data[k];
          for (long long entry = (long long)of_b.begin + threadIdx.x; entry < of_b.end; entry += THREADS) {
            const P place = first_from(keys, P(0), length, b_indices[entry]);
            sums[place] = unfused(a, b_data[entry], sums[place]);
          }
          __syncthreads();
        }
        if (fits)
          for (P x = threadIdx.x; x < length; x += THREADS) data[of_c.begin + x] = sums[x];
        __syncthreads();
      });
}
