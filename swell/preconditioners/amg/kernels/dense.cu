// The dense inverse of the coarsest level on a GPU; see coarsest.py one folder up.
#include "context.cuh"

constexpr int PANEL = 16, TILE = 64, PARTS = TILE / PANEL;   // pivots a step; rows of a tile; a thread's rows in a tile

// dense = D A D, row by row, with D = diag(scales).
// launch: elements of scales, 256 threads, a warp each
template <typename T, typename I>
__global__ void scatter(Context* ctx, const I* indptr, const I* indices, const T* data, const double* scales, T* dense,
                        long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id() / 32;
  const int lane = threadIdx.x % 32;
  if (i >= n) return;
  T* const row = dense + i * n;
  for (long long j = lane; j < n; j += 32) row[j] = T(0);
  __syncwarp();
  for (long long k = (long long)indptr[i] + lane; k < indptr[i + 1]; k += 32)
    row[indices[k]] = real_t<T>(scales[i]) * data[k] * real_t<T>(scales[indices[k]]);
}

// The result of PANEL symmetric sweeps of a diagonal block B. With L D Lᵀ = B, D without the pivots that are left out:
struct Panel {
  double rows[PANEL][PANEL];       // D Lᵀ: each row before its sweep
  double inverses[PANEL];          // inverse pivots; 0 for one that is left out
  double swept[PANEL][PANEL];      // the negative of a generalised inverse of B
  double before[PANEL];            // the original diagonal entries
};

// Sweep the block at `first` of the panel's rows, by PANEL² threads, one for each entry of B. Returns the minimum of
// `least` and the ratios of pivots to original diagonal entries.
DEVICE double sweep(Panel& p, const double* panel, const double* pivots, int first, int n, double singular,
    double least) {
  const int r = threadIdx.x / PANEL, c = threadIdx.x % PANEL, width = min(PANEL, n - first);
  double own = r < width && c < width ? __ldcg(panel + (long long)r * n + first + c) : 0.0;
  p.rows[r][c] = 0;
  if (r == 0) p.inverses[c] = 0, p.before[c] = c < width ? __ldcg(pivots + first + c) : 0.0;
  __syncthreads();
  for (int k = 0; k < width; ++k) {
    if (r == k) p.rows[k][c] = own;
    __syncthreads();
    const double pivot = p.rows[k][k], ratio = p.before[k] > 0 ? pivot / p.before[k] : min(pivot, 0.0);
    const double inverse = ratio > singular ? 1 / pivot : 0.0;
    least = min(least, ratio);
    if (threadIdx.x == 0) p.inverses[k] = inverse;
    if (r == k || c == k) own = r == c ? -inverse : inverse == 0 ? 0.0 : own * inverse;
    else if (inverse != 0) own -= p.rows[k][r] * p.rows[k][c] * inverse;
  }
  p.swept[r][c] = own;
  __syncthreads();
  return least;
}

// y = L⁻¹ y for one column of the panel's rows outside of the block, without the pivots that are left out.
DEVICE void forward(const Panel& p, double (&y)[PANEL]) {
#pragma unroll
  for (int k = 0; k < PANEL; ++k) {
    if (p.inverses[k] == 0) y[k] = 0;
    const double z = y[k] * p.inverses[k];
#pragma unroll
    for (int m = k + 1; m < PANEL; ++m) y[m] -= p.rows[k][m] * z;
    __syncwarp();                                             // keeps the compiler from holding all `rows` in registers
  }
}

// y = L⁻ᵀ D⁻¹ y: the values after the sweeps.
DEVICE void backward(const Panel& p, double (&y)[PANEL]) {
#pragma unroll
  for (int m = PANEL - 1; m >= 0; --m) {
    y[m] *= p.inverses[m];
#pragma unroll
    for (int k = 0; k < m; ++k) y[k] -= y[m] * p.rows[k][m];
    __syncwarp();
  }
}

