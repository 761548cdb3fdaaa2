// Kernels for the conversion of elements to faces: pairs of equal faces, and signed volumes.
#include <algorithm>
#include <vector>

#include "../../../core/native/launcher.hpp"
#include "vectors.hpp"

namespace {

// Write to mates[i] the face with the same corners as face i, or −1. `corners`: one row a face, each sorted; entries up
// to n_points. Only faces with the same lowest corner are compared. Return the first face found to have two mates, or
// −1.
int64_t match(Table<const int64_t> corners, int64_t n_points, Array<int64_t> mates) {
  std::vector<int64_t> ptr(n_points + 2), bucket(corners.rows);
  for (int64_t i = 0; i < corners.rows; ++i) ++ptr[corners[i][0] + 2];
  for (int64_t p = 2; p < n_points + 2; ++p) ptr[p] += ptr[p - 1];
  for (int64_t i = 0; i < corners.rows; ++i) bucket[ptr[corners[i][0] + 1]++] = i;
  std::fill_n(mates.data, mates.size, -1);
  for (int64_t p = 0; p < n_points; ++p)
    for (int64_t a = ptr[p]; a < ptr[p + 1]; ++a)
      for (int64_t b = a + 1; b < ptr[p + 1]; ++b) {
        const int64_t i = bucket[a], j = bucket[b];
        if (!std::equal(corners[i].data, corners[i].data + corners.columns, corners[j].data)) continue;
        if (mates[i] >= 0) return i;
        mates[i] = j, mates[j] = i;
      }
  return -1;
}

// Write six times the signed volume of each cell to `volumes`. `points`: shape (p, 3); `faces`: the corners of each
// cell's faces, as many rows of four for each cell, −1 for none.
void signed_volumes(Table<const double> points, Table<const int64_t> faces, Array<double> volumes) {
  const int64_t count = volumes.size ? faces.rows / volumes.size : 0;
  for (int64_t c = 0; c < volumes.size; ++c) {
    const Vector o = vector_of(points, faces[c * count][0]);
    double total = 0;
    for (int64_t f = c * count; f < (c + 1) * count; ++f) {
      const Array<const int64_t> face = faces[f];
      const Vector a = vector_of(points, face[0]) - o;
      for (int k = 1; k < (face[3] >= 0 ? 3 : 2); ++k)
        total += dot(a, cross(vector_of(points, face[k]) - o, vector_of(points, face[k + 1]) - o));
    }
    volumes[c] = total;
  }
}

}  // namespace

KERNELS("swell.pde.fvm.elements", PLAIN(match), PLAIN(signed_volumes))
