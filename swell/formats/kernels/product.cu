// Sparse products C = A B on a GPU, row by row; formats/product.py calls these kernels, product.cpp has the CPU's.
//
// Rows lie in bins (product_bins.cu). A row of bin 0 to 4 has a group of 2, 4, 8, 16 or 32 lanes of one warp; a row of
// the last bin has a whole block. Blocks take the rows of the largest bin first.
//
// Pattern: a group collects columns in a hash table in shared memory (open addressing). It sorts them by rank, the
// number of smaller columns. Several lanes share a row of B, about as many as B's mean row has entries; other lanes of
// the group read other rows. The table has a place for each product of a row, or two if there is room. A block sets
// bits in shared memory, one for each column of a range, range after range from the row's first column to its last. The
// bits yield sorted columns.
// Values: C's sorted columns and their sums lie in shared memory (sums of very long rows in C itself). The group goes
// through A's row in order. Its lanes share a row of B, whose columns differ. So no atomics are needed, and each sum
// has a fixed order.
//
// Loads are issued early: each thread loads its next entries before it works on the present ones.
#include "binned.cuh"

constexpr int POOL = 32768;                                         // bytes of shared memory
constexpr long long RANGE = POOL * 8ll;                             // columns that have a bit at once
template <class I> constexpr int SLOTS = POOL / THREADS / int(sizeof(I));          // hash places for a lane
template <class I> constexpr int PACK = 16 / int(sizeof(I));        // read at once; between tables, for the banks
template <class T, class P> constexpr int SUMS = POOL / THREADS / int(sizeof(T) + sizeof(P));  // sums of a lane
constexpr int BATCH = 4;                                            // rows of B whose loads are in flight

// The maximum over a warp of its groups' values; all lanes of a group have one value.
DEVICE long long largest(long long value, int lanes) {
  for (int o = lanes; o < 32; o *= 2) value = max(value, __shfl_xor_sync(~0u, value, o));
  return value;
}

DEVICE int from_lane(int value, int lane) { return __shfl_sync(~0u, value, lane); }
DEVICE long long from_lane(long long value, int lane) { return __shfl_sync(~0u, value, lane); }

// By groups: call add(column, a_ik, b_kj) for every product of a row, and next() after each k. All lanes of a warp make
// the same steps of k, since they use shuffles.
template <class T, class I, class Add, class Next>
DEVICE void for_products(const I* a_indptr, const I* a_indices, const T* a_data, const I* b_indptr, const I* b_indices,
                         const T* b_data, long long row, int lanes, Add add, Next next) {
  const Span<I> of_a(a_indptr, row);
  const int lane = lane_of(lanes), group = threadIdx.x % 32 - lane;
  const auto row_of_b = [&](long long k) { return k < of_a.end ? (long long)a_indices[k] : -1ll; };
  long long k = (long long)of_a.begin + lane, following = row_of_b(k + lanes);
  Span<I> of_b(b_indptr, row_of_b(k));
  for (long long left = largest(of_a.end - of_a.begin, lanes); left > 0; left -= lanes, k += lanes) {
    const T a = k < of_a.end ? a_data[k] : T(0);
    const Span<I> its_next(b_indptr, following);
    following = row_of_b(k + 2 * lanes);
    const int steps = int(min(left, (long long)lanes));
    for (int step = 0; step < steps; step += BATCH) {
      I at[BATCH], end[BATCH], column[BATCH];
      T value[BATCH];
#pragma unroll
      for (int s = 0; s < BATCH; ++s) {
        const int from = group + (step + s & (lanes - 1));
        at[s] = from_lane(of_b.begin, from) + lane, end[s] = from_lane(of_b.end, from);
        if (step + s >= steps) end[s] = 0;
        if (at[s] < end[s]) column[s] = b_indices[at[s]], value[s] = b_data[at[s]];
      }
#pragma unroll
      for (int s = 0; s < BATCH; ++s) {
        const T factor = shuffle(a, group + (step + s & (lanes - 1)));
        if (at[s] < end[s]) add(column[s], factor, value[s]);
        for (I entry = at[s] + lanes; entry < end[s]; entry += lanes) add(b_indices[entry], factor, b_data[entry]);
        next();
      }
    }
    of_b = its_next;
  }
}

