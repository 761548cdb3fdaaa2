// Block rows of a BSR matrix on a GPU: how a warp multiplies them, for products (formats/kernels/bsr.cu) and triangular
// solves (preconditioners/kernels/block_triangular.cu).
//
// The lanes of a warp cover the rows and columns of one block, so that the blocks of a block row are loaded in storage
// order. A lane has as many adjoining columns as 16 bytes hold, if this number divides the block size. If a warp has
// enough lanes, they cover all rows of a block at once, and a warp has one or several block rows. Otherwise a warp has
// one block row, and a lane several rows of its columns, with one sum each. At the end the lanes of a row add up their
// sums. BLOCK is a constant: every size has its own code.
#pragma once
#include "context.cuh"

template <int BLOCK, class T> struct Shape {
  static constexpr int WIDE = 16 / sizeof(T);
  static constexpr int PER = BLOCK % WIDE == 0 ? WIDE : BLOCK % 2 == 0 && WIDE > 1 ? 2 : 1;     // columns of a lane
  static constexpr int ACROSS = BLOCK / PER;                                             // lanes of a row
  static constexpr int PASSES = (BLOCK + 32 / ACROSS - 1) / (32 / ACROSS);               // sums of a lane
  static constexpr int ROWS = (BLOCK + PASSES - 1) / PASSES;                          // rows of a block covered at once
  static constexpr int LANES = ROWS * ACROSS;                                            // lanes of a block row
  static constexpr int GROUP = PASSES == 1 ? 32 / LANES : 1;                             // block rows of a warp
  static constexpr int AHEAD = PASSES >= 4 ? 1 : 4 / PASSES;                         // blocks whose loads are in flight
};

// Adjoining scalars, loaded at once.
template <class T, int COUNT> struct alignas(COUNT * sizeof(T)) Several { T at[COUNT]; };

// A lane's block row (`member`, among the warp's), and its row and group of columns in a block.
template <int BLOCK, class T> struct Lane {
  int member, row, across;
  DEVICE Lane() {
    using S = Shape<BLOCK, T>;
    const int lane = threadIdx.x % 32, within = lane % S::LANES;
    member = lane / S::LANES;                                                            // GROUP or more: idle
    row = within / S::ACROSS, across = within % S::ACROSS;
  }
};

// sum = the sums of a lane over the blocks k, k + STEP, ... before `end`, for its rows row, row + ROWS, ...; zero
// without blocks. Values may be stored in a type V. order: the block of x of each block column, or null for equal
// numbers.
template <int BLOCK, int STEP = 1, class T, class V, class I>
DEVICE void lane_sums(I k, I end, const I* indices, const V* data, const I* order, const T* x, const Lane<BLOCK,
    T>& lane, I columns, T (&sum)[Shape<BLOCK, T>::PASSES]) {
  using S = Shape<BLOCK, T>;
  using Stored = Several<V, S::PER>;
  using Entries = Several<T, S::PER>;
#pragma unroll
  for (int q = 0; q < S::PASSES; ++q) sum[q] = T(0);
  for (; k < end; k += S::AHEAD * STEP) {
    I column[S::AHEAD];
    Stored value[S::AHEAD][S::PASSES];
#pragma unroll
    for (int a = 0; a < S::AHEAD; ++a) {
      column[a] = columns;
      if (k + a * STEP >= end) continue;
      column[a] = __ldg(indices + k + a * STEP) * BLOCK + lane.across * S::PER;
      const Stored* block = reinterpret_cast<const Stored*>(data + (k + a * STEP) * (BLOCK * BLOCK))
          + lane.row * S::ACROSS
                            + lane.across;
#pragma unroll
      for (int q = 0; q < S::PASSES; ++q)
        if (lane.row + q * S::ROWS < BLOCK) value[a][q] = load_stream(block + q * S::LANES);
    }
    if (order)
#pragma unroll
      for (int a = 0; a < S::AHEAD; ++a)
        if (k + a * STEP < end) column[a] = __ldg(order + column[a] / BLOCK) * BLOCK + lane.across * S::PER;
#pragma unroll
    for (int a = 0; a < S::AHEAD; ++a) {
      if (column[a] >= columns) continue;                // past the last block, or past the end of x
      Entries gathered;
      if (S::PER == 1 || column[a] + S::PER <= columns) gathered = *reinterpret_cast<const Entries*>(x + column[a]);
      else
#pragma unroll
        for (int e = 0; e < S::PER; ++e) gathered.at[e] = column[a] + e < columns ? x[column[a] + e] : T(0);
#pragma unroll
      for (int q = 0; q < S::PASSES; ++q)
        if (lane.row + q * S::ROWS < BLOCK)
#pragma unroll
          for (int e = 0; e < S::PER; ++e) sum[q] = fused(T(value[a][q].at[e]), gathered.at[e], sum[q]);
    }
  }
}

// The sum over the lanes of a row; only the first of them has the whole sum. All lanes of a warp must call this.
template <int BLOCK, class T> DEVICE T row_sum(T sum, int across) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int o = 16; o; o >>= 1)
    if (o < Shape<BLOCK, T>::ACROSS) {
      const T other = shuffle(sum, (lane + o) % 32);
      if (across + o < Shape<BLOCK, T>::ACROSS) sum = sum + other;
    }
  return sum;
}

// The sum over a warp's members; only the first of them has the whole sum. All lanes of a warp must call this.
template <int BLOCK, class T> DEVICE T member_sum(T sum, int member) {
  using S = Shape<BLOCK, T>;
#pragma unroll
  for (int width = S::GROUP; width > 1; width = (width + 1) / 2) {
    const int half = (width + 1) / 2;
    const T other = shuffle(sum, (threadIdx.x + half * S::LANES) % 32);
    if (member + half < width) sum = sum + other;
  }
  return sum;
}
