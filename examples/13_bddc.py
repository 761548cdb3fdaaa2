"""BDDC: subdomains, constraints, dense decomposers, and the spectrum that theory predicts."""
import numpy as np

import swell
from swell.pde.poisson_cube import PoissonCube

# 1. The thesis' cube: 4³ subdomains, H/h = 4. A random right-hand side shows all of the spectrum.
system = PoissonCube(elements=4, subdomains=4).assemble()
b = np.random.default_rng(0).standard_normal(system.cube.n)
r = system.solve(b=b)
print(r)
assert r.result.converged and abs(r.extremes[0] - 1) < 1e-3        # the smallest eigenvalue is 1

# 2. The number of iterations depends little on the subdomains' size, and not on their number or on the decomposer.
for elements, subdomains, decomposer in ((4, 2, "getrf"), (4, 6, "getrf"), (6, 3, "getrf"), (6, 3, "gem")):
    one = PoissonCube(elements, subdomains).assemble()
    s = one.solve(dense_lu=decomposer, b=np.random.default_rng(0).standard_normal(one.cube.n))
    print(f"{subdomains}³ subdomains of {elements}³ elements, {decomposer}: {s.result.iterations} iterations, "
          f"eigenvalues to {s.extremes[1]:.3f}")
    assert s.result.iterations <= 8

# 3. Coefficients that jump between subdomains: weights by stiffness follow the jumps, equal weights do not.
jumps = PoissonCube(4, 3, coefficient="checkerboard", jump=1e6)
for weights in ("stiffness", "cardinality"):
    s = jumps.solve(weights=weights, maxiter=100)
    print(f"jumps of 1e6, weights by {weights}: {s.result.iterations} iterations, eigenvalues to {s.extremes[1]:.2g}")

# 4. Your own subdomain matrices: here a bar of three floating pieces, held at its left end.
pieces = []
for k in range(3):
    K = 2 * np.eye(5) - np.eye(5, k=1) - np.eye(5, k=-1)
    K[0, 0], K[-1, -1] = (2 if k == 0 else 1), 1
    pieces.append((K, np.arange(4 * k, 4 * k + 5)))
bar = swell.Subdomains(pieces)
result = swell.solve(bar.assemble(), np.ones(13), method="cg", precond=swell.BDDC(subdomains=bar))
print(f"a bar: {result.iterations} iterations")
assert result.converged

# 5. An error explains why a setting cannot work: a bar has no faces to average over, so that its middle piece floats.
try:
    swell.solve(bar.assemble(), np.ones(13), method="cg", precond=swell.BDDC(subdomains=bar, constraints="f"))
except swell.InputError as error:
    print(error)
