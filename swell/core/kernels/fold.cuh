// Several sums of a warp at once. In each round a lane gives half of its values away and keeps the other half, so that K sums take
// about K + 5 exchanges in place of 5 K: a multiprocessor exchanges one 32-bit value of a warp in a cycle, and many warps queue.
#pragma once
#include "scalar.cuh"

DEVICE constexpr int twice(int count) { return count <= 1 ? 1 : count <= 2 ? 2 : count <= 4 ? 4 : 8; }   // the power of two

// The sums over groups of LANES lanes of K values, K a power of two: lane l of a group returns sum l / (LANES / K). The same bits as
// by warp_sum.
template <int LANES, int K> DEVICE double fold(double (&v)[K]) {
  const int lane = threadIdx.x & 31;
  int o = LANES / 2;
#pragma unroll
  for (int half = K / 2; half; half /= 2, o /= 2)
#pragma unroll
    for (int k = 0; k < half; ++k) {
      const double other = __shfl_xor_sync(~0u, lane & o ? v[k] : v[k + half], o);
      v[k] = (lane & o ? v[k + half] : v[k]) + other;
    }
#pragma unroll
  for (; o; o /= 2) v[0] += __shfl_xor_sync(~0u, v[0], o);
  return v[0];
}

// By one warp: its K sums to shared memory, for the communication warp.
template <int K> DEVICE void leave_sums(const double* v, double* to) {
  constexpr int N = twice(K);
  const int lane = threadIdx.x & 31;
  double padded[N];
#pragma unroll
  for (int k = 0; k < N; ++k) padded[k] = k < K ? v[k] : 0.0;
  const double sum = fold<32>(padded);
  if (lane % (32 / N) == 0 && lane / (32 / N) < K) to[lane / (32 / N)] = sum;
  __syncwarp();
}

// By one warp, every lane of which gets all sums, of K values over 16 rows: lane l brings row l % 16, the first half of the values
// if l < 16, else the rest.
template <int K, int EACH> DEVICE void sum_rows(double (&mine)[EACH], double* v) {
  const double sum = fold<16>(mine);
#pragma unroll
  for (int k = 0; k < K; ++k) v[k] = __shfl_sync(~0u, sum, k * (16 / EACH));
}
