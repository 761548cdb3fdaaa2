// The transpose of a CSR matrix on a CPU; transpose.cu is for GPUs.
#include <vector>

#include "../../core/native/launcher.hpp"

namespace {

// Write the CSR arrays of Mᵀ (`new_…`) and, unless `order` is empty, the index in M of each of its values.
//
// The first three arguments are M in CSR. Its rows are visited in order, so columns ascend in each row of Mᵀ.
template <class T, class I>
void transpose(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<I> new_indptr,
               Array<I> new_indices, Array<T> new_data, Array<I> order) {
  for (int64_t j = 0; j < new_indptr.size; ++j) new_indptr[j] = 0;
  for (int64_t k = 0; k < indices.size; ++k) ++new_indptr[int64_t(indices[k]) + 1];
  for (int64_t j = 1; j < new_indptr.size; ++j) new_indptr[j] += new_indptr[j - 1];
  std::vector<I> places(new_indptr.data, new_indptr.data + new_indptr.size - 1);
  for (int64_t i = 0; i + 1 < indptr.size; ++i)
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      const int64_t place = places[indices[k]]++;
      new_indices[place] = I(i), new_data[place] = data[k];
      if (order.size) order[place] = I(k);
    }
}

}  // namespace

KERNELS("swell.formats.transpose", VALUES_INDICES(transpose))
