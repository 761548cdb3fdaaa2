// Functions shared by the SELL and staircase SELL products: each thread has one row, and loads a batch of its entries
// at a time.
#pragma once
#include "columns.cuh"

// A batch of entries of one row. Column -1 means padding, or past the end.
template <class T, class I> struct Batch {
  static constexpr int SIZE = scalar<T>::parts == 1 ? 3 : 4;
  I column[SIZE];
  T value[SIZE];
};

// sum + the products of a batch with x. All values of x are loaded before the first is used.
template <class T, class I> DEVICE T accumulate(const Batch<T, I>& batch, const T* x, T sum) {
  constexpr int SIZE = Batch<T, I>::SIZE;
  T gathered[SIZE];
#pragma unroll
  for (int i = 0; i < SIZE; ++i)
    if (batch.column[i] >= 0) gathered[i] = x[batch.column[i]];
#pragma unroll
  for (int i = 0; i < SIZE; ++i)
    if (batch.column[i] >= 0) sum = fused(batch.value[i], gathered[i], sum);
  return sum;
}

// sums[c] + the products of a batch with column c of x, for the running columns.
template <int TILE, class T, class I>
DEVICE void accumulate(const Tile<TILE>& tile, const Batch<T, I>& batch, const T* x, long long step, T (&sums)[TILE]) {
#pragma unroll
  for (int i = 0; i < Batch<T, I>::SIZE; ++i)
    if (batch.column[i] >= 0) add_entry(tile, batch.value[i], x, step, batch.column[i], sums);
}

// The row at position `slot` of the sorted order; n past the last slice.
template <class W, class I> DEVICE I row_at(const W* rows, I slot, I slots, int window, I n) {
  if (slot >= slots) return n;
  return rows ? (slot & -I(window)) + I(__ldg(rows + slot)) : slot;
}
