// The largest entries of dense matrices, for both devices.
#include "entries.hpp"

namespace {

// out[m n + l] = the largest modulus in line l of matrix m, a row if `column` is 1, else a column; NaN if the line has
// one. `lu`: matrices of n rows as a flat array, line after line. `unit` names the factor with the unit diagonal (1: U,
// 2: L, 0: none); its entries are multiplied by the diagonal entry that divided them.
// launch: elements of out, 256 threads, a warp each
template <class T>
ROW_KERNEL largest_of_lines(Device device, Array<const T> lu, int64_t column, int64_t unit, int64_t n,
                            Array<double> out) {
  lines(device, out.size, n, [=](auto line) {
    const int64_t l = line.i % n;
    const Array<const T> row = lu.from(line.i * n);
    const double of_line = modulus(wide(row[l]));
    double most = 0;
    line.each([&](int64_t t) {
      double size = modulus(wide(row[t]));
      const bool above = column == 1 ? t > l : t < l;
      if ((above && unit == 1) || (!above && t != l && unit == 2))       // of row i for U, of column j for L
        size *= (column == 1) == (unit == 1) ? of_line : modulus(wide(row[(t - l) * n + t]));
      most = size > most || isnan(size) ? size : most;
    });
    out[line.i] = line.max(most);
  });
}

}  // namespace

KERNELS("swell.dense.growth", VALUES(largest_of_lines))
