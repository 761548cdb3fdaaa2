"""Several right-hand sides that share one Krylov space: block_cg and block_gmres beside independent columns."""
import numpy as np

import swell

# A hard symmetric system, by Jacobi: block_cg needs far fewer iterations than eight independent columns.
A = swell.gallery.poisson2d(60)
B = np.random.default_rng(0).standard_normal((A.shape[0], 8))
for method in ("cg", "block_cg"):
    found = swell.solve(A, B, method=method, precond="jacobi")
    assert isinstance(found, swell.Results) and found.converged
    print(f"{method}: {max(r.iterations for r in found)} iterations, {sum(r.products for r in found)} products with A")

# Dependent columns cost nothing further: two copies and a sum leave a space of five directions.
B[:, 5], B[:, 6], B[:, 7] = B[:, 0], B[:, 1], B[:, 0] + B[:, 1]
found = swell.solve(A, B, method="block_cg", precond="jacobi")
assert found.converged
print(found)

# Any square matrix: block GMRES keeps the same number of vectors as independent cycles, and searches in all of them.
A = swell.gallery.get("convection_diffusion2d", 3600)
for method in ("gmres(lengthen=False)", "block_gmres"):
    found = swell.solve(A, B[:A.shape[0], :5], method=method, precond="ilu0")
    assert isinstance(found, swell.Results) and found.converged
    print(f"{method}: {max(r.iterations for r in found)} iterations")
