"""The automatic choice: predicted times, a watch that changes the method, and a Solver that learns."""
import numpy as np

import swell

rng = np.random.default_rng(1)

# The result lists every considered choice, with predicted and spent seconds.
A = swell.gallery.poisson3d(20)
b = A @ rng.standard_normal(A.shape[0])
result = swell.solve(A, b)
print(result)
assert result.converged and {"direct, none", "cg, ic0"} <= {c.choice for c in result.considered}

# For a matrix with small factors, swell chooses the direct solver at once.
band = swell.gallery.poisson1d(20_000)
result = swell.solve(band, band @ rng.standard_normal(20_000))
print(result.method, "for a band")
assert result.converged

# Biharmonic: cg would need thousands of iterations. The watch notices this, and swell changes to another choice.
plate = swell.gallery.poisson2d(70)
plate = plate @ plate
result = swell.solve(plate, plate @ rng.standard_normal(plate.shape[0]))
for attempt in [*result.attempts, result]:
    print(f"{attempt.method}, {attempt.precond}: {attempt.iterations} iterations, {attempt.reason.name}")
assert result.converged

# A prepared Solver learns from each solve; adapt=False keeps the first choice.
solver, steady = swell.prepare(A), swell.prepare(A, adapt=False)
for k in range(4):
    b = A @ rng.standard_normal(A.shape[0])
    learnt, same = solver.solve(b), steady.solve(b)
    print(f"solve {k + 1}: {learnt.method} with {learnt.precond}, {same.method} with {same.precond}")
    assert learnt.converged and same.converged
