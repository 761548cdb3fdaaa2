// Conversion of a mesh to lists of faces by cell, for the VTU writer.
#include <algorithm>
#include <vector>

#include "../../../core/native/launcher.hpp"

namespace {

// List the faces of each cell in CSR form: writes `ptr` and `faces`; cell c has faces[ptr[c]:ptr[c+1]]. `ptr` holds
// n + 1 zeros on entry. `owner`, `neighbour`: the two cells of each face, see Mesh.
void faces_of_cells(Array<const int32_t> owner, Array<const int32_t> neighbour, Array<int64_t> ptr,
                    Array<int32_t> faces) {
  for (int64_t f = 0; f < owner.size; ++f) {
    ++ptr[owner[f] + 1];
    if (f < neighbour.size) ++ptr[neighbour[f] + 1];
  }
  for (int64_t c = 1; c < ptr.size; ++c) ptr[c] += ptr[c - 1];
  std::vector<int64_t> fill(ptr.data, ptr.data + ptr.size - 1);
  for (int64_t f = 0; f < owner.size; ++f) {
    faces[fill[owner[f]]++] = int32_t(f);
    if (f < neighbour.size) faces[fill[neighbour[f]]++] = int32_t(f);
  }
}

// Fill VTK's arrays of polyhedra. Face f has the points face_points[face_ptr[f]:face_ptr[f+1]]; `ptr`, `faces` as
// `faces_of_cells` writes them.
//
// `stream` gets, for each cell, its number of faces and for each face the number of points and the points, so that the
// face points outwards; stream_ends[c]: the end of cell c there. `connectivity` gets the distinct points of each cell,
// which end at ends[c]. Return the number of used entries of `connectivity`.
template <class I>
int64_t polyhedra(Array<const int32_t> face_ptr, Array<const int32_t> face_points, Array<const int32_t> owner,
                  Array<const int64_t> ptr, Array<const int32_t> faces, int64_t n_points, Array<I> stream,
                  Array<I> stream_ends, Array<I> connectivity, Array<I> ends) {
  std::vector<int64_t> seen(n_points, -1);
  int64_t at = 0, total = 0;
  for (int64_t c = 0; c < ptr.size - 1; ++c) {
    stream[at++] = I(ptr[c + 1] - ptr[c]);
    for (int64_t k = ptr[c]; k < ptr[c + 1]; ++k) {
      const int64_t f = faces[k], start = face_ptr[f], stop = face_ptr[f + 1];
      stream[at++] = I(stop - start);
      for (int64_t j = 0; j < stop - start; ++j) {
        const int32_t p = face_points[owner[f] == c ? start + j : stop - 1 - j];
        stream[at++] = p;
        if (seen[p] == c) continue;
        seen[p] = c;
        connectivity[total++] = p;
      }
    }
    stream_ends[c] = I(at), ends[c] = I(total);
  }
  return total;
}

}  // namespace

KERNELS("swell.pde.fvm.polyhedra", PLAIN(faces_of_cells), INDICES(polyhedra))
