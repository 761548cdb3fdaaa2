// A hash of row numbers, for choices that look random and are equal on every device and any number of ranks.
#pragma once
#include "scalar.hpp"

// A 32-bit hash of a row's number, different for different rows: MurmurHash3's last step.
DEVICE uint32_t scattered(int64_t row) {
  uint32_t h = uint32_t(row);
  h ^= h >> 16;
  h *= 0x85EBCA6Bu;
  h ^= h >> 13;
  h *= 0xC2B2AE35u;
  return h ^ (h >> 16);
}
