// A vector ordered by fields, and back, on a CPU; fields.cu is the GPU version. See preconditioners/fields.py.
#include "../../core/native/launcher.hpp"
#include "../../core/native/lanes.hpp"

namespace {

// out[k] = x[rows[k]]; zero where rows[k] is negative, between two fields.
template <class T, class I> void split(Array<const T> x, Array<const I> rows, Array<T> out) {
  each(out.size, [=](int64_t k) { out[k] = rows[k] >= 0 ? x[rows[k]] : T(0); });
}

// out[i] = alpha y[places[i]] + beta out[i]; beta = 0 never reads out.
template <class T, class I> void join(Array<const T> y, Array<const I> places, Array<T> out, T alpha, T beta) {
  if (beta == T(0)) each(out.size, [=](int64_t i) { out[i] = alpha * y[places[i]]; });
  else each(out.size, [=](int64_t i) { out[i] = alpha * y[places[i]] + beta * out[i]; });
}

}  // namespace

KERNELS("swell.preconditioners.fields", VALUES_INDICES(split), VALUES_INDICES(join))
