// The convergence measure of least-squares problems, for both devices.
#pragma once
#include "scalar.hpp"

// norm/allowed; if `allowed` is 0, a large number for norm > 0 and 0 for norm = 0.
DEVICE double share(double norm, double allowed) { return allowed > 0 ? norm / allowed : norm > 0 ? 1e150 : norm * 0; }

// min(‖r‖ / allowed, ‖Aᴴ r‖ / (factor ‖r‖))², which is at most 1 for a solved least-squares problem. `residual` = ‖r‖,
// `normal` = ‖Aᴴ r‖.
DEVICE double measure2(double residual, double normal, double allowed, double factor) {
  const double least = fmin(share(residual, allowed), share(normal, factor * residual));
  return least * least;
}
