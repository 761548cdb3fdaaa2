// Gradients of cell values on a CPU; gradient.cu is the GPU version.
#include "../../../core/native/launcher.hpp"
#include "../../../core/native/threads.hpp"

namespace {

// out = G⁻¹ Σ reach Δp over each cell's faces. `ptr`, `faces` as in `assemble`; `inverse`: G⁻¹'s upper triangle by
// rows, (6, n). At the boundary Δp = (rate − slope p) distance, for one field's conditions.
template <class T, class I>
void least_squares(Array<const I> ptr, Array<const I> faces, Array<const int32_t> owner,
                   Array<const int32_t> neighbour, Table<const T> reach, Table<const T> inverse, Array<const T> slope,
                   Array<const T> rate, Array<const T> distance, Array<const T> p, Table<T> out) {
  const int64_t internal = neighbour.size;
  each(ptr.size - 1, [=](int64_t c) {
    T x = 0, y = 0, z = 0;
    for (int64_t at = ptr[c]; at < ptr[c + 1]; ++at) {
      const int64_t f = faces[at] < 0 ? ~faces[at] : faces[at], e = f - internal;
      const T jump = f < internal ? p[neighbour[f]] - p[owner[f]] : (rate[e] - slope[e] * p[c]) * distance[e];
      x += reach[0][f] * jump, y += reach[1][f] * jump, z += reach[2][f] * jump;
    }
    out[0][c] = inverse[0][c] * x + inverse[1][c] * y + inverse[2][c] * z;
    out[1][c] = inverse[1][c] * x + inverse[3][c] * y + inverse[4][c] * z;
    out[2][c] = inverse[2][c] * x + inverse[4][c] * y + inverse[5][c] * z;
  });
}

}  // namespace

KERNELS("swell.pde.fvm.gradient", REALS_INDICES(least_squares))
