"""A failed solve reports the reason and gives advice; an automatic choice tries another method and reports both."""
import numpy as np

import swell

indefinite = swell.gallery.shifted_laplacian((30, 30))
b = np.ones(indefinite.shape[0])

named = swell.solve(indefinite, b, method="cg")
print(named)
assert named.reason is swell.Reason.INDEFINITE and not named.converged

chosen = swell.solve(indefinite, b)
print(chosen)
assert chosen.converged
