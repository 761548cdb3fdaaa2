// The largest entries of dense matrices, on a GPU; growth.cpp is the CPU's version.
#include "breakdown.cuh"
#include "context.cuh"

// out = the largest modulus in each line, as in growth.cpp. A warp a line; the entries of a line are contiguous.
// launch: elements of out, 256 threads, a warp each
template <typename T>
__global__ void largest_of_lines(Context* ctx, const T* lu, int column, int unit, int n, double* out,
    long long out_size) {
  if (stopped(ctx)) return;
  const long long line = thread_id() / 32, first = line * n;
  if (line >= out_size) return;
  const int l = line % n;
  const double of_line = modulus(acc_t<T>(lu[first + l]));
  auto larger = [](double a, double b) { return a > b || isnan(a) ? a : b; };
  double most = 0;
  for (int t = threadIdx.x % 32; t < n; t += 32) {
    double size = modulus(acc_t<T>(lu[first + t]));
    const bool above = column == 1 ? t > l : t < l;
    if ((above && unit == 1) || (!above && t != l && unit == 2))
      size *= (column == 1) == (unit == 1) ? of_line : modulus(acc_t<T>(lu[first + (t - l) * (long long)n + t]));
    most = larger(size, most);
  }
  for (int o = 16; o; o >>= 1) most = larger(__shfl_xor_sync(~0u, most, o), most);
  if (threadIdx.x % 32 == 0) out[line] = most;
}
