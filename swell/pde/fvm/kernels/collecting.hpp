// Sums over the faces of each cell, for both devices.
#include "step.hpp"

namespace {

// out[i] = Σ flux over the faces that cell i owns + sign · Σ flux over the faces whose neighbour it is. `ptr`, `faces`
// as in `assemble`; `flux`: one value a face.
// launch: elements of out, 128 threads
template <class T, class I>
ROW_KERNEL collect(Device device, Array<const I> ptr, Array<const I> faces, Array<const T> flux, T sign, Array<T> out) {
  rows(device, out.size, [=](int64_t i) {
    T total = 0;
    for (I k = ptr[i]; k < ptr[i + 1]; ++k) {
      const I f = faces[k];
      total += f >= 0 ? flux[f] : sign * flux[~f];
    }
    out[i] = total;
  });
}

}  // namespace

KERNELS("swell.pde.fvm.collecting", REALS_INDICES(collect))
