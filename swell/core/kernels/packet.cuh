// Values that travel from block to block, or from GPU to GPU, while all run. Include bulk.cuh first: it has `put` and
// `get`.
#pragma once
#include "scalar.cuh"

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
