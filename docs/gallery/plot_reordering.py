"""
Orderings
=========

One mesh in four orders, and what each is for: a small bandwidth keeps vectors in the cache; rows of one colour can be
updated in parallel; minimum degree keeps the factors of a direct solver sparse. The second row shows the pattern of
the Cholesky factor.
"""
import matplotlib.pyplot as plt
import numpy as np

import swell
from swell.core.devices import make_space

A = swell.gallery.p1_laplacian(500, mass=1.0)
shuffled = np.random.default_rng(0).permutation(A.shape[0])
A = A[shuffled][:, shuffled].sorted_indices()
matrix = swell.CSRMatrix.from_scipy(A, make_space("cpu"))

figure, axes = plt.subplots(2, 4, figsize=(12, 6.4), layout="constrained")
orders = {"as it came": None, "reverse Cuthill–McKee": swell.ReverseCuthillMcKee(),
          "greedy colouring": swell.GreedyColoring(), "minimum degree": swell.MinimumDegree()}
for (title, ordering), (above, below) in zip(orders.items(), axes.T):
    order = np.arange(A.shape[0]) if ordering is None else ordering.order(matrix)
    ordered = A[order][:, order]
    L = np.linalg.cholesky(ordered.toarray())
    above.spy(ordered, markersize=0.8, color="#0b6fa4")
    above.set_title(title)
    below.spy(abs(L) > 1e-14, markersize=0.4, color="#d1495b")
    below.set_xlabel(f"{(abs(L) > 1e-14).sum()} entries in L")
for axis in axes.flat:
    axis.set(xticks=[], yticks=[])
