// A(ω) from its three parts, for both devices.
#include "step.hpp"

namespace {

// out = K − ω² M + iω B, entry by entry; K is real. `w2` is ω², `iw` is iω. One pass over 56 bytes an entry in double.
// launch: elements of out, 256 threads
template <class T>
ROW_KERNEL form(Device device, Array<const real_t<T>> K, Array<const T> M, Array<const T> B, T w2, T iw, Array<T> out) {
  rows(device, out.size, [=](int64_t k) { out[k] = T(K[k]) - w2 * M[k] + iw * B[k]; });
}

}  // namespace

KERNELS("swell.pde.helmholtz.system", INSTANCE(form, complex<double>), INSTANCE(form, complex<float>))
