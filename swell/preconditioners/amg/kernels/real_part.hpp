// Real parts of turned rows, and mirrored values, for both devices; see real_part.py one folder up.
//
// A GPU rounds products before they are added: so both devices find the same links strong.
#include "entries.hpp"
#include "modulus.hpp"

namespace {

// out = bᵢⱼ = Re(aᵢⱼ āᵢᵢ) / |aᵢᵢ| for each entry of a complex CSR matrix; 0 in rows without a diagonal.
// launch: elements of indptr, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <class T, class I>
ROW_KERNEL turned(Device device, Array<const I> indptr, Array<const I> indices, Array<const T> data,
                  Array<double> out) {
  entries(device, indptr, data.size, [=](auto row) {
    double a = 0, b = 0;
    row.each([&](int64_t k) {
      const double size = indices[k] == row.i ? modulus(real_of(data[k]), imaginary_of(data[k])) : 0;
      if (size > 0) a = real_of(data[k]) / size, b = imaginary_of(data[k]) / size;
    });
    a = row.sum(a), b = row.sum(b);
    row.each([&](int64_t k) { out[k] = unfused(real_of(data[k]), a, imaginary_of(data[k]) * b); });
  });
}

// mirror[k] = aⱼᵢ for each entry k = (i, j) of a CSR matrix with sorted columns; 0 where it is not stored.
// launch: elements of indptr, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <class I>
ROW_KERNEL mirrored(Device device, Array<const I> indptr, Array<const I> indices, Array<const double> data,
                    Array<double> mirror) {
  entries(device, indptr, data.size, [=](auto row) {
    row.each([&](int64_t k) {
      const int64_t j = indices[k], end = indptr[j + 1];
      int64_t low = indptr[j], high = end;
      while (low < high) {                       // the first entry of row j whose column is at least i
        const int64_t middle = (low + high) / 2;
        if (indices[middle] < row.i) low = middle + 1;
        else high = middle;
      }
      mirror[k] = low < end && indices[low] == row.i ? data[low] : 0.0;
    });
  });
}

}  // namespace

KERNELS("swell.preconditioners.amg.real_part", INSTANCE(turned, complex<double>, int32_t),
        INSTANCE(turned, complex<double>, int64_t), INDICES(mirrored))
