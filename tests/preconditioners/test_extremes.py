"""Values near the ends of the range of numbers, and no rows at all: an outcome or swell's own error, nothing raw."""
from __future__ import annotations

import numpy as np
import pytest

import swell

INCOMPLETE = ["ilu", "ilu(level=1)", "ilu(drop=0.001)", "ilu(block=None)", "ilu(level=1, block=None)",
              "ilu(drop=0.001, block=None)", "schwarz", "deflation"]


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("precond", INCOMPLETE)
def test_denormal_matrices_are_not_factored(precond, dtype):
    """A pivot of 10⁻³²⁰ is as large as its row; its replacement underflows to zero, and nothing is divided by that."""
    A = (np.array([[2.0, 1.0], [1.0, 2.0]]) * 1e-320).astype(dtype)
    r = swell.solve(A, np.array([1.0, 2.0]), method="gmres", precond=precond)
    assert r.reason is swell.Reason.NOT_FACTORED and not r.converged


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("precond", ["jacobi", "gauss_seidel", "ic0", "amg"])
def test_denormal_matrices_do_not_converge(precond, dtype):
    A = (np.array([[2.0, 1.0], [1.0, 2.0]]) * 1e-320).astype(dtype)
    assert not swell.solve(A, np.array([1.0, 2.0]), method="gmres", precond=precond).converged


@pytest.mark.parametrize("precond", INCOMPLETE[:6])
def test_no_rows(precond):
    assert swell.solve(np.zeros((0, 0)), np.zeros(0), method="gmres", precond=precond).converged


def test_chebyshev_names_an_overflow():
    rng, J = np.random.default_rng(3), np.eye(94) * 1e-8 + np.eye(94, k=1)
    refused = 0
    for _ in range(10):
        left, right = (10.0 ** rng.integers(-150, 150, 94) for _ in range(2))
        with np.errstate(all="ignore"):
            try:
                swell.solve(J * left[:, None] * right, np.ones(94), precond="chebyshev", maxiter=5)
            except swell.InputError as error:
                refused += "its estimate overflows: the rows of A differ too much in size" in str(error)
    assert refused
