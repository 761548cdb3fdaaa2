"""A penalty, a singular matrix, an x exact to rounding: what "converged" says, and what it does not say."""
import numpy as np
import scipy.sparse as sp

import swell

# u = 1 at the first point, by a penalty of 1e30: the tolerance is met by this row alone.
A, b = swell.gallery.poisson2d(10).tolil(), np.zeros(100)
A[0, 0], b[0] = 1e30, 1e30
named = swell.solve(A.tocsr(), b, method="cg", precond="jacobi")
print(named)
assert named.reason is swell.Reason.UNSOLVED_ROWS

chosen = swell.solve(A.tocsr(), b)
print(chosen)
assert chosen.converged and chosen.componentwise_error < 1e-8

# A singular matrix with a right-hand side that has no solution. A computed residual may be 0 by chance; it does not count.
neumann = np.array([[0.3, -0.3], [-0.3, 0.3]])
failed = swell.solve(neumann, np.array([1.0, 0.0]))
print(failed)
assert not failed.converged

# Condition 1e12, and a tolerance that double precision cannot hold: no x is better than this one.
biharmonic = sp.csr_array(swell.gallery.poisson1d(2000) @ swell.gallery.poisson1d(2000))
exact = swell.solve(biharmonic, np.ones(2000), rtol=1e-12)
print(exact)
assert not exact.converged and exact.exact_to_rounding and exact.backward_error < 1e-15
