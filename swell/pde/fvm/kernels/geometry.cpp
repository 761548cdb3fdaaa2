// Areas, volumes and centres of polyhedra, computed once for each mesh, on the CPU, where meshes live.
//
// Arguments: points, shape (p, 3); face_ptr, face_points, owner, neighbour as in Mesh. Each kernel writes its last
// arguments, which the caller allocates: one value, or one vector of 3 numbers, for each face or cell.
#include <math.h>

#include <vector>

#include "../../../core/native/launcher.hpp"
#include "../../../core/native/threads.hpp"
#include "vectors.hpp"

namespace {

constexpr double DEGREE = 180 / 3.141592653589793;

// Write each face's area vector to `areas` and its centre to `centres`, from its triangles about its points' mean.
void face_geometry(Table<const double> points, Array<const int32_t> face_ptr, Array<const int32_t> face_points,
                   Table<double> areas, Table<double> centres) {
  each(face_ptr.size - 1, [=](int64_t f) {
    const int64_t start = face_ptr[f], stop = face_ptr[f + 1];
    const auto point = [=](int64_t k) { return vector_of(points, face_points[k]); };
    Vector mean{0, 0, 0}, area{0, 0, 0}, centre{0, 0, 0};
    for (int64_t k = start; k < stop; ++k) mean += point(k);
    mean = mean / double(stop - start);
    const Vector last = point(stop - 1) - mean;
    Vector a = last;
    for (int64_t k = start; k < stop; ++k) {           // S = 1/2 Σ a × b
      const Vector b = point(k) - mean;
      area += 0.5 * cross(a, b);
      a = b;
    }
    put(areas, f, area);
    double weight = 0;
    a = last;
    for (int64_t k = start; k < stop; ++k) {           // weights: areas along S, negative where the face folds
      const Vector b = point(k) - mean;
      const double w = dot(area, cross(a, b));
      centre += w * (a + b);
      weight += w;
      a = b;
    }
    put(centres, f, mean + (weight > 0 ? 1 / (3 * weight) : 0.0) * centre);
  });
}

// body(cell, face, sign) for the one or two cells of each face; sign is −1 for the neighbour.
template <class F> void sides(Array<const int32_t> owner, Array<const int32_t> neighbour, const F& body) {
  for (int64_t f = 0; f < owner.size; ++f) {
    body(owner[f], f, 1);
    if (f < neighbour.size) body(neighbour[f], f, -1);
  }
}

// Write each cell's volume and centre, from the pyramids of its faces about the mean of their centres; `areas`,
// `face_centres` as face_geometry writes them. `closure` gets the sum of the cell's outward area vectors, `surface` the
// sum of their lengths.
void cell_geometry(Table<const double> areas, Table<const double> face_centres, Array<const int32_t> owner,
                   Array<const int32_t> neighbour, Array<double> volumes, Table<double> centres, Table<double> closure,
                   Array<double> surface) {
  struct Cell { Vector apex, moment, closure; double count, volume, surface; };
  std::vector<Cell> cells(volumes.size);
  sides(owner, neighbour, [&](int64_t c, int64_t f, double sign) {
    const Vector area = vector_of(areas, f);
    cells[c].count += 1;
    cells[c].surface += length(area);
    cells[c].apex += vector_of(face_centres, f);
    cells[c].closure += sign * area;
  });
  for (Cell& cell : cells) cell.apex = cell.apex / cell.count;
  sides(owner, neighbour, [&](int64_t c, int64_t f, double sign) {
    const Vector arm = vector_of(face_centres, f) - cells[c].apex;
    const double third = sign * dot(vector_of(areas, f), arm);                   // three times the pyramid's volume
    cells[c].volume += third / 3;
    cells[c].moment += third * 0.25 * arm;             // the pyramid's centre is 3/4 of the way from the apex
  });
  for (int64_t c = 0; c < volumes.size; ++c) {
    const Cell& cell = cells[c];
    volumes[c] = cell.volume, surface[c] = cell.surface;
    put(closure, c, cell.closure);
    put(centres, c, cell.volume != 0 ? cell.apex + cell.moment / cell.volume : cell.apex);
  }
}

// Write to `degrees` the angle between each internal face's normal (area vectors `areas`) and the line between its two
// cells' centres (`centres`).
void non_orthogonality(Table<const double> areas, Table<const double> centres, Array<const int32_t> owner,
                       Array<const int32_t> neighbour, Array<double> degrees) {
  each(neighbour.size, [=](int64_t f) {
    const Vector d = vector_of(centres, neighbour[f]) - vector_of(centres, owner[f]), s = vector_of(areas, f);
    degrees[f] = DEGREE * atan2(length(cross(d, s)), dot(d, s));                 // acos is inaccurate for small angles
  });
}

// Write to projected[c] the sum of |S| over cell c's faces, component by component; S: a face's area vector in `areas`.
void projected_areas(Table<const double> areas, Array<const int32_t> owner, Array<const int32_t> neighbour,
                     Table<double> projected) {
  for (int64_t c = 0; c < projected.rows; ++c) put(projected, c, {0, 0, 0});
  sides(owner, neighbour, [=](int64_t c, int64_t f, double) {
    for (int d = 0; d < 3; ++d) projected[c][d] += fabs(areas[f][d]);
  });
}

// Write a hash of each face's point numbers to `hashes`; it does not depend on their order.
void face_hashes(Array<const int32_t> face_ptr, Array<const int32_t> face_points, Array<uint64_t> hashes) {
  each(face_ptr.size - 1, [=](int64_t f) {
    uint64_t total = 0;
    for (int64_t k = face_ptr[f]; k < face_ptr[f + 1]; ++k) {
      uint64_t z = (uint64_t(face_points[k]) + 1) * 0x9E3779B97F4A7C15;          // SplitMix64
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
      total += z ^ (z >> 31);
    }
    hashes[f] = total;
  });
}

// Write the perimeter of each face to `lengths`.
void perimeters(Table<const double> points, Array<const int32_t> face_ptr, Array<const int32_t> face_points,
                Array<double> lengths) {
  each(face_ptr.size - 1, [=](int64_t f) {
    double total = 0;
    Vector last = vector_of(points, face_points[face_ptr[f + 1] - 1]);
    for (int64_t k = face_ptr[f]; k < face_ptr[f + 1]; ++k) {
      const Vector p = vector_of(points, face_points[k]);
      total += length(p - last);
      last = p;
    }
    lengths[f] = total;
  });
}

}  // namespace

KERNELS("swell.pde.fvm.geometry", PLAIN(face_geometry), PLAIN(cell_geometry), PLAIN(non_orthogonality),
        PLAIN(projected_areas), PLAIN(face_hashes), PLAIN(perimeters))
