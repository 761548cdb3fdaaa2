// Interpolation of cell values to faces on a CPU; interpolation.cu is the GPU version.
#include "../../../core/native/launcher.hpp"
#include "../../../core/native/threads.hpp"

namespace {

// Interpolate cell values p to the faces: out = w p_O + (1 − w) p_N with w = weight[face], or if `harmonic`
// 1/((1 − w)/p_O + w/p_N). O = owner[face], N = neighbour[face]; out = p_O on boundary faces, which have no neighbour.
template <class T>
void to_faces(Array<const int32_t> owner, Array<const int32_t> neighbour, Array<const T> weight, Array<const T> p,
              bool harmonic, Array<T> out) {
  const auto interpolate = [=](auto mean) {
    each(out.size, [=](int64_t f) {
      const T own = p[owner[f]];
      out[f] = f < neighbour.size ? mean(own, p[neighbour[f]], weight[f]) : own;
    });
  };
  if (harmonic) interpolate([](T own, T other, T w) { return 1 / ((1 - w) / own + w / other); });
  else interpolate([](T own, T other, T w) { return w * own + (1 - w) * other; });
}

}  // namespace

KERNELS("swell.pde.fvm.interpolation", REALS(to_faces))
