// Conjugate gradients with every multiprocessor as a rank of its own; krylov/resident_cg.py says how, formats/parts.py
// what lies where.
//
// Of a block's 16 warps 15 compute. x and r of their rows are registers; p (own rows, then the halo) and q shared
// memory. Each warp walks its stream of slice columns, which the bulk copy engine brings into a private ring, asked for
// again as soon as a chunk is used and across iterations: waiting for others does not idle the memory. The sixteenth
// warp takes the halo, sums over the grid, judges, in every block on a copy of the record and so with the same verdict,
// and block 0 writes the record.
#include "bulk.cuh"
#include "judge.cuh"
#include "mail.cuh"

// compute warps, threads, chunks of a ring at most: as in parts.py
constexpr int WARPS = 15, ALL = 32 * (WARPS + 1), RINGS = 3;

struct Part { int slices, interior, publish, halo_from, halo; };
struct Stream { int chunk, chunks, boundary, unused; };
enum Sum { SIGMA, ETA, DELTA, RR, NORM2, SUMS };          // σ, η and δ of the step; (r, r) and the norm² that is judged
struct Shared {
  u64 full[WARPS][RINGS + 1];
  double sums[WARPS][SUMS], alpha, beta;
  int code;
  Context record;
};

// x and r into the order of the parts, p = r, the first judgement; nothing is published yet.
// launch: elements of rows, 256 threads, at most 8 blocks per multiprocessor
template <typename T>
__global__ void begin(Context* ctx, const int* rows, const T* x, const T* r, const float* w, T* xs, T* rs, T* ps,
    float* ws, unsigned long long* published, unsigned long long* board, long long* passes, long long n,
    long long published_size, long long board_size) {
  if (stopped(ctx)) return;
  double v[2] = {0, 0};
  for (long long i = thread_id(); i < n; i += threads()) {
    const int row = rows[i];
    const T ri = row < 0 ? T(0) : r[row];
    const float wi = row < 0 || !w ? 0.f : w[row];
    xs[i] = row < 0 ? T(0) : x[row];
    rs[i] = ps[i] = ri;
    if (w) ws[i] = wi;
    const double square = abs2(acc_t<T>(ri));
    v[0] += square;
    v[1] += w ? wi * square : square;
  }
  for (long long i = thread_id(); i < published_size; i += threads()) published[i] = 0;
  for (long long i = thread_id(); i < board_size; i += threads()) board[i] = 0;
  if (grid_sum(ctx, v)) {
    *passes = 0;
    judge_start(ctx, v[1]);
    if (!over(ctx) && !(v[0] > 0)) halt(ctx, isfinite(v[0]) ? INDEFINITE : NONFINITE);
  }
}

// x back into the order of the rows, whatever the verdict.
// launch: elements of rows, 256 threads
template <typename T> __global__ void leave(Context* ctx, const int* rows, const T* xs, T* x, long long n) {
  wait_for_previous();
  const long long i = thread_id();
  if (i < n && rows[i] >= 0) x[rows[i]] = xs[i];
}

