// A front of X columns, which the blocks of one cluster share. Every block has the diagonal block D; the rows below are
// distributed, `per` consecutive rows a block, in shared memory as far as it suffices. The row of a pivot travels
// through the blocks' shared memory (bulk.cuh, which comes first): one barrier of the cluster a pivot. Call `wait`
// before the first pivot: then all blocks run.
#pragma once
#include "pivot.cuh"

// a block's largest element, and its row
template <class T, int X> struct Candidate { double size; int where; T row[X]; };

template <class T, int X> struct Front {
  Candidate<T, X>* sent;                     // by each block of the cluster; two sets, in turn
  T *tile, *below;                           // this block's rows in shared memory; its first row in the matrix
  long long row, column;
  int rank, cluster, size, per, begin, count, held, turn;   // rows begin to begin + count below D; `held` are in `tile`

  // first: the matrix's entry at the front's corner. rows: below D. shared: bytes of `memory`.
  DEVICE Front(unsigned char* memory, int shared, T* first, long long row, long long column, int size, int rows,
      int cluster)
      : sent(reinterpret_cast<Candidate<T, X>*>(memory)), row(row), column(column), rank(blockIdx.x % cluster),
        cluster(cluster), size(size), turn(0) {
    const int letters = 2 * cluster * sizeof(Candidate<T, X>);
    tile = reinterpret_cast<T*>(memory + letters);
    per = ((rows + cluster - 1) / cluster + X - 1) / X * X;
    begin = rank * per < rows ? rank * per : rows;
    count = rows - begin < per ? rows - begin : per;
    held = (shared - letters) / int((X + 1) * sizeof(T));
    held = held < count ? held : count;
    below = first + (size + begin) * row;
  }
  DEVICE T& at(int i, int k) const { return i < held ? tile[i * (X + 1) + k] : below[i * row + k * column]; }

  // Copy the rows that fit to shared memory, or back. There are rows below only if the front has X columns.
  template <bool BACK> DEVICE void copy() const {
    for (int e = threadIdx.x; e < held * X; e += blockDim.x) {
      const int i = column == 1 ? e / X : e % held, k = column == 1 ? e % X : e / held;
      T &near = tile[i * (X + 1) + k], &far = below[i * row + k * column];
      if (BACK) far = near; else near = far;
    }
  }
  DEVICE void wait() const {
    if (cluster > 1) cluster_sync(); else __syncthreads();
  }

  // Swap row s with the row of the largest candidate. All threads call it with the block's candidate, and pass a
  // barrier before they read D or rows; the first warp has swapped them. It receives the row's number: in D, or size +
  // the number below.
  DEVICE int pivot(T (&D)[X][X + 1], int s, double largest, int where) {
    Candidate<T, X>* const now = sent + turn * cluster;
    turn ^= 1;
    const int c = threadIdx.x % 32;
    for (int to = threadIdx.x / 32; to < cluster; to += blockDim.x / 32) {
      Candidate<T, X>* const there = of_block(now + rank, to);
      if (c < X && where >= size) there->row[c] = at(where - size - begin, c);
      if (c == 0) there->size = largest, there->where = where;
    }
    wait();
    if (threadIdx.x >= 32) return where;
    largest = c < cluster ? now[c].size : -1, where = c < cluster ? now[c].where : 0x7FFFFFFF;
    largest_of_warp(largest, where);
    if (c < X && where != s) {
      const T before = D[s][c];
      if (where < size) D[s][c] = D[where][c], D[where][c] = before;
      else {
        const int owner = (where - size) / per;
        D[s][c] = now[owner].row[c];
        if (owner == rank) at(where - size - begin, c) = before;
      }
    }
    __syncwarp();
    return where;
  }

  // Do the front's swaps, of row s with row chosen[s], in all columns of a matrix but those from `left` to `right`; the
  // blocks share the columns. `corner`: its entry in the front's first row and column `first`. GROUPS warps share the
  // rows of 32 columns; they read all rows before they write one.
  template <int GROUPS>
  DEVICE void swap(T* corner, const int (&chosen)[X], int first, int left, int right, int n) const {
    __shared__ int from[2 * X], to[2 * X];
    constexpr int EACH = 2 * X / GROUPS;
    const int m = threadIdx.x, lane = m % 32, group = m / 32 % GROUPS, at_once = blockDim.x / GROUPS;
    __syncthreads();
    if (m < 2 * X) {
      const bool within = m < X || (m - X < size && chosen[m - X] < size);                      // a row of D: only once
      const int place = m < X ? m : m - X < size ? chosen[m - X] : 0;
      int source = place;
      for (int s = size - 1; s >= 0; --s) source = source == s ? chosen[s] : source == chosen[s] ? s : source;
      to[m] = place, from[m] = m >= X && (within || m - X >= size) ? place : source;
    }
    __syncthreads();
    T* const of_first = corner - first * column;
    for (int base = rank * at_once; base < n; base += cluster * at_once) {
      const int k = base + m / (32 * GROUPS) * 32 + lane;
      const bool inside = k < n && (k < left || k >= right);
      T values[EACH];
#pragma unroll
      for (int q = 0; q < EACH; ++q) {
        const int e = group + GROUPS * q;
        if (inside && from[e] != to[e]) values[q] = of_first[from[e] * row + k * column];
      }
      __syncthreads();
#pragma unroll
      for (int q = 0; q < EACH; ++q) {
        const int e = group + GROUPS * q;
        if (inside && from[e] != to[e]) of_first[to[e] * row + k * column] = values[q];
      }
    }
  }
};
