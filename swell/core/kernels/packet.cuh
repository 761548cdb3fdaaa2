// Values that travel from block to block while all run; `put` and `get` are those of bulk.cuh, which precedes this file.
#pragma once
#include "scalar.cuh"

constexpr int PASSED = 12;          // halo rows that a lane has under way
constexpr int PATIENCE = 1 << 22;   // looks at a value that does not come, some seconds, before giving up

// A value on its way: its words of 32 bits, each beside the number of a pass.
template <class T> struct Packet {
  static constexpr int WORDS = sizeof(T) / 4;
  u64 word[WORDS];
  DEVICE void send(u64* to, u32 epoch, T value) {
    alignas(16) u32 bits[WORDS];
    *reinterpret_cast<T*>(bits) = value;
#pragma unroll
    for (int k = 0; k < WORDS; ++k) word[k] = (u64)epoch << 32 | bits[k];
    if constexpr (WORDS == 1) put(to, word[0]);
    else
#pragma unroll
      for (int k = 0; k < WORDS; k += 2) put(to + k, word[k], word[k + 1]);
  }
  DEVICE void look(const u64* from) {
    if constexpr (WORDS == 1) get(from, word[0]);
    else
#pragma unroll
      for (int k = 0; k < WORDS; k += 2) get(from + k, word[k], word[k + 1]);
  }
  DEVICE bool fresh(u32 epoch) const {
    bool all = true;
#pragma unroll
    for (int k = 0; k < WORDS; ++k) all = all && u32(word[k] >> 32) == epoch;
    return all;
  }
  DEVICE T value() const {
    alignas(16) u32 bits[WORDS];
#pragma unroll
    for (int k = 0; k < WORDS; ++k) bits[k] = u32(word[k]);
    return *reinterpret_cast<T*>(bits);
  }
};

// Where values lie that go from block to block: in arrays, or (not BOARD) at the same place of each block's shared memory, where two
// boards of 16 words come first. where: of each halo row, then, the block and the place there.
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

// By one warp: the halo. False if a block did not come.
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
