// Gradients of cell values, for both devices.
#include "step.hpp"

namespace {

// out = G⁻¹ Σ reach Δp over each cell's faces. `ptr`, `faces` as in `assemble`; `inverse`: G⁻¹'s upper triangle by
// rows, (6, n). At the boundary Δp = (rate − slope p) distance, for one field's conditions.
// launch: columns of out, 128 threads
template <class T, class I>
ROW_KERNEL least_squares(Device device, Array<const I> ptr, Array<const I> faces, Array<const int32_t> owner,
                         Array<const int32_t> neighbour, Table<const T> reach, Table<const T> inverse,
                         Array<const T> slope, Array<const T> rate, Array<const T> distance, Array<const T> p,
                         Table<T> out) {
  rows(device, out.columns, [=](int64_t c) {
    T x = 0, y = 0, z = 0;
    for (I k = ptr[c]; k < ptr[c + 1]; ++k) {
      const I f = faces[k] < 0 ? ~faces[k] : faces[k];
      const int64_t e = f - neighbour.size;                 // number of a boundary face
      const T jump = e < 0 ? p[neighbour[f]] - p[owner[f]] : (rate[e] - slope[e] * p[c]) * distance[e];
      x += reach[0][f] * jump, y += reach[1][f] * jump, z += reach[2][f] * jump;
    }
    out[0][c] = inverse[0][c] * x + inverse[1][c] * y + inverse[2][c] * z;
    out[1][c] = inverse[1][c] * x + inverse[3][c] * y + inverse[4][c] * z;
    out[2][c] = inverse[2][c] * x + inverse[4][c] * y + inverse[5][c] * z;
  });
}

}  // namespace

KERNELS("swell.pde.fvm.gradient", REALS_INDICES(least_squares))
