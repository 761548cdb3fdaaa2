// The convergence measure of least-squares problems; measure.py is the CPU version.
#pragma once
#include "scalar.cuh"

DEVICE double share(double norm, double allowed) { return allowed > 0 ? norm / allowed : norm > 0 ? 1e150 : norm * 0; }

DEVICE double measure2(double residual, double normal, double allowed, double factor) {
  const double least = fmin(share(residual, allowed), share(normal, factor * residual));
  return least * least;
}
