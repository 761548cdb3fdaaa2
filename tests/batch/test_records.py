"""A record for each system: a bad system is one record and has no effect on the others; what the results print."""
from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from tests.batch.test_solve_batch import dense, solution, systems
from tests.support.during import during

import swell
from swell.core.stopping import Reason

CHOICES = [("lu", None), ("cg", "jacobi"), ("cg", "ilu0"), ("bicgstab", None), ("bicgstab", "block_jacobi"),
           ("gmres", "ilu0"), ("gmres", None), (None, None)]


@pytest.mark.parametrize("method, precond", CHOICES)
def test_bad_systems_harm_no_others(method, precond, device):
    A, values, B = systems(True, "float64", batch=9)
    if method is None:
        A, values, B = systems(False, "float64", batch=9)
    alone = swell.solve_batch(A, values, B, method=method, precond=precond, device=device)
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    bad = values.copy(), B.copy()
    bad[0][1, 3] = np.nan
    bad[0][2, 5] = np.inf
    bad[0][3] = 0                                                # singular
    bad[0][4, rows == 2] = 0                                     # singular
    bad[1][5, 0] = np.nan
    bad[1][6] = 0                                                # x = 0
    bad[0][7] *= 1e150                                           # only scaled
    r = swell.solve_batch(A, *bad, method=method, precond=precond, device=device)
    for k in (0, 8):
        assert r.converged[k] and (r.x[k] == alone.x[k]).all()   # to the last bit
    for k in (1, 2, 5):
        assert r.reason(k) is Reason.NONFINITE and not r.converged[k]
    for k in (3, 4):
        assert not r.converged[k] and r.reason(k) not in (Reason.NONFINITE, Reason.CONVERGED, Reason.RUNNING)
    assert r.converged[6] and not r.x[6].any() and r.residual[6] == 0
    left = np.linalg.norm(bad[1][7] - dense(A, bad[0][7:8])[0] @ r.x[7])
    assert r.converged[7] == (left <= 1e-8 * np.linalg.norm(bad[1][7]))


def test_zero_right_hand_sides_confirm_nothing_about_nan(device):
    A, values, B = systems(False, "float64", batch=2)
    values[0, 0] = np.nan
    for method in ("lu", "cg", "bicgstab", "gmres"):
        with during(method=method):
            r = swell.solve_batch(A, values, 0 * B, method=method, device=device)
            assert r.converged.tolist() == [False, True] and r.reason(0) is Reason.NONFINITE


def test_small_right_hand_sides_are_not_zero(device):
    """All squares of b underflow: x = 0 is no solution. Only LU needs no squares."""
    A, values, B = systems(True, "float64", batch=2)
    B[1] *= 1e-300
    for method in ("lu", "cg", "bicgstab", "gmres", None):
        with during(method=method):
            r = swell.solve_batch(A, values, B, method=method, device=device)
            left = np.abs(B[1] - dense(A, values[1:])[0] @ r.x[1]).max()
            assert r.converged[0] and r.converged[1] == (left <= 1e-8 * np.abs(B[1]).max())
            assert r.converged[1] or method in ("cg", "bicgstab", "gmres")


def test_reasons(device):
    A, values, B = systems(True, "float64", batch=2)
    r = swell.solve_batch(A, -values, B, method="cg", device=device)
    assert {r.reason(k) for k in range(2)} == {Reason.INDEFINITE}
    r = swell.solve_batch(A, values, B, method="bicgstab", maxiter=2, device=device)
    assert {r.reason(k) for k in range(2)} == {Reason.MAXITER} and (r.iterations == 2).all()
    r = swell.solve_batch(A, values, B, method="cg", rtol=1e-30, device=device)
    assert {r.reason(k) for k in range(2)} <= {Reason.ATTAINABLE_ACCURACY, Reason.FALSE_CONVERGENCE, Reason.MAXITER}
    assert (r.residual < 1e-14).all()
    r = swell.solve_batch(A, values, B, method="lu", rtol=1e-30, device=device)
    assert {r.reason(k) for k in range(2)} == {Reason.ATTAINABLE_ACCURACY}
    values[1, A.indptr[:-1][0]:A.indptr[1]] = 0
    for precond in ("jacobi", "ilu0", "block_jacobi"):
        r = swell.solve_batch(A, values, B, method="gmres", precond=precond, device=device)
        assert r.reason(1) is Reason.NOT_FACTORED and r.converged[0]


def test_tolerances_are_each_systems_own(device):
    A, values, B = systems(True, "float64", batch=4)
    B *= np.array([1, 1e-6, 1e6, 1e-12])[:, None]
    for method in ("cg", "bicgstab", "gmres", "lu"):
        with during(method=method):
            r = swell.solve_batch(A, values, B, method=method, device=device)
            assert r.all_converged and (r.residual <= 1e-8).all()
            r = swell.solve_batch(A, values, B, method=method, rtol=0, atol=1e-7, device=device)
            assert r.all_converged and (r.residual * np.linalg.norm(B, axis=1) <= 1e-7).all()
    r = swell.solve_batch(A, values, B, method="cg", rtol=0, atol=1e-3, device=device)
    assert r.iterations[3] == 0 and r.iterations[2] > r.iterations[0]


def test_columns_have_records_of_their_own(device):
    A, values, B = systems(True, "float64", batch=3, columns=3)
    B[1, 0, 2] = np.nan
    r = swell.solve_batch(A, values, B, method="cg", device=device)
    assert r.converged.tolist() == [[True] * 3, [True, True, False], [True] * 3]
    assert r.reason(1) is Reason.NONFINITE and r.reason(0) is Reason.CONVERGED
    one = r[1]
    assert one.x.shape == (A.shape[0], 3) and not one.converged and one.reason is Reason.NONFINITE
    assert np.allclose(r.x[0], solution(A, values[:1], B[:1])[0])


def test_what_is_printed(device):
    A, values, B = systems(True, "float64", batch=30)
    values[3:20] *= -1
    values[7, 0] = np.nan
    r = swell.solve_batch(A, values, B, method="cg", device=device)
    text = str(r).splitlines()
    assert text[0].startswith("13 of 30 systems converged") and "[7] NONFINITE" in text[1] and "and 14 more" in text[1]
    assert len(text) <= 5 and "CG()" in text[2] and r.device in text[2]
    assert "system 4: NOT converged (INDEFINITE" in str(r[4]) and str(r[-1]).startswith("system 29: converged")
    with pytest.raises(IndexError):
        r[30]
    assert len(list(r)) == 30
    json.dumps({k: v for k, v in r.as_dict().items() if k not in ("residual", "backward_error")})
    assert r.memory["matrix"] == values.nbytes and r.timings.keys() >= {"setup", "solve", "compile"}


def test_all_the_same_system(device):
    """Equal systems have equal bits, wherever they stand in the batch."""
    A, values, B = systems(False, "float64", batch=1)
    many = np.repeat(values, 33, axis=0), np.repeat(B, 33, axis=0)
    for method in ("lu", "bicgstab", "gmres"):
        r = swell.solve_batch(sp.csr_array(A), *many, method=method, device=device)
        assert (r.x == r.x[0]).all() and len(set(r.iterations.tolist())) == 1
