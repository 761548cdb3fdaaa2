// Kernels that build the layout of a matrix in parts, only for GPUs; formats/parts.py describes the layout.
//
// part[row] is the row's part, and slot[row] = 32 slice + lane its place: within its part, and, after the kernel
// `place`, among all parts. Arrays made before the number of slices is known have room for `stride` slices a part. The
// bits of bits[(b parts + p) stride + s] are the rows of slice s of part p that belong to the halo of part b. The same
// element of `starts` is the number of halo rows of part b before them.
#include "rows.cuh"
#include "scan.cuh"

constexpr int WARPS = 15;                                       // warps that share a part's slices, as in parts.py
constexpr int AT_SLICES = 0, AT_INTERIOR = 1, AT_HALO = 2, AT_COLUMNS = 3, AT_BOUNDARY = AT_COLUMNS + WARPS,
    FACTS = AT_BOUNDARY + WARPS;
constexpr int EXACT = 128, STEPS = 8, BINS = EXACT + 25 * STEPS;  // lengths from EXACT on: 8 bins for each power of two
constexpr int SORTERS = 16, MOST = 640;                         // warps that sort a part; most slices of a part

struct Slice { int before, width; };                            // columns before it in its warp's stream, and its own
struct Stream { int chunk, chunks, boundary, unused; };
struct Table { int slices, interior, publish, halo_from, halo; };

// The rows of part b: places begin to end - 1 of the order; an empty order is the identity.
struct Range {
  long long begin, end;
  DEVICE Range(long long b, long long parts, long long n) : begin((b * n + parts - 1) / parts),
      end(((b + 1) * n + parts - 1) / parts) {}
};

// The bin of a length; longer ones come first.
DEVICE int bin_of(int length) {
  if (length < EXACT) return BINS - 1 - length;
  const int power = 31 - __clz(length);
  return BINS - 1 - (EXACT + (power - 7) * STEPS + (length >> (power - 3)) % STEPS);
}

// The place of the k-th of `count` slices, which come by descending width and take the places from `low` on. Rows of
// WARPS places are filled alternately from the left and from the right, so that all warps get about equal widths.
DEVICE int snake(int k, int low, int count) {
  const int at = low + k, turn = at / WARPS;
  return turn % 2 ? max(low, turn * WARPS) + min(low + count, (turn + 1) * WARPS) - 1 - at : at;
}

// part = the part of each row.
// launch: elements of part, 256 threads
template <typename I>
__global__ void number(Context* ctx, const I* order, int* part, long long parts, long long n, long long order_size) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i < n) part[order_size ? order[i] : i] = int(i * parts / n);
}

// boundary = 1 for rows that other parts need, or that need rows of other parts; all 0 on entry.
// launch: elements of part, 256 threads
template <typename I>
__global__ void mark_boundary(Context* ctx, const I* indptr, const I* indices, const int* part, unsigned char* boundary,
    long long n, long long indices_size) {
  if (stopped(ctx)) return;
  visit_rows(indptr, thread_id() - threadIdx.x % 32, n, lanes_for(n, indices_size), [&](const Portion& p) {
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes)
      if (part[indices[k]] != part[p.row]) boundary[indices[k]] = boundary[p.row] = 1;
  });
}