// By groups, whose lanes may diverge: call visit(column) for every product of a row. `width` lanes, at most the whole
// group, share a row of B.
template <class I, class Visit>
DEVICE void for_columns(const I* a_indptr, const I* a_indices, const I* b_indptr, const I* b_indices, long long row,
    int lanes, int width, Visit visit) {
  const Span<I> of_a(a_indptr, row);
  const int part = lane_of(lanes) & (width - 1), step = lanes / width;
  const auto row_of_b = [&](long long k) { return k < of_a.end ? (long long)a_indices[k] : -1ll; };
  long long k = (long long)of_a.begin + lane_of(lanes) / width, after_next = row_of_b(k + 2 * step);
  Span<I> of_b(b_indptr, row_of_b(k)), following(b_indptr, row_of_b(k + step));
  I column = of_b.begin + part < of_b.end ? b_indices[of_b.begin + part] : I(-1);
  for (; k < of_a.end; k += step) {
    const Span<I> behind(b_indptr, after_next);
    after_next = row_of_b(k + 3 * step);
    const I its_first = following.begin + part < following.end ? b_indices[following.begin + part] : I(-1);
    if (column >= 0) visit(column);
    for (I entry = of_b.begin + part + width; entry < of_b.end; entry += BATCH * width) {
      I more[BATCH];
#pragma unroll
      for (int s = 0; s < BATCH; ++s) more[s] = entry + s * width < of_b.end ? b_indices[entry + s * width] : I(-1);
#pragma unroll
      for (int s = 0; s < BATCH; ++s)
        if (more[s] >= 0) visit(more[s]);
    }
    of_b = following, following = behind, column = its_first;
  }
}

// -- columns of a row, by a group ------------------------------------------------------------------------------------

DEVICE int swap_if_equal(int* at, int old, int value) { return atomicCAS(at, old, value); }
DEVICE long long swap_if_equal(long long* at, long long old, long long value) {
  return (long long)atomicCAS(reinterpret_cast<unsigned long long*>(at), (unsigned long long)old,
      (unsigned long long)value);
}

template <class I> struct alignas(16) Pack16 {
  I key[PACK<I>];
};
constexpr int TABLES = POOL / WARPS + 16 * 16;                   // bytes of a warp's tables, with the gaps between them

// The hash table of a row, in this group's part of its warp's tables; -1 marks an empty slot.
template <class I> struct Table {
  I* keys;
  unsigned size;                                                    // a power of two

  // Make an empty table for up to `most` columns, or as many as there is room for.
  DEVICE Table(unsigned char* pool, long long most, int lanes)
      : keys((I*)(pool + threadIdx.x / 32 * TABLES) + threadIdx.x % 32 / lanes * (SLOTS<I> * lanes + PACK<I>)),
        size(PACK<I>) {
    while (size < 2 * most && size < unsigned(SLOTS<I> * lanes)) size *= 2;
    Pack16<I> none;
#pragma unroll
    for (int e = 0; e < PACK<I>; ++e) none.key[e] = I(-1);
    for (unsigned s = lane_of(lanes); s < size / PACK<I>; s += lanes) reinterpret_cast<Pack16<I>*>(keys)[s] = none;
    __syncwarp();
  }

  DEVICE void insert(I column) {
    unsigned s = (unsigned(column) * 2654435761u) >> (__clz(size) + 1);
    while (true) {
      I found = *(volatile I*)(keys + s);
      if (found == I(-1)) found = swap_if_equal(keys + s, I(-1), column);
      if (found == I(-1) || found == column) return;
      s = (s + 1) & (size - 1);
    }
  }

  // Move the columns to the front, in any order, and fill up the last pack with a larger number. Returns their count.
  DEVICE int gather(int lanes) {
    const int lane = lane_of(lanes), group = threadIdx.x % 32 - lane;
    const unsigned all = ~0u >> (32 - lanes), before = (1u << lane) - 1;
    const long long end = largest(size, lanes);
    int count = 0;
    __syncwarp();
    for (unsigned first = 0; first < end; first += lanes * PACK<I>) {
      const unsigned at = first + lane * PACK<I>;
      Pack16<I> mine;
#pragma unroll
      for (int e = 0; e < PACK<I>; ++e) mine.key[e] = I(-1);
      if (at < size) mine = reinterpret_cast<const Pack16<I>*>(keys)[at / PACK<I>];
      __syncwarp();                                                 // all have loaded before one stores
      unsigned full[PACK<I>];
#pragma unroll
      for (int e = 0; e < PACK<I>; ++e) full[e] = (__ballot_sync(~0u, mine.key[e] != I(-1)) >> group) & all;
#pragma unroll
      for (int e = 0; e < PACK<I>; ++e) {
        if (mine.key[e] != I(-1)) keys[count + __popc(full[e] & before)] = mine.key[e];
        count += __popc(full[e]);
      }
      __syncwarp();
    }
    if (lane == 0)
      for (int x = count; x % PACK<I>; ++x) keys[x] = I(~0ull >> (65 - 8 * sizeof(I)));
    __syncwarp();
    return count;
  }

  // The number of columns smaller than `column` among the first `count`.
  DEVICE int smaller_than(I column, int count) const {
    int smaller = 0;
#pragma unroll 2
    for (int y = 0; y < count; y += PACK<I>) {
      const Pack16<I> others = reinterpret_cast<const Pack16<I>*>(keys)[y / PACK<I>];
#pragma unroll
      for (int e = 0; e < PACK<I>; ++e) smaller += others.key[e] < column;
    }
    return smaller;
  }
};

