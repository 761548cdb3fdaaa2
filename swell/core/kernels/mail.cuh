// Values that go from block to block inside a kernel; krylov/kernels/resident_cg.cu has its blocks exchange these.
//
// Each goes beside the number of the pass that it belongs to, 32 bits of it in a word (as in NCCL's LL protocol): a
// word that shows the awaited number is complete, so no fence is needed and nothing is waited for but the values. A
// slot is used again only after a sum over the grid, to which all came who had to read it. The values lie in global
// memory; where all blocks are one cluster, in the shared memory of the block that sends them, a fifth as far away.
#pragma once
#include "packet.cuh"

constexpr int PASSED = 12;                                     // halo rows that a lane has under way
constexpr int PATIENCE = 1 << 22;                 // looks at a value that does not come, some seconds, before giving up

// Where values lie that go from block to block: in arrays, or (not BOARD) at the same place of each block's shared
// memory, where two boards of 16 words come first. where: of each halo row, then, the block and the place there.
template <class T, bool BOARD> struct Mail {
  static constexpr int WORDS = Packet<T>::WORDS, BLOCK = 20;  // bits of a place
  u64 *published, *board;
  const int* where;
  DEVICE u64* sums(int block, u32 epoch) const {
    if constexpr (BOARD) return board + ((epoch & 1) * (u64)gridDim.x + block) * 16;
    else return of_block(board + (epoch & 1) * 16, block);
  }
  DEVICE const u64* halo(int i) const {
    if constexpr (BOARD) return published + (size_t)WORDS * __ldg(where + i);
    else return of_block(published + WORDS * (where[i] & ((1 << BLOCK) - 1)), where[i] >> BLOCK);
  }
  DEVICE void send(int i, u32 epoch, T value) const {          // of this block's i-th boundary row
    Packet<T> packet;
    packet.send(published + (size_t)WORDS * i, epoch, value);
  }
};

// By one warp of each block: the sums over all blocks of what their warps left, the same bits in all. Two boards in
// turn: who writes a board again has seen that all have read it. One block alone has no need of a board. False if a
// block did not come.
template <int K, int WARPS, int SUMS, class T, bool BOARD>
DEVICE bool sum_over_blocks(const double (&sums)[WARPS][SUMS], int first, const Mail<T, BOARD>& mail, u32 epoch,
    double (&v)[K]) {
  constexpr int N = BOARD ? 5 : 1;                             // blocks that a lane looks at together
  const int lane = threadIdx.x & 31, blocks = gridDim.x;
#pragma unroll
  for (int k = 0; k < K; ++k) v[k] = lane < WARPS ? sums[lane][first + k] : 0.0;
  warp_sum(v);
  if (blocks == 1) return true;                                // every lane has the sums
  double own = v[0];
#pragma unroll
  for (int k = 1; k < K; ++k) own = lane == k ? v[k] : own;
  Packet<double> packet;
  if (lane < K) packet.send(mail.sums(blockIdx.x, epoch) + (first + lane) * 2, epoch, own);
#pragma unroll
  for (int k = 0; k < K; ++k) v[k] = 0;
  bool came = true;
  for (int b = lane; b < blocks; b += 32 * N) {
    Packet<double> got[N][K];
    bool all = false;
    for (int looks = 0; !all && looks < PATIENCE; ++looks) {
#pragma unroll
      for (int i = 0; i < N; ++i)
#pragma unroll
        for (int k = 0; k < K; ++k) got[i][k].look(mail.sums(min(b + i * 32, blocks - 1), epoch) + (first + k) * 2);
      all = true;
#pragma unroll
      for (int i = 0; i < N; ++i)
#pragma unroll
        for (int k = 0; k < K; ++k) all = all && got[i][k].fresh(epoch);
    }
    came = came && all;
#pragma unroll
    for (int i = 0; i < N; ++i)
#pragma unroll
      for (int k = 0; k < K; ++k) v[k] += b + i * 32 < blocks ? got[i][k].value() : 0.0;
  }
  __syncwarp();
  warp_sum(v);
  return came;
}

// By one warp: the halo of p. False if a block did not come.
template <class T, bool BOARD> DEVICE bool take_halo(int size, const Mail<T, BOARD>& mail, u32 epoch, T* halo) {
  constexpr int WORDS = Packet<T>::WORDS, N = PASSED * 2 / (WORDS < 2 ? 2 : WORDS);
  bool came = true;
  for (int i = threadIdx.x & 31; i < size; i += 32 * N) {
    const u64* from[N];
    Packet<T> got[N];
#pragma unroll
    for (int k = 0; k < N; ++k) from[k] = mail.halo(min(i + k * 32, size - 1));
    bool all = false;
    for (int looks = 0; !all && looks < PATIENCE; ++looks) {
#pragma unroll
      for (int k = 0; k < N; ++k) got[k].look(from[k]);
      all = true;
#pragma unroll
      for (int k = 0; k < N; ++k) all = all && got[k].fresh(epoch);
    }
    came = came && all;
#pragma unroll
    for (int k = 0; k < N; ++k)
      if (i + k * 32 < size) halo[i + k * 32] = got[k].value();
  }
  __syncwarp();
  return came;
}
