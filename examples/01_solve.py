"""One call of swell.solve, and its report. Heat conduction in a chip, 32 768 unknowns."""
import numpy as np

import swell

A, b, shape, description = swell.gallery.chip_heat(cells=32)
result = swell.solve(A, b)
print(description)
print(result)

assert result.converged
assert np.linalg.norm(b - A @ result.x) <= 1e-8 * np.linalg.norm(b)
