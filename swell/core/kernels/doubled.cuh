// Sums of products in doubled precision: the sum and its rounding error, two numbers (formats/kernels/residual.cpp).
#pragma once
#include "scalar.cuh"

// high + rest −= a x; rest takes the rounding errors.
DEVICE void minus_product(double& high, double& rest, double a, double x) {
  const double product = __dmul_rn(a, x), error = fma(a, x, -product), after = __dsub_rn(high, product);
  const double taken = __dsub_rn(high, after);
  const double lost = __dadd_rn(__dsub_rn(high, __dadd_rn(after, taken)), __dsub_rn(taken, product));
  rest = __dadd_rn(rest, __dsub_rn(lost, error));
  high = after;
}
DEVICE void minus_product(complex<double>& high, complex<double>& rest, complex<double> a, complex<double> x) {
  minus_product(high.re, rest.re, a.re, x.re);
  minus_product(high.re, rest.re, -a.im, x.im);
  minus_product(high.im, rest.im, a.re, x.im);
  minus_product(high.im, rest.im, a.im, x.re);
}
