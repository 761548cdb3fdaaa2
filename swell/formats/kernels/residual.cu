// The true residual of a CSR system and the size of its rounding errors. residual.cpp is the CPU's version, and says
// what is computed and why. The entries of a row are added by `lanes` lanes, a power of two up to the mean row length.
#include "columns.cuh"
#include "doubled.cuh"
#include "modulus.cuh"

DEVICE int lanes_of(long long n, long long nnz) {
  int lanes = 1;
  while (lanes < 32 && 2 * lanes * n <= nnz) lanes *= 2;
  return lanes;
}

// r = b − A x and terms = |A||x| + |b|. With `boundary`: r[boundary] −= A x, and likewise; b is not read.
// launch: elements of r, 256 threads
template <typename T, typename I, bool BOUNDARY>
__global__ void residual(Context* ctx, const I* indptr, const I* indices, const T* data, const int* boundary,
    const T* x, const acc_t<T>* b, acc_t<T>* r, double* terms, long long n, long long indptr_size,
    long long data_size) {
  if (stopped(ctx)) return;
  const int lanes = lanes_of(indptr_size - 1, data_size), lane = threadIdx.x % 32, part = lane % lanes;
  const long long first = thread_id() - lane;
  for (int pass = 0; pass < lanes; ++pass) {
    const long long k = first + pass * (32 / lanes) + lane / lanes;
    acc_t<T> sum(0);
    double size = 0;
    if (k < indptr_size - 1)
      for (I e = indptr[k] + part; e < indptr[k + 1]; e += lanes) {
        const acc_t<T> product = acc_t<T>(load_stream(data + e)) * acc_t<T>(x[__ldcs(indices + e)]);
        sum += product, size += modulus(product);
      }
    for (int o = lanes / 2; o; o >>= 1) {
      sum = sum + shuffle_xor(sum, o);
      size += shuffle_xor(size, o);
    }
    if (part || k >= indptr_size - 1) continue;
    const long long i = BOUNDARY ? boundary[k] : k;
    const acc_t<T> from = BOUNDARY ? r[i] : b[i];
    r[i] = from - sum, terms[i] = (BOUNDARY ? terms[i] : modulus(from)) + size;
  }
}

// r + low = b − A x, as two numbers a row: the sum and its rounding error. `boundary`: as for `residual`.
// launch: elements of r, 256 threads
template <typename T, typename I, bool BOUNDARY>
__global__ void precise(Context* ctx, const I* indptr, const I* indices, const T* data, const int* boundary,
    const T* x, const acc_t<T>* b, acc_t<T>* r, acc_t<T>* low, long long n, long long indptr_size) {
  if (stopped(ctx)) return;
  const long long k = thread_id();
  if (k >= indptr_size - 1) return;
  const long long i = BOUNDARY ? boundary[k] : k;
  acc_t<T> high = BOUNDARY ? r[i] : b[i], rest = BOUNDARY ? low[i] : acc_t<T>(0);
  for (I e = indptr[k]; e < indptr[k + 1]; ++e)
    minus_product(high, rest, acc_t<T>(data[e]), acc_t<T>(x[indices[e]]));
  r[i] = high, low[i] = rest;
}

DEVICE double larger(double a, double b) { return a > b || isnan(a) ? a : b; }

// Sums of the first two numbers of a thread and maxima of the others, over the block; valid in thread 0 only.
DEVICE void block_result(double (&v)[5]) {
  __shared__ double parts[32][5];
  for (int o = 16; o; o >>= 1)
#pragma unroll
    for (int k = 0; k < 5; ++k) {
      const double other = __shfl_xor_sync(~0u, v[k], o);
      v[k] = k < 2 ? v[k] + other : larger(other, v[k]);
    }
  __syncthreads();
  if (threadIdx.x % 32 == 0)
#pragma unroll
    for (int k = 0; k < 5; ++k) parts[threadIdx.x / 32][k] = v[k];
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < blockDim.x / 32; ++w)
#pragma unroll
    for (int k = 0; k < 5; ++k) v[k] = k < 2 ? v[k] + parts[w][k] : larger(parts[w][k], v[k]);
}

// out = Σ|r_i|², Σt_i², max |r_i|, max |x_i|, max |r_i|/t_i, with t = terms; NaN if any of them meets NaN.
// launch: elements of r, 256 threads, at most 2 blocks per multiprocessor
template <typename T> __global__ void assess(Context* ctx, const acc_t<T>* r, const double* terms, const T* x,
    double* out, long long n) {
  if (stopped(ctx)) return;
  double v[5] = {0, 0, 0, 0, 0};
  for (long long i = thread_id(); i < n; i += threads()) {
    const double of_r = modulus(r[i]), t = terms[i];
    v[0] += of_r * of_r, v[1] += t * t;
    v[2] = larger(of_r, v[2]), v[3] = larger(modulus(x[i]), v[3]);
    if (of_r != 0) v[4] = larger(t != 0 ? of_r / t : __longlong_as_double(0x7ff0000000000000ll), v[4]);
  }
  block_result(v);
  if (threadIdx.x == 0)
#pragma unroll
    for (int k = 0; k < 5; ++k) ctx->partials[5 * blockIdx.x + k] = v[k];
  if (!last_block(ctx)) return;
#pragma unroll
  for (int k = 0; k < 5; ++k) v[k] = 0;
  for (int block = threadIdx.x; block < gridDim.x; block += blockDim.x)
#pragma unroll
    for (int k = 0; k < 5; ++k) {
      const double part = __ldcg(ctx->partials + 5 * block + k);
      v[k] = k < 2 ? v[k] + part : larger(part, v[k]);
    }
  block_result(v);
  if (threadIdx.x == 0)
#pragma unroll
    for (int k = 0; k < 5; ++k) out[k] = v[k];
}