// Passes of this solve: `passes` before this launch. Pass k sums the norm of residual k and judges it while the
// interior is multiplied, sums the inner products of the step, and steps to residual k + 1. beta comes from rho' = rho
// - 2 alpha (r, q) + alpha^2 (q, q), and rho itself is summed anew with the next pass (predict and recompute), and so
// does not wait. near: boundary rows of a block at most, where board is empty and all blocks are one cluster.
// launch: a block of threads threads for each slice of first, shared bytes shared, all at once, in clusters of cluster
template <typename T, int SLOTS, int CHUNK, bool BOARD>
__global__ void __launch_bounds__(512, 1) iterate(Context* ctx, const Part* table, const Stream* streams,
    const unsigned char* data, const unsigned char* ends, const int* halos, const double* diagonal,
    unsigned long long* published, unsigned long long* board, T* x, T* r, T* p, const float* w, double* coefficients,
    long long* passes, const int* first, int iterations, int slots, int chunk, int ring, int kept, int cached,
    int threads, int shared, int near, int cluster, long long coefficients_size) {
  constexpr int BYTES = CHUNK * 32 * (sizeof(T) + 2), WORDS = Packet<T>::WORDS;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ Shared own;
  if (stopped(ctx)) return;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const Part part = table[blockIdx.x];
  u64* const letters = reinterpret_cast<u64*>(memory + (size_t)WARPS * (kept + ring) * BYTES);
  int* const where = reinterpret_cast<int*>(letters + 32 + near * WORDS);
  T* const ps = reinterpret_cast<T*>(BOARD ? (void*)letters : (void*)(where + (part.halo + 3) / 4 * 4));
  Mail<T, BOARD> mail{published, board, halos + part.halo_from};
  const int publish = BOARD ? part.publish : 0;                          // the place of this block's first boundary row
  if constexpr (!BOARD) {
    mail = {letters + 32, letters, where};
    for (int i = threadIdx.x; i < 32 + near * WORDS; i += blockDim.x) letters[i] = 0;
    for (int i = threadIdx.x; i < part.halo; i += blockDim.x) {
      int block = 0;
      while (block + 1 < gridDim.x && table[block + 1].publish <= halos[part.halo_from + i]) ++block;
      where[i] = block << mail.BLOCK | (halos[part.halo_from + i] - table[block].publish);
    }
    cluster_sync();
  }
  T* const qs = ps + part.slices * 32 + part.halo;
  const long long done = *passes;
  const u32 epoch0 = u32(done) + 1;

  if (warp == WARPS) {
    Context& record = own.record;
    if (lane == 0) record = *ctx;
    double norm = lane == 0 && blockIdx.x == 0 ? norm_after(&record, done ? done - 1 : 0) : 0.0;
    int it = 0, code = RUNNING;
    for (; it < iterations; ++it) {
      const u32 epoch = epoch0 + it;
      const long long k = done + it;
      bool came = take_halo(part.halo, mail, epoch, ps + part.slices * 32);
      bar_arrive<ALL>(1);

      // While the interior is multiplied: rho, and the judgement of residual k.
      bar_sync<ALL>(5);
      const bool judged = __shfl_sync(~0u, int(lane == 0 && k && due(&record)), 0);
      double early[2] = {0, 0}, one[1];
      if (w && judged) came = sum_over_blocks(own.sums, RR, mail, epoch, early) && came;
      else came = sum_over_blocks(own.sums, RR, mail, epoch, one) && came, early[0] = early[1] = one[0];
      const double rho = early[0];
      if (lane == 0) {
        if (k) {
          const long long place = advance(&record);
          if (judged) code = verdict(&record, early[1]), norm = sqrt(early[1]);
          if (blockIdx.x == 0) norm_after(&record, place) = norm;
        }
        if (code == RUNNING && !(rho > 0)) code = isfinite(rho) ? INDEFINITE : NONFINITE;
      }

      bar_sync<ALL>(2);
      double v[3];
      came = __all_sync(~0u, sum_over_blocks(own.sums, SIGMA, mail, epoch, v) && came);
      if (lane == 0) {
        const double sigma = v[SIGMA], alpha = rho / sigma, next = fmax(rho - 2 * alpha * v[DELTA]
            + alpha * alpha * v[ETA], 0.0);
        if (code == RUNNING && !(sigma > 0)) code = isfinite(sigma) ? INDEFINITE : NONFINITE;
        if (!came) code = BREAKDOWN;
        if (code == RUNNING && blockIdx.x == 0 && 2 * k + 1 < coefficients_size) coefficients[2 * k] = alpha,
            coefficients[2 * k + 1] = next / rho;
        own.alpha = alpha, own.beta = next / rho, own.code = code;
      }
      code = __shfl_sync(~0u, code, 0);
      bar_arrive<ALL>(3);
      if (code != RUNNING) break;
    }
    if (lane == 0 && (blockIdx.x == 0 || code == BREAKDOWN)) {
      for (int k = 0; k < FLAGS; ++k) ctx->flags[k] = record.flags[k];
      for (int k = 0; k < LIMITS; ++k) ctx->limits[k] = record.limits[k];
      *passes = done + it;
      if (code == RUNNING) show(ctx); else halt(ctx, code);
    }
    if constexpr (!BOARD) cluster_sync();                         // nobody leaves while others may look at what it sent
    return;
  }

  const Stream stream = streams[blockIdx.x * WARPS + warp];
  const unsigned char* const from = data + (size_t)stream.chunk * BYTES;
  unsigned char* const mine = memory + (size_t)warp * (kept + ring) * BYTES;
  unsigned char* const turning = mine + kept * BYTES;
  u64* const full = own.full[warp];
  // of this block's streams, one after the other
  unsigned char* const my_ends = reinterpret_cast<unsigned char*>(qs + part.slices * 32);
  const int begin_of_ends = stream.chunk - streams[blockIdx.x * WARPS].chunk;
  for (int i = lane; i < stream.chunks; i += 32) my_ends[begin_of_ends + i] = ends[stream.chunk + i];
  const int stored = min(kept, stream.chunks), flowing = stream.chunks - stored, total = flowing * iterations;
  const u64 policy = cached ? evict_normal() : evict_first();
  if (lane == 0) {
    for (int i = 0; i <= ring; ++i) barrier_init(full + i);
    barriers_ready();
  }
  __syncwarp();
  int next = stored, slot = 0, asked = 0, used = 0;                     // the chunk to ask for next; the ring's place
  u32 phase = 0;
  auto ask = [&](int place) {
    if (asked >= total) return;
    if (lane == 0) {
      barrier_expect(full + place, BYTES);
      copy(turning + place * BYTES, from + (size_t)next * BYTES, BYTES, full + place, policy);
    }
    ++asked;
    if (++next == stream.chunks) next = stored;
  };
  if (lane == 0 && stored) {
    barrier_expect(full + ring, stored * BYTES);
    copy(mine, from, stored * BYTES, full + ring, policy);
  }
  for (int i = 0; i < ring; ++i) ask(i);

  const int every = int(flag(ctx, EVERY));
  const long long last = flag(ctx, MAXITER);
  // will residual k be judged?
  auto weigh = [&](long long k) { return w && (every <= 1 || k % every == 0 || k >= last); };
  const double constant = *diagonal;
  T xs[SLOTS], rs[SLOTS];
  double rr = 0, rw = 0;
  const size_t place = (size_t)first[blockIdx.x] * 32;
  bool weighing = weigh(done);
#pragma unroll
  for (int t = 0; t < SLOTS; ++t) {
    const int s = t * WARPS + warp, i = s * 32 + lane;
    xs[t] = rs[t] = T(0);
    if (s < part.slices) {
      xs[t] = x[place + i], rs[t] = r[place + i];
      const T pv = p[place + i];
      ps[i] = pv;
      if (s >= part.interior) mail.send(publish + i - part.interior * 32, epoch0, pv);
      const double square = abs2(acc_t<T>(rs[t]));
      rr += square;
      if (weighing) rw += w[place + i] * square;
    }
  }
  auto leave_norms = [&] {                                               // for the communication warp
    double v[2] = {rr, rw};
    warp_sum(v);
    if (lane == 0) own.sums[warp][RR] = v[0], own.sums[warp][NORM2] = v[1];
    __syncwarp();
    bar_arrive<ALL>(5);
  };
  leave_norms();
  if (stored) barrier_wait(full + ring, 0);

  for (int it = 0; it < iterations; ++it) {
    bar_sync<WARPS * 32>(4);                                             // p is written
    T sum(0);
    double sigma = 0, eta = 0;
    int at = warp * 32 + lane;
    auto work = [&](const unsigned char* bytes, u32 mask) {
      const T* value = reinterpret_cast<const T*>(bytes) + lane;
      const unsigned short* column = reinterpret_cast<const unsigned short*>(bytes + CHUNK * 32 * sizeof(T)) + lane;
      u32 c[CHUNK];
      T g[CHUNK];
#pragma unroll
      for (int i = 0; i < CHUNK; ++i) c[i] = column[i * 32];
#pragma unroll
      for (int i = 0; i < CHUNK; ++i) g[i] = ps[c[i]];
#pragma unroll
      for (int i = 0; i < CHUNK; ++i) {
        sum = fused(value[i * 32], g[i], sum);
        if (mask >> i & 1) {
          const T pv = ps[at];
          sum = sum + real_t<T>(constant) * pv;
          qs[at] = sum;
          sigma += real(conj_mul(acc_t<T>(pv), acc_t<T>(sum)));
          eta += abs2(acc_t<T>(sum));
          sum = T(0), at += WARPS * 32;
        }
      }
    };
    auto walk = [&](int j, int to) {
      for (; j < min(to, stored); ++j) work(mine + j * BYTES, my_ends[begin_of_ends + j]);
      for (; j < to; ++j) {
        const u32 mask = my_ends[begin_of_ends + j];
        barrier_wait(full + slot, phase);
        work(turning + slot * BYTES, mask);
        __syncwarp();
        ask(slot);
        ++used;
        if (++slot == ring) slot = 0, phase ^= 1;
      }
    };
    walk(0, stream.boundary);
    bar_sync<ALL>(1);                                                    // the halo is there
    walk(stream.boundary, stream.chunks);

    double u[3] = {sigma, eta, 0};                                       // SIGMA, ETA, DELTA
#pragma unroll
    for (int t = 0; t < SLOTS; ++t)
      if (t * WARPS + warp < part.slices)
        u[DELTA] += real(conj_mul(acc_t<T>(rs[t]), acc_t<T>(qs[(t * WARPS + warp) * 32 + lane])));
    warp_sum(u);
    if (lane == 0)
#pragma unroll
      for (int k = 0; k < 3; ++k) own.sums[warp][k] = u[k];
    __syncwarp();
    bar_arrive<ALL>(2);
    bar_sync<ALL>(3);
    if (own.code != RUNNING) break;
    const real_t<T> alpha(own.alpha), beta(own.beta);
    rr = rw = 0, weighing = weigh(done + it + 1);
#pragma unroll
    for (int t = SLOTS - 1; t >= 0; --t) {                               // the boundary first
      const int s = t * WARPS + warp, i = s * 32 + lane;
      if (s < part.slices) {
        const T pv = ps[i];
        rs[t] = rs[t] - alpha * qs[i];
        const T pn = rs[t] + beta * pv;
        if (s >= part.interior) mail.send(publish + i - part.interior * 32, epoch0 + it + 1, pn);
        xs[t] = xs[t] + alpha * pv;
        ps[i] = pn;
        rr += abs2(acc_t<T>(rs[t]));
      }
    }
    if (weighing)
#pragma unroll
      for (int t = 0; t < SLOTS; ++t)
        if (t * WARPS + warp < part.slices) rw += w[place + (t * WARPS + warp) * 32 + lane] * abs2(acc_t<T>(rs[t]));
    if (it + 1 < iterations) leave_norms();
  }
  while (used < asked) {                                                // nothing may still be on its way to this block
    barrier_wait(full + slot, phase);
    ++used;
    if (++slot == ring) slot = 0, phase ^= 1;
  }
#pragma unroll
  for (int t = 0; t < SLOTS; ++t) {
    const int s = t * WARPS + warp, i = s * 32 + lane;
    if (s < part.slices) x[place + i] = xs[t], r[place + i] = rs[t], p[place + i] = ps[i];
  }
  if constexpr (!BOARD) cluster_sync();
}