// Invert a symmetric matrix in place, by symmetric sweeps: one for each pivot, without exchanges, PANEL pivots a step.
// Row and column k become zero if pivot k is at most `singular` times the original diagonal entry. worst[0] = the least
// such ratio, 1 at most. record[0] is the barrier's count, 0 before the launch.
//
// Let B = L D Lᵀ be a diagonal block, C its rows outside of B, and A the rest of the matrix. The sweeps of B turn A
// into A - (L⁻¹ C)ᵀ D⁻¹ L⁻¹ C, C into B⁻¹ C and B into -B⁻¹. Every thread block factors B for itself. It has its own
// tiles of the lower triangle, and computes their rows and columns of L⁻¹ C. It copies the next C to one half of `rows`
// while others read the other half, so that one barrier a step suffices. The last step writes both triangles.
// launch: 2 blocks per multiprocessor of 256 threads, all at once
template <typename P>
__global__ void __launch_bounds__(256, 2) invert(Context* ctx, double* matrix, double* pivots, double* rows,
    double singular, double* worst, P* record, long long pivots_size) {
  if (stopped(ctx)) return;
  __shared__ Panel p;
  __shared__ double of_rows[PANEL][TILE], of_columns[PANEL][TILE], x_rows[PANEL][TILE], x_columns[PANEL][TILE];
  unsigned long long* arrived = reinterpret_cast<unsigned long long*>(record);
  const int n = int(pivots_size), tiles = (n + TILE - 1) / TILE;
  const unsigned blocks = min(gridDim.x, unsigned(max(tiles * (tiles + 1) / 2, 1)));
  if (blockIdx.x >= blocks) return;                           // it has no tile, and a barrier of fewer blocks is faster
  const int row = threadIdx.x / PANEL, column = threadIdx.x % PANEL;
  for (int k = int(thread_id()); k < n; k += int(blocks * blockDim.x)) {
    pivots[k] = matrix[(long long)k * n + k];
    for (int m = 0; m < min(PANEL, n); ++m) rows[(long long)m * n + k] = matrix[(long long)max(k, m) * n + min(k, m)];
  }
  double least = 1;
  for (int first = 0; first < n; first += PANEL) {
    grid_wait(arrived, blocks);
    const double* panel = rows + first / PANEL % 2 * PANEL * (long long)n;
    double* next = rows + (first / PANEL + 1) % 2 * PANEL * (long long)n;
    const int tile = first / TILE, next_tile = (first + PANEL) / TILE, part = first % TILE / PANEL,
        next_part = (part + 1) % PARTS;
    const bool last = first + PANEL >= n;
    least = sweep(p, panel, pivots, first, n, singular, least);
    int down = 0, across = blockIdx.x;                                 // the tile's row and column
    for (;; across += int(blocks)) {
      while (across > down) across -= ++down;
      if (down >= tiles) break;
      const bool within = down == tile || across == tile;               // the panel has rows or columns in the tile
      double* const mine = matrix + (long long)(down * TILE + row) * n + across * TILE + column;
      double value[PARTS][PARTS];
#pragma unroll
      for (int r = 0; r < PARTS; ++r)
#pragma unroll
        for (int c = 0; c < PARTS; ++c) {
          const int i = down * TILE + r * PANEL + row, j = across * TILE + c * PANEL + column;
          // no other thread writes it
          value[r][c] = i < n && j <= i ? mine[(long long)r * PANEL * n + c * PANEL] : 0.0;
        }
      if (threadIdx.x < 2 * TILE) {
        const bool of_row = threadIdx.x < TILE;
        const int at = threadIdx.x % TILE;
        const int k = (of_row ? down : across) * TILE + at;
        double y[PANEL];
#pragma unroll
        for (int m = 0; m < PANEL; ++m) y[m] = k < n && first + m < n ? __ldcg(panel + (long long)m * n + k) : 0.0;
        forward(p, y);
#pragma unroll
        for (int m = 0; m < PANEL; ++m) (of_row ? of_rows : of_columns)[m][at] = of_row ? y[m] : y[m] * p.inverses[m];
        if (within) {
          backward(p, y);
#pragma unroll
          for (int m = 0; m < PANEL; ++m) (of_row ? x_rows : x_columns)[m][at] = y[m];
        }
      }
      __syncthreads();
#pragma unroll 4
      for (int m = 0; m < PANEL; ++m)
#pragma unroll
        for (int r = 0; r < PARTS; ++r)
#pragma unroll
          for (int c = 0; c < PARTS; ++c)
            value[r][c] -= of_rows[m][r * PANEL + row] * of_columns[m][c * PANEL + column];
#pragma unroll
      for (int r = 0; r < PARTS; ++r)
#pragma unroll
        for (int c = 0; c < PARTS; ++c) {
          const int i = down * TILE + r * PANEL + row, j = across * TILE + c * PANEL + column;
          if (i >= n || j > i) continue;
          const bool in_rows = down == tile && r == part, in_columns = across == tile && c == part;
          double v = value[r][c];
          if (in_rows && in_columns) v = p.swept[row][column];
          else if (in_columns) v = x_rows[column][r * PANEL + row];
          else if (in_rows) v = x_columns[row][c * PANEL + column];
          if (last) matrix[(long long)j * n + i] = v = -v;
          mine[(long long)r * PANEL * n + c * PANEL] = v;
          if (down == next_tile && r == next_part) next[(long long)row * n + j] = v;
          if (across == next_tile && c == next_part) next[(long long)column * n + i] = v;
        }
      __syncthreads();
    }
  }
  if (thread_id() == 0) worst[0] = least;
}
