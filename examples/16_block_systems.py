"""Systems of PDEs, whose matrices have dense blocks: BSR, block ILU(0), inexact triangular solves, GMRES."""
import numpy as np

import swell

A = swell.gallery.coupled_transport((12, 12, 12), 3)                # three unknowns a cell: blocks of 3
b = A @ np.random.default_rng(1).standard_normal(A.shape[0])


def solve(precond, method="gmres(restart=30)", **settings):
    result = swell.solve(A, b, method=method, precond=precond, rtol=1e-8, **settings)
    assert result.converged and np.linalg.norm(b - A @ result.x) <= 1e-8 * np.linalg.norm(b)
    print(f"{precond!s:54s} {method!s:30s} {result.iterations:3d} iterations")
    return result


# Matrix and factors in blocks of 3; swell detects the block size.
plain, exact = solve(None), solve("ilu(block=None)", format="bsr")
print(exact)
assert "block 3" in str(exact) and exact.iterations < plain.iterations / 2

# The block size belongs to the matrix: SciPy's BSR has it, or block= gives it. Every part of the solver uses it.
for known in ({"A": A.tobsr((3, 3))}, {"A": A, "block": 3}):
    result = swell.solve(**known, b=b, method="gmres(restart=30)", precond="ilu(block=None)")
    assert result.converged and "block 3" in str(result)

# Replacements of exact triangular solves: sweeps, with separate numbers for L and U, or sparse approximate inverses.
counts = [solve(f"ilu(block=3, solve='sweeps(count={k})')").iterations for k in (1, 2, 4, 8)]
assert counts == sorted(counts, reverse=True) and counts[-1] <= exact.iterations + 2
solve("ilu(block=3, solve='sweeps(count=2, upper=4)')")
solve("ilu(block=3, solve=isai)")

# Fill by level, or by the size of blocks, takes fewer iterations for more memory.
for precond in ("ilu(block=None, level=1)", "ilu(block=None, level=2)", "ilu(block=None, drop=1e-3)"):
    assert solve(precond).iterations < exact.iterations

# Sweeps in place, in no fixed order, vary from step to step: swell replaces GMRES by FGMRES, and a note says so.
print(solve("ilu(block=3, solve='sweeps(in_place=True)')").notes)

# The setup detects sweeps that would grow; an exact solve replaces them, and a note says so.
steep = np.eye(12) - np.diag(np.full(11, 2.0), -1) + np.diag(np.full(11, 0.1), 1)
guarded = swell.solve(steep, np.ones(12), method="gmres", precond="ilu0(solve='sweeps(count=3)')")
print(guarded.notes)
assert guarded.converged and "solved with exactly instead" in guarded.notes[0]

# Block Jacobi, and Schwarz: overlapping subdomains with an incomplete factorisation.
assert solve("block_jacobi(block=3)").iterations > solve("schwarz(domains=4, overlap=1, inner=ilu0)").iterations

# GMRES with a basis in single precision, in batches of eight vectors: the true residual still meets the tolerance.
solve("ilu(block=3)", "gmres(basis=single, batch=8)")

# A block size that does not divide n is refused; the message lists valid ones. A transversal gives a matrix with zeros
# on its diagonal a full diagonal.
try:
    swell.solve(A, b, method="gmres", precond="ilu(block=5)")
except swell.InputError as error:
    print(error)
mixed = A[np.random.default_rng(2).permutation(A.shape[0])]
try:
    swell.solve(mixed, b, method="gmres", precond="ilu0")
except swell.InputError as error:
    print(error)
order = swell.transversal(mixed)
found = swell.solve(mixed[order], b[order], method="gmres", precond="ilu0")
print(f"with rows permuted by a transversal: {found.iterations} iterations")
assert found.converged