// -- columns of a row, by a block ------------------------------------------------------------------------------------

// Set a bit for each column of a row, range after range. Then each word of 32 columns is passed to take(its first
// column, its bits, the number of columns before it). Returns the number of columns.
template <class I, class Take>
DEVICE long long for_bits(unsigned char* pool, const I* a_indptr, const I* a_indices, const I* b_indptr,
    const I* b_indices, long long row, Take take) {
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
    for (int first = begin; first < end; first += 32) {             // all lanes of a warp together
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

// -- the phases ------------------------------------------------------------------------------------------------------

// The number of lanes that share a row of B: about the length of its mean row.
DEVICE int width_for(long long rows, long long entries) {
  int width = 1;
  while (width < 32 && 3 * width * rows < 2 * entries) width *= 2;
  return width;
}

// counts = the number of entries in each row of C; upper bounds on entry. indices, unless empty, = the sorted columns
// of row i from starts[i] on.
// launch: 4 blocks per multiprocessor of 256 threads
template <typename I, bool INDICES>
__global__ void __launch_bounds__(256, 4) columns(Context* ctx, const I* a_indptr, const I* a_indices,
    const I* b_indptr, const I* b_indices, const I* rows, const long long* bounds, const long long* starts, I* indices,
    I* counts, long long b_indptr_size, long long b_indices_size) {
  if (stopped(ctx)) return;
  __shared__ alignas(16) unsigned char pool[WARPS * TABLES];
  const int mean = width_for(b_indptr_size - 1, b_indices_size);
  for_rows(
      rows, bounds,
      [&](long long row, int lanes) {
        const int lane = lane_of(lanes);
        Table<I> table(pool, row < 0 ? 0 : (long long)counts[row], lanes);
        for_columns(a_indptr, a_indices, b_indptr, b_indices, row, lanes, min(mean, lanes),
            [&](I column) { table.insert(column); });
        const int count = table.gather(lanes);
        if (row >= 0 && lane == 0) counts[row] = I(count);
        for (int x = lane; INDICES && x < count; x += lanes) {
          const I column = table.keys[x];
          indices[starts[row] + table.smaller_than(column, count)] = column;
        }
        __syncwarp();
      },
      [&](long long row) {
        const long long begin = INDICES ? starts[row] : 0;
        const long long found = for_bits(pool, a_indptr, a_indices, b_indptr, b_indices, row,
                                         [&](long long first, unsigned word, long long at) {
          if (INDICES)
            for (; word; word &= word - 1) indices[begin + at++] = I(first + __ffs(word) - 1);
        });
        if (threadIdx.x == 0) counts[row] = I(found);
        __syncthreads();
      });
}

// indices = the columns of C without gaps; in `from`, row i begins at starts[i].
// launch: elements of indptr, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I, typename P>
__global__ void join_rows(Context* ctx, const long long* starts, const I* from, const P* indptr, P* indices,
    long long n, long long indices_size) {
  if (stopped(ctx)) return;
  visit_all(indptr, n - 1, lanes_for(n - 1, indices_size), [&](const Portion& p) {
    const long long apart = p.there ? starts[p.row] - p.begin : 0;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) indices[k] = P(from[k + apart]);
  });
}

// data = the values of C on its known pattern.
// launch: 4 blocks per multiprocessor of 256 threads
template <typename T, typename I, typename P>
__global__ void __launch_bounds__(256, 4) values(Context* ctx, const I* a_indptr, const I* a_indices, const T* a_data,
    const I* b_indptr, const I* b_indices, const T* b_data, long long columns, const I* rows, const long long* bounds,
    const P* indptr, const P* indices, T* data) {
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
            a_indptr, a_indices, a_data, b_indptr, b_indices, b_data, row, lanes,
            [&](I column, T a, T b) {
              const int place = first_from(keys, 0, length, column);
              sums[place] = unfused(a, b, sums[place]);
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
