// Real parts of turned rows, and mirrored values, on a CPU, threads sharing the rows; see real_part.py one folder up.
#include "../../../core/kernels/modulus.hpp"
#include "../../../core/native/launcher.hpp"
#include "../../../core/native/threads.hpp"

namespace {

// out = bᵢⱼ = Re(aᵢⱼ āᵢᵢ) / |aᵢᵢ| for each entry of a complex CSR matrix; 0 in rows without a diagonal.
template <class T, class I>
void turned(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<double> out) {
  each(indptr.size - 1, [=](int64_t i) {
    double a = 0, b = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k)
      if (indices[k] == i) {
        const auto size = modulus(data[k]);
        a = size > 0 ? data[k].re / size : 0, b = size > 0 ? data[k].im / size : 0;
      }
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) out[k] = data[k].re * a + data[k].im * b;
  });
}

// mirror[k] = aⱼᵢ for each entry k = (i, j) of a CSR matrix with sorted columns; 0 where it is not stored.
template <class I>
void mirrored(Array<const I> indptr, Array<const I> indices, Array<const double> data, Array<double> mirror) {
  each(indptr.size - 1, [=](int64_t i) {
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      const int64_t j = indices[k], end = indptr[j + 1];
      int64_t low = indptr[j], high = end;
      while (low < high) {                       // the first entry of row j whose column is at least i
        const int64_t middle = (low + high) / 2;
        if (indices[middle] < i) low = middle + 1;
        else high = middle;
      }
      mirror[k] = low < end && indices[low] == i ? data[low] : 0.0;
    }
  });
}

}  // namespace

KERNELS("swell.preconditioners.amg.real_part", INSTANCE(turned, complex<double>, int32_t),
        INSTANCE(turned, complex<double>, int64_t), INDICES(mirrored))
