"""One prepared system in several threads: calls queue, copies run at the same time, pickles travel to other processes."""
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import swell

A = swell.gallery.convection_diffusion((16, 16, 16))
B = np.random.default_rng(7).standard_normal((8, A.shape[0]))
solver = swell.prepare(A, method="gmres", precond="ilu0")

with ThreadPoolExecutor(4) as pool:                      # safe: each call waits for the one before it
    queued = list(pool.map(solver.solve, B))

copies = [solver.copy() for _ in range(4)]               # they share A and the factors, and own their buffers


def work(k):
    return [copies[k].solve(b) for b in B[k::4]]         # four solves at the same time


with ThreadPoolExecutor(4) as pool:
    parallel = list(pool.map(work, range(4)))

for k, b in enumerate(B):
    twin = parallel[k % 4][k // 4]
    assert queued[k].converged and np.linalg.norm(b - A @ queued[k].x) <= 1e-8 * np.linalg.norm(b)
    assert (twin.x == queued[k].x).all()                 # to the last bit

solver.update(2 * A)                                     # copies keep the matrix that they were made with
assert np.allclose(solver.solve(B[0]).x, copies[0].solve(B[0]).x / 2, rtol=1e-6)

elsewhere = pickle.loads(pickle.dumps(copies[0]))        # sets up again where it is loaded
assert (elsewhere.solve(B[0]).x == queued[0].x).all()
print(queued[0])
