// Split of a rank's rows into the diagonal block and the rest, on the host, before they are sent to a GPU.
#include "../../core/native/launcher.hpp"

namespace {

// Return the number of entries of `indices` in first … stop − 1.
template <class I> int64_t count_inside(Array<const I> indices, int64_t first, int64_t stop) {
  int64_t count = 0;
  for (int64_t k = 0; k < indices.size; ++k) count += first <= indices[k] && indices[k] < stop;
  return count;
}

// Split a CSR matrix (indptr, indices, data) into two: `own` with the columns first … stop − 1, renumbered from 0, and
// `rest` with the other columns, unchanged. The caller allocates the arrays own_… and rest_…, with own_indptr[0] =
// rest_indptr[0] = 0.
template <class T, class I, class J>
void split(Array<const I> indptr, Array<const I> indices, Array<const T> data, int64_t first, int64_t stop,
           Array<J> own_indptr, Array<J> own_indices, Array<T> own_data, Array<J> rest_indptr,
           Array<int64_t> rest_indices, Array<T> rest_data) {
  int64_t own = 0, rest = 0;
  for (int64_t i = 0; i < indptr.size - 1; ++i) {
    for (int64_t at = indptr[i]; at < indptr[i + 1]; ++at) {
      const int64_t j = indices[at];
      if (first <= j && j < stop) own_indices[own] = J(j - first), own_data[own++] = data[at];
      else rest_indices[rest] = j, rest_data[rest++] = data[at];
    }
    own_indptr[i + 1] = J(own), rest_indptr[i + 1] = J(rest);
  }
}

}  // namespace

#define FOR_VALUES(I, J) INSTANCE(split, double, I, J), INSTANCE(split, float, I, J), \
    INSTANCE(split, complex<double>, I, J), INSTANCE(split, complex<float>, I, J)
KERNELS("swell.distributed.split", INDICES(count_inside), FOR_VALUES(int32_t, int32_t), FOR_VALUES(int64_t, int32_t),
        FOR_VALUES(int64_t, int64_t))
