// A(ω) from its three parts, on a CPU; system.cu is the GPU version.
#include "../../../core/native/lanes.hpp"
#include "../../../core/native/launcher.hpp"

namespace {

// out = K − ω² M + iω B, entry by entry; K is real. `w2` is ω², `iw` is iω. One pass over 56 bytes an entry in double.
template <class T>
void form(Array<const real_t<T>> K, Array<const T> M, Array<const T> B, T w2, T iw, Array<T> out) {
  each(out.size, [=](int64_t k) { out[k] = T(K[k]) - w2 * M[k] + iw * B[k]; });
}

}  // namespace

KERNELS("swell.pde.helmholtz.system", INSTANCE(form, complex<double>), INSTANCE(form, complex<float>))
