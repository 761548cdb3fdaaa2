// Matrices gathered over faces of cells, on a CPU. assembly.cu has a text of its own: a block of threads collects
// its rows in shared memory.
#include "../../../core/native/launcher.hpp"
#include "../../../core/native/threads.hpp"

namespace {

// Write the matrix of Σ ±F over each cell's faces to `values`, from the fluxes F = a p_O + b p_N. Row i holds cell i's
// coefficients, plus diagonal[i] on the diagonal (unless that array is empty).
//
// `ptr`, `faces`: cell i has the faces faces[ptr[i]:ptr[i+1]]; f if cell i owns the face, ~f if it is its neighbour.
// Faces to the same cell are consecutive, and the loop adds up their coefficients. places[k]: index in `values` of the
// entry for faces[k], −1 for a boundary face; middle[i]: index of row i's diagonal. Only the GPU uses `indptr`, the
// starts of the rows in `values`; it is empty for formats other than CSR.
template <class T, class I>
void assemble(Array<const I> ptr, Array<const I> faces, Array<const I> places, Array<const I> middle,
              Array<const T> a, Array<const T> b, Array<const T> diagonal, Array<const I> indptr, Array<T> values) {
  each(middle.size, [=](int64_t i) {
    T own = diagonal.size ? diagonal[i] : T(0), other = 0;
    int64_t last = -1;
    for (int64_t k = ptr[i]; k < ptr[i + 1]; ++k) {
      const int64_t f = faces[k], place = places[k];
      T part = 0;
      if (f >= 0) {
        own += a[f];
        if (place >= 0) part = b[f];
      } else {
        own -= b[~f];
        part = -a[~f];
      }
      if (place >= 0) values[place] = other = place == last ? other + part : part;
      last = place;
    }
    values[middle[i]] = own;
  });
}

}  // namespace

KERNELS("swell.pde.fvm.assembly", REALS_INDICES(assemble))
