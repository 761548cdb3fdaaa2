// A vector ordered by fields, and back, for both devices. See preconditioners/fields.py.
#include "step.hpp"

namespace {

// out[k] = x[ordered[k]]; zero where ordered[k] is negative, between two fields.
// launch: elements of out, 256 threads
template <class T, class I>
ROW_KERNEL split(Device device, Array<const T> x, Array<const I> ordered, Array<T> out) {
  rows(device, out.size, [=](int64_t k) { out[k] = ordered[k] >= 0 ? x[ordered[k]] : T(0); });
}

// out[i] = alpha y[places[i]] + beta out[i]; beta = 0 never reads out.
// launch: elements of out, 256 threads
template <class T, class I>
ROW_KERNEL join(Device device, Array<const T> y, Array<const I> places, Array<T> out, T alpha, T beta) {
  if (beta == T(0)) rows(device, out.size, [=](int64_t i) { out[i] = alpha * y[places[i]]; });
  else rows(device, out.size, [=](int64_t i) { out[i] = alpha * y[places[i]] + beta * out[i]; });
}

}  // namespace

KERNELS("swell.preconditioners.fields", VALUES_INDICES(split), VALUES_INDICES(join))
