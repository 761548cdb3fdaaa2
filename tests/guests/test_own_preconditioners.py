"""M of other libraries, without wrapping: SuperLU's factors, PyAMG's hierarchies, a prepared Solver."""
import numpy as np
import pytest
import scipy.sparse.linalg as spla

import swell
from swell.core.errors import InputError

A, S = swell.gallery.convection_diffusion((20, 20)), swell.gallery.poisson2d(20)
B = np.random.default_rng(3).random(400)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("method", ["gmres", "qmr"])        # qmr applies the adjoint, too
def test_factors_of_spilu(method, dtype):
    factors = spla.spilu(A.tocsc(), drop_tol=1e-3)
    b = B if dtype != "complex128" else B + 1j * B[::-1]
    plain = swell.solve(A, b, method=method, dtype=dtype, rtol=1e-5)
    r = swell.solve(A, b, method=method, M=factors, dtype=dtype, rtol=1e-5)
    assert r.converged and r.iterations < plain.iterations / 3


def test_complex_factors_are_conjugated_in_the_adjoint():
    H = (A + 1j * swell.gallery.poisson2d(20)).tocsc()
    assert swell.solve(H, B.astype(complex), method="qmr", M=spla.splu(H)).iterations <= 2


def test_a_dense_matrix_has_an_adjoint():
    M = np.linalg.inv(A.toarray())
    assert swell.solve(A, B, method="qmr", M=M).iterations <= 2


def test_hierarchies_of_pyamg():
    pyamg = pytest.importorskip("pyamg", reason="needs PyAMG: pip install 'swell[guests]'")
    np.random.seed(0)
    ml = pyamg.smoothed_aggregation_solver(S, max_coarse=20)
    iterations = [swell.solve(S, B, method="cg", M=M).iterations for M in (ml, ml.aspreconditioner())]
    assert iterations[0] == iterations[1] < swell.solve(S, B, method="cg").iterations / 3
    with pytest.raises(InputError, match="b is a MultilevelSolver"):
        swell.solve(S, ml)
    with pytest.raises(InputError, match="A is MultilevelSolver"):
        swell.solve(ml, B)


def test_swell_inside_pyamg():
    pyamg = pytest.importorskip("pyamg", reason="needs PyAMG: pip install 'swell[guests]'")
    from swell import scipy_like
    from swell.guests import pyamg as calls
    np.random.seed(0)
    ml = pyamg.smoothed_aggregation_solver(S, max_coarse=20)
    theirs, scipys, ours = [], [], []
    x = ml.solve(B, tol=1e-8, accel="cg", residuals=theirs)
    y = ml.solve(B, tol=1e-8, accel=scipy_like.cg, residuals=scipys)
    z = ml.solve(B, tol=1e-8, accel=calls.cg, residuals=ours)
    assert np.allclose(x, y, rtol=1e-7) and np.allclose(x, z, rtol=1e-7)
    assert len(theirs) == len(scipys) == len(ours)
    assert np.allclose(scipys, ours, rtol=1e-6) and np.allclose(theirs, ours, rtol=1e-3)
    with pytest.raises(InputError, match="criteria='MrMr'"):
        calls.cg(S, B, criteria="MrMr")


def test_a_direct_solver_is_a_fixed_preconditioner():
    near = swell.prepare(S + 0.1 * swell.gallery.poisson2d(20).multiply(S.diagonal()[:, None] > 0), method="direct")
    r = swell.solve(S, B, method="cg", M=near)
    assert r.converged and r.iterations <= 3 and "PreparedSolver" in str(r)


def test_a_solver_has_an_adjoint():
    H = (A + 1j * swell.gallery.poisson2d(20)).tocsr()
    for matrix, b in ((A, B), (H, B + 1j * B[::-1])):
        assert swell.solve(matrix, b, method="qmr", M=swell.prepare(matrix, method="direct")).iterations <= 2


def test_an_iterating_solver_needs_a_flexible_method():
    inner = swell.prepare(S, method="cg", rtol=1e-2, dtype="float32")
    r = swell.solve(S, B, method="fgmres", M=inner)
    assert r.converged and r.iterations < 10
    r = swell.solve(S, B, method="gmres", M=inner)
    assert r.converged and any("gmres became fgmres" in note for note in r.notes)
    with pytest.raises(InputError, match="cg does not allow: use method='fgmres'"):
        swell.solve(S, B, method="cg", M=inner)
    r = swell.solve(S.astype(complex), B * (1 + 1j), method="fgmres", M=inner)          # real factors, complex vectors
    assert r.converged and r.iterations < 10
    with pytest.raises(InputError, match="M has shape"):
        swell.solve(swell.gallery.poisson2d(5), np.ones(25), method="fgmres", M=inner)


def test_no_preconditioner_at_all():
    with pytest.raises(InputError, match="expected a function.*hierarchy, or a prepared Solver"):
        swell.solve(S, B, method="cg", M=object())
