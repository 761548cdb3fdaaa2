// Sums of products in doubled precision: the sum and its rounding error, two numbers. See residual.cpp.
#pragma once
#include "../../core/kernels/scalar.hpp"

// high + rest −= a x; `rest` takes the rounding errors.
inline void subtract(double& high, double& rest, double a, double x) {
  const double product = a * x, error = fma(a, x, -product);   // a x = product + error
  const double after = high - product, taken = high - after;
  const double lost = (high - (after + taken)) + (taken - product);        // high − product = after + lost
  high = after, rest += lost - error;
}
inline void subtract(complex<double>& high, complex<double>& rest, complex<double> a, complex<double> x) {
  subtract(high.re, rest.re, a.re, x.re), subtract(high.re, rest.re, -a.im, x.im);
  subtract(high.im, rest.im, a.re, x.im), subtract(high.im, rest.im, a.im, x.re);
}
