"""One prepared solver in several threads: calls queue, copies run in parallel, pickles work in other processes."""
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import swell

A = swell.gallery.convection_diffusion((16, 16, 16))
B = np.random.default_rng(7).standard_normal((8, A.shape[0]))
solver = swell.prepare(A, method="gmres", precond="ilu0")

with ThreadPoolExecutor(4) as pool:                      # safe: each call waits for the one before it
    queued = list(pool.map(solver.solve, B))

copies = [solver.copy() for _ in range(4)]               # copies share A and the factors; each has its own buffers


def work(k):
    return [copies[k].solve(b) for b in B[k::4]]         # four solves at the same time


with ThreadPoolExecutor(4) as pool:
    parallel = list(pool.map(work, range(4)))

for k, b in enumerate(B):
    twin = parallel[k % 4][k // 4]
    assert queued[k].converged and np.linalg.norm(b - A @ queued[k].x) <= 1e-8 * np.linalg.norm(b)
    assert (twin.x == queued[k].x).all()                 # equal to the last bit

solver.update(2 * A)                                     # copies keep the old matrix
assert np.allclose(solver.solve(B[0]).x, copies[0].solve(B[0]).x / 2, rtol=1e-6)

elsewhere = pickle.loads(pickle.dumps(copies[0]))        # loading a pickle repeats the setup
assert (elsewhere.solve(B[0]).x == queued[0].x).all()
print(queued[0])