// slot = the place of each row in its part: interior rows, then boundary rows, both by descending bin of length; the
// sort is stable. facts = the numbers of each part, and behind them the number of boundary rows, 0 on entry.
// launch: 1 blocks per multiprocessor of 512 threads
template <typename I>
__global__ void __launch_bounds__(512) sort_rows(Context* ctx, const I* indptr, const I* order,
    const unsigned char* boundary, bool apart, int parts, int stride, unsigned short* keys, int* slot, int* slices,
    int* facts, long long boundary_size, long long order_size) {
  if (stopped(ctx)) return;
  __shared__ unsigned short of_warp[SORTERS][2 * BINS];  // a warp's rows in each bin; later the rows of earlier warps
  __shared__ int start[2 * BINS + 1], widths[MOST];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int b = blockIdx.x; b < parts; b += gridDim.x) {
    const Range range(b, parts, boundary_size);
    const int rows = int(range.end - range.begin), each = (rows + 32 * SORTERS - 1) / (32 * SORTERS) * 32;
    const long long begin = min(range.end, range.begin + warp * each), end = min(range.end, begin + each);
    for (int k = threadIdx.x; k < SORTERS * 2 * BINS; k += blockDim.x) of_warp[0][k] = 0;
    for (int s = threadIdx.x; s < MOST; s += blockDim.x) widths[s] = 1;
    __syncthreads();
    for (long long first = begin; first < end; first += 32) {
      const long long i = first + lane;
      int key = 2 * BINS;
      if (i < end) {
        const long long row = order_size ? order[i] : i;
        keys[i] = key = boundary[row] * BINS + bin_of(int(indptr[row + 1] - indptr[row]) - apart);
      }
      const unsigned alike = __match_any_sync(~0u, key);
      if (i < end && lane == __ffs(alike) - 1) of_warp[warp][key] += __popc(alike);
      __syncwarp();
    }
    __syncthreads();
    for (int key = threadIdx.x; key < 2 * BINS; key += blockDim.x) {
      int sum = 0;
      for (int w = 0; w < SORTERS; ++w) {
        const int mine = of_warp[w][key];
        of_warp[w][key] = sum;
        sum += mine;
      }
      start[key] = sum;
    }
    __syncthreads();
    scan(2 * BINS, [&](long long key) { return (long long)start[key]; },
        [&](long long key, long long sum) { start[key] = int(sum); });
    __syncthreads();
    const int inside = start[BINS], interior = (inside + 31) / 32, outer = (rows - inside + 31) / 32;
    for (long long first = begin; first < end; first += 32) {
      const long long i = first + lane;
      const int key = i < end ? keys[i] : 2 * BINS;
      const unsigned alike = __match_any_sync(~0u, key);
      const int before = i < end ? of_warp[warp][key] : 0;
      __syncwarp();
      if (i < end) {
        const long long row = order_size ? order[i] : i;
        const int at = start[key] + before + __popc(alike & ((1u << lane) - 1)), k = key < BINS ? at : at - inside;
        const int place = key < BINS ? snake(k / 32, 0, interior) : snake(k / 32, interior, outer);
        slot[row] = 32 * place + k % 32;
        atomicMax(widths + place, int(indptr[row + 1] - indptr[row]) - apart);
        if (lane == __ffs(alike) - 1) of_warp[warp][key] += __popc(alike);
      }
      __syncwarp();
    }
    __syncthreads();
    int* const fact = facts + b * FACTS;
    if (threadIdx.x < WARPS) {
      int columns = 0, bound = -1;                              // no boundary
      for (int s = threadIdx.x; s < interior + outer; s += WARPS) {
        if (bound < 0 && s >= interior) bound = columns;
        reinterpret_cast<Slice*>(slices)[(long long)b * stride + s] = {columns, widths[s]};
        columns += widths[s];
      }
      fact[AT_COLUMNS + threadIdx.x] = columns, fact[AT_BOUNDARY + threadIdx.x] = bound;
    }
    if (threadIdx.x == 0) {
      fact[AT_SLICES] = interior + outer, fact[AT_INTERIOR] = interior;
      atomicAdd(facts + parts * FACTS, rows - inside);
    }
    __syncthreads();
  }
}

// Set the bits of each part's halo; all 0 on entry. If more than `most` rows are boundary, nothing is done: these parts
// are rejected.
// launch: elements of part, 256 threads
template <typename I>
__global__ void mark_halos(Context* ctx, const I* indptr, const I* indices, const int* part, const int* slot,
    const int* facts, int parts, int stride, long long most, unsigned* bits, long long n, long long indices_size) {
  if (stopped(ctx) || facts[parts * FACTS] > most) return;
  visit_rows(indptr, thread_id() - threadIdx.x % 32, n, lanes_for(n, indices_size), [&](const Portion& p) {
    const long long own = p.there ? part[p.row] : 0;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) {
      const long long column = indices[k];
      const int other = part[column];
      if (other == own) continue;
      unsigned* const word = bits + (own * parts + other) * stride + slot[column] / 32;
      const unsigned bit = 1u << slot[column] % 32;
      if (!(__ldcg(word) & bit)) atomicOr(word, bit);
    }
  });
}

// starts = the number of halo rows before each word of bits; facts: the halo size of each part.
// launch: 1 blocks per multiprocessor of 512 threads
template <typename P>
__global__ void __launch_bounds__(512) count_halos(Context* ctx, const unsigned* bits, int parts, int stride, P* starts,
    int* facts) {
  if (stopped(ctx)) return;
  const long long words = (long long)parts * stride;
  for (long long b = blockIdx.x; b < parts; b += gridDim.x) {
    const long long halo = scan(words, [&](long long i) { return (long long)__popc(bits[b * words + i]); },
                                [&](long long i, long long sum) { starts[b * words + i] = P(sum); });
    if (threadIdx.x == 0) facts[b * FACTS + AT_HALO] = int(halo);
  }
}

