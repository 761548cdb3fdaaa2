// Interpolation of cell values to faces, for both devices.
#include "step.hpp"

namespace {

// Interpolate cell values p to the faces: out = w p_O + (1 − w) p_N with w = weight[face], or if `harmonic`
// 1/((1 − w)/p_O + w/p_N). O = owner[face], N = neighbour[face]; out = p_O on boundary faces, which have no neighbour.
// launch: elements of out, 256 threads
template <class T>
ROW_KERNEL to_faces(Device device, Array<const int32_t> owner, Array<const int32_t> neighbour, Array<const T> weight,
                    Array<const T> p, bool harmonic, Array<T> out) {
  rows(device, out.size, [=](int64_t f) {
    const T own = p[owner[f]];
    if (f >= neighbour.size) return void(out[f] = own);
    const T other = p[neighbour[f]], w = weight[f];
    out[f] = harmonic ? T(1) / ((T(1) - w) / own + w / other) : w * own + (T(1) - w) * other;
  });
}

}  // namespace

KERNELS("swell.pde.fvm.interpolation", REALS(to_faces))
