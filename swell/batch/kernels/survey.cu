// What the choice of a method asks of each system of a batch: a block looks at one, on a CPU a thread (survey.cpp).
#include "batch.hpp"

// definite[s] = 1 if system s is Hermitian, to `tolerance` of its largest entry, with a positive diagonal, or if it is
// not finite; else 0.
// launch: a block of threads threads for each row of values
template <typename T>
__global__ void __launch_bounds__(512) survey(Context* ctx, const int* indptr, const int* indices, const int* diagonal,
    const int* mirror, const T* values, double tolerance, int* definite, int threads, long long diagonal_size) {
  if (stopped(ctx)) return;
  const int n = int(diagonal_size), nnz = indptr[n];
  const T* a = values + blockIdx.x * (long long)nnz;
  double v[4] = {0, 0, 0, 0};                                // Σ |a|; negative or zero diagonals; largest |a|, |a − aᴴ|
  for (int k = threadIdx.x; k < nnz; k += blockDim.x) {
    const T other = mirror[k] >= 0 ? a[mirror[k]] : T(0);
    v[0] += modulus(a[k]);
    v[2] = larger(v[2], modulus(a[k])), v[3] = larger(v[3], modulus(a[k] - conj(other)));
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) if (!(real_of(a[diagonal[i]]) > 0)) v[1] += 1;
  Team team{nullptr, 0};
  team.reduce<2>(v);
  if (threadIdx.x == 0) definite[blockIdx.x] = !isfinite(v[0]) || (v[1] == 0 && v[3] <= tolerance * v[2]);
}
