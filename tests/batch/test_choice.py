"""The choice of a method, and bad input: one clear error for each."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.batch.test_solve_batch import solution, systems
from tests.conftest import space_or_skip
from tests.support.during import during

import swell
from swell.batch import placement
from swell.batch.pattern import read_pattern
from swell.batch.settings import named
from swell.core.stopping import Reason


def test_the_rule(device):
    A, values, B = systems(True, "complex128", batch=3)
    r = swell.solve_batch(A, values, B, device=device)
    assert (r.method, r.precond) == ("cg", "jacobi") and "Hermitian" in r.configuration[0] and r.all_converged
    values[1, 0] = np.nan                                        # says nothing about the others
    assert swell.solve_batch(A, values, B, device=device).method == "cg"
    values[1, 1] += 1e-3
    values[1, 0] = 1
    r = swell.solve_batch(A, values, B, device=device)
    assert r.method == "lu" and "n = 20 is at most 64" in r.configuration[0]
    A, values, B = systems(False, "float64", batch=2, cells=(9, 9))
    r = swell.solve_batch(A, values, B, device=device)
    assert (r.method, r.precond) == ("bicgstab", "ilu") and r.all_converged
    indefinite = sp.csr_array(swell.gallery.poisson2d(4))
    r = swell.solve_batch(indefinite, -indefinite.data[None], np.ones((1, 16)), device=device)
    assert r.method == "lu" and r.all_converged                  # no positive diagonal
    r = swell.solve_batch(indefinite, -indefinite.data[None], np.ones((1, 16)), x0=np.ones((1, 16)), device=device)
    assert "x0 has no effect" in r.notes[0]


def test_what_an_iteration_misses_goes_to_lu(device):
    """Indefinite matrices with a positive diagonal: CG fails, and LU solves them in one batch."""
    A, values, B = systems(True, "float64", batch=6)
    A = sp.csr_array(np.ones((4, 4)))
    good, bad = np.eye(4) + 1, 2 * np.ones((4, 4)) - np.eye(4)
    values = np.array([good.ravel(), bad.ravel(), good.ravel(), bad.ravel(), np.ones(16)])
    B = np.random.default_rng(3).standard_normal((5, 4))
    r = swell.solve_batch(A, values, B, device=device)
    assert r.method == "cg" and r.converged.tolist() == [True] * 4 + [False]
    assert "solved again by LU" in r.notes[0] and not r.reason(4) is Reason.CONVERGED
    assert np.allclose(r.x[:4], solution(A, values[:4], B[:4]))
    r = swell.solve_batch(A, values, B, method="cg", device=device)          # a named method has no second
    assert r.converged.sum() < 4 and not r.notes


def test_bad_input(device):
    A, values, B = systems(False, "float64", batch=3)
    n = A.shape[0]
    twice = sp.coo_array((np.ones(3), ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    hollow = sp.csr_array(np.array([[0, 1.0], [1.0, 1.0]]))
    cases = [
        ((A, values[:, 1:], B), {}, rf"values has shape \(3, {A.nnz - 1}\): expected \(batch, {A.nnz}\)"),
        ((A, values[0], B), {}, r"give values\[None\]"),
        ((A, values[:0], B[:0]), {}, "a batch of at least 1"),
        ((A, values, B[:2]), {}, rf"B has shape \(2, {n}\): expected \(3, {n}\)"),
        ((A, values, B[:, :, None][:, :, :0]), {}, "k of at least 1"),
        ((A, values, B[0]), {}, "B has shape"),
        ((A, values, B.astype("U")), {}, "B has dtype"),
        ((A, values.astype(object), B), {}, "values has dtype"),
        ((A, values, B), {"x0": B[:2]}, "x0 has shape"),
        ((A, values, B), {"x0": B[..., None], "method": "cg"}, "the shape of B"),
        ((A, values, B), {"x0": B, "method": "lu"}, "no use for x0"),
        ((A, values, B), {"maxiter": 5, "method": "lu"}, "maxiter=5 has no effect"),
        ((A, values), {}, "B is missing"),
        ((A,), {"B": B}, "values is missing"),
        ((twice, np.ones((1, 3)), np.ones((1, 2))), {}, "stores an entry twice"),
        ((A.todia(), values, B), {}, "format 'dia'.*convert it with A.tocsr"),
        ((sp.csr_array(np.ones((2, 3))), np.ones((1, 6)), np.ones((1, 2))), {}, "expected a square matrix"),
        ((np.ones(3), values, B), {}, "expected a matrix with entries"),
        ((A, values, B), {"method": "minres"}, "'minres' has no form for a batch: expected cg, bicgstab, gmres, lu"),
        ((A, values, B), {"method": "cg", "precond": "amg"}, "'amg' has no form for a batch: expected jacobi"),
        ((A, values, B), {"method": "cgs"}, "unknown method 'cgs'"),
        ((A, values, B), {"precond": "jacobi"}, "without a method"),
        ((A, values, B), {"method": "lu", "precond": "jacobi"}, "takes no preconditioner"),
        ((A, values, B), {"method": swell.GMRES(lengthen=False)}, "lengthen=False. has no effect in a batch"),
        ((A, values, B), {"method": "bicgstab", "precond": "ilu0(solve='isai')"}, "has no effect in a batch"),
        ((hollow, np.ones((1, 3)), np.ones((1, 2))), {"method": "cg", "precond": "jacobi"}, "row 0 of A has none"),
        ((A, values * 1j, B), {"dtype": "float64"}, "drop the imaginary part of a complex values"),
        ((A, values, B), {"rtol": 0.0}, "rtol=0 and atol=0"),
        ((A, values, B), {"dtype": "float16"}, "expected one of float32"),
        (([A, A],), {"B": B}, "B has 3 right-hand sides and A 2 matrices"),
        (([A, A],), {"B": 3}, "B=3: expected a list of 2 arrays"),
        (([A, A],), {"B": B[:2], "x0": 0.0}, "x0=0.0: expected a list of 2 arrays"),
        (([A, A], values), {"B": B}, "give one of them"),
        (([],), {"B": []}, "empty list"),
        (([A, A.todia()],), {"B": B[:2]}, "matrix 1 of the list"),
    ]
    for given, options, message in cases:
        with during(message=message), pytest.raises(swell.InputError, match=message):
            swell.solve_batch(*given, **{"device": device, **options})


def test_patterns_differ_by_their_entries():
    A, B = sp.csr_array(np.eye(3) + np.eye(3, k=1)), sp.csr_array(np.eye(3) + np.eye(3, k=-1))
    assert read_pattern(A).same(read_pattern(2 * A)) and not read_pattern(A).same(read_pattern(B))
    assert not read_pattern(A).symmetric and read_pattern(sp.csr_array(A + B)).symmetric


@pytest.mark.gpu
def test_the_choice_fits_on_the_chip():
    space_or_skip("cuda")
    for cells, precond in (((20, 20), "ilu"), ((50, 50), "jacobi")):
        A = sp.csr_array(swell.gallery.convection_diffusion(cells))
        s = swell.prepare_batch(A, A.data[None], device="cuda")
        assert s._choice.precond_name == precond and ("does not fit" in s._choice.why) == (precond == "jacobi")


@pytest.mark.gpu
def test_too_large_for_the_chip():
    space = space_or_skip("cuda")
    A = sp.csr_array(swell.gallery.poisson2d(100))
    for method in ("cg", "bicgstab", "gmres", "lu"):
        with pytest.raises(swell.InputError, match="at 4.96 entries a row, n = .* fits. .*one by one") as error:
            swell.solve_batch(A, A.data[None], np.ones((1, 10_000)), method=method, device="cuda")
        n = int(str(error.value).partition("n = ")[2].partition("n = ")[2].split()[0])
        choice = named(method, None)
        assert placement.fits(choice, n, round(4.96 * n), 1, "float64", space)
        assert not placement.fits(choice, n + 8, round(4.96 * (n + 8)), 1, "float64", space)
