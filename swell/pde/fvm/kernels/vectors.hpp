// Vectors of three numbers, the rows of tables with three columns.
#pragma once
#include <math.h>

#include "../../../core/kernels/array.hpp"

struct Vector { double x, y, z; };

inline Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
inline Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
inline Vector operator*(double a, Vector b) { return {a * b.x, a * b.y, a * b.z}; }
inline Vector operator/(Vector a, double b) { return {a.x / b, a.y / b, a.z / b}; }
inline Vector& operator+=(Vector& a, Vector b) { return a = a + b; }
inline double dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline double length(Vector a) { return sqrt(dot(a, a)); }
inline Vector cross(Vector a, Vector b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

inline Vector vector_of(Table<const double> table, int64_t row) {
  const double* v = table[row].data;
  return {v[0], v[1], v[2]};
}
inline void put(Table<double> table, int64_t row, Vector value) {
  double* v = table[row].data;
  v[0] = value.x, v[1] = value.y, v[2] = value.z;
}