// Write the layout, when the numbers of all parts are known: the row in each slot (`rows` is −1 on entry), the slot of
// each row, where the columns of each slice begin (`start`), the ends of slices (`ends` is 0 on entry), and the halos.
// launch: 1 blocks per multiprocessor of 512 threads
template <typename I>
__global__ void __launch_bounds__(512) place(Context* ctx, const I* order, const int* slices, const unsigned* bits,
    const int* starts, const int* table, const int* first, const int* streams, int parts, int stride, int chunk,
    int* slot, int* rows, int* start, unsigned char* ends, int* halos, long long order_size, long long slot_size) {
  if (stopped(ctx)) return;
  const Table* const tables = reinterpret_cast<const Table*>(table);
  for (int b = blockIdx.x; b < parts; b += gridDim.x) {
    const Range range(b, parts, slot_size);
    const Table own = tables[b];
    for (long long i = range.begin + threadIdx.x; i < range.end; i += blockDim.x) {
      const long long row = order_size ? order[i] : i;
      rows[slot[row] += 32 * first[b]] = int(row);
    }
    if (threadIdx.x < WARPS) {
      const int from = reinterpret_cast<const Stream*>(streams)[b * WARPS + threadIdx.x].chunk * chunk;
      for (int s = threadIdx.x; s < own.slices; s += WARPS) {
        const Slice slice = reinterpret_cast<const Slice*>(slices)[(long long)b * stride + s];
        const int last = from + slice.before + slice.width - 1;
        start[first[b] + s] = from + slice.before;
        ends[last / chunk] |= 1 << last % chunk;
      }
    }
    for (long long i = threadIdx.x; i < (long long)parts * stride; i += blockDim.x) {
      const long long word = (long long)b * parts * stride + i;
      const int other = int(i / stride), s = int(i % stride);
      int* to = halos + own.halo_from + starts[word];
      for (unsigned left = bits[word]; left; left &= left - 1)
        *to++ = tables[other].publish + 32 * (s - tables[other].interior) + __ffs(left) - 1;
    }
  }
}

// Call visit(row, entry, slice column, lane) for a thread's share of the entries. If the diagonal is stored `apart`, it
// is skipped; then every row has a diagonal entry.
template <class I, class Visit>
DEVICE void visit_entries(const I* indptr, const I* indices, const int* slot, const int* start, bool apart, long long n,
    long long entries, Visit visit) {
  visit_rows(indptr, thread_id() - threadIdx.x % 32, n, lanes_for(n, entries), [&](const Portion& p) {
    if (!p.there) return;
    const int own = slot[p.row];
    const long long begin = start[own / 32];
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes)
      if (!apart || indices[k] != p.row) visit(p.row, k, begin + k - p.begin - (apart && indices[k] > p.row), own % 32);
  });
}

// values = the value of each entry, at its place in the chunks.
// launch: elements of slot, 256 threads
template <typename T, typename I>
__global__ void write_values(Context* ctx, const I* indptr, const I* indices, const T* data, const int* slot,
    const int* start, int chunk, bool apart, T* values, long long n, long long indices_size) {
  if (stopped(ctx)) return;
  constexpr long long UNIT = 32 + 64 / sizeof(T);               // size of a slice column, in values
  visit_entries(indptr, indices, slot, start, apart, n, indices_size,
      [&](long long, long long k, long long column, int lane) {
    values[column / chunk * chunk * UNIT + column % chunk * 32 + lane] = data[k];
  });
}

// columns = the local column of each entry: a row of its part, or a place in the part's halo. size: bytes of a value.
// launch: elements of slot, 256 threads
template <typename I>
__global__ void write_columns(Context* ctx, const I* indptr, const I* indices, const int* slot, const int* start,
    const int* part, const int* table, const int* first, const unsigned* bits, const int* starts, int parts, int stride,
    int chunk, bool apart, int size, unsigned short* columns, long long n, long long indices_size) {
  if (stopped(ctx)) return;
  const long long unit = 16 * size + 32;                        // size of a slice column, in local columns
  visit_entries(indptr, indices, slot, start, apart, n, indices_size,
      [&](long long row, long long k, long long column, int lane) {
    const long long own = part[row], other = part[indices[k]];
    int local = slot[indices[k]] - 32 * first[other];
    if (own != other) {
      const long long word = (own * parts + other) * stride + local / 32;
      local = 32 * reinterpret_cast<const Table*>(table)[own].slices + starts[word]
          + __popc(bits[word] & ((1u << local % 32) - 1));
    }
    columns[column / chunk * chunk * unit + chunk * 16 * size + column % chunk * 32 + lane] = (unsigned short)local;
  });
}
