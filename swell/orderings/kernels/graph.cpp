// A graph kernel on a CPU.
#include <vector>

#include "../../core/native/launcher.hpp"

namespace {

// Write the lists of the transposed graph to `out`; the list of vertex u begins at out_indptr[u].
//
// Each vertex v, in the order of `visit`, is appended to the list of each of its neighbours,
// neighbours[indptr[v]:indptr[v + 1]]. So every list of `out` is in the order of `visit`.
template <class I>
void transpose_graph(Array<const I> indptr, Array<const I> neighbours, Array<const I> visit, Array<const I> out_indptr,
                     Array<I> out) {
  std::vector<I> at(out_indptr.data, out_indptr.data + out_indptr.size - 1);
  for (int64_t t = 0; t < visit.size; ++t) {
    const I v = visit[t];
    for (int64_t k = indptr[v]; k < indptr[v + 1]; ++k) out[at[neighbours[k]]++] = v;
  }
}

}  // namespace

KERNELS("swell.orderings.graph", INDICES(transpose_graph))
