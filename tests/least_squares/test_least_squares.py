"""``swell.lstsq``: LSQR and LSMR beside SciPy's, dense solutions, and bad input."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from tests.support.cases import rng
from tests.support.during import during

import swell
from swell.core.stopping import Reason

METHODS = ("lsqr", "lsmr")
SHAPES = [(150, 40), (40, 150), (60, 60), (7, 1), (1, 7)]


def problem(shape, dtype="float64", density=0.2, seed=3):
    """A random sparse matrix and a right-hand side that it does not reach, where it is tall."""
    draw = np.random.default_rng(seed)
    A = sp.random_array(shape, density=density, rng=draw) + sp.eye_array(*shape)
    b = draw.standard_normal(shape[0])
    if np.dtype(dtype).kind == "c":
        A, b = A + 1j * sp.random_array(shape, density=density, rng=draw), b + 1j * draw.standard_normal(shape[0])
    return sp.csr_array(A).astype(dtype), b.astype(dtype)


def least(A, b, damp=0.0):
    """The solution of least norm by a dense singular value decomposition."""
    A = A.toarray() if sp.issparse(A) else np.asarray(A)
    n = A.shape[1]
    return np.linalg.lstsq(np.vstack([A, damp * np.eye(n)]), np.concatenate([b, np.zeros(n)]), rcond=1e-12)[0]


def norms(A, b, x, damp=0.0):
    """(‖r̄‖, ‖Āᴴ r̄‖/(‖A‖_F ‖r̄‖)) by SciPy."""
    r = np.concatenate([b - A @ x, -damp * x])
    normal = A.conj().T @ r[:b.size] + damp * r[b.size:]
    size = np.linalg.norm(A.data if sp.issparse(A) else A) * np.linalg.norm(r)
    return np.linalg.norm(r), np.linalg.norm(normal) / size if size else 0.0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("damp", [0.0, 0.3])
def test_the_solution_is_that_of_a_dense_one(method, damp, dtype, device):
    for shape in SHAPES:
        with during(shape=shape):
            A, b = problem(shape, dtype)
            r = swell.lstsq(A, b, method=method, damp=damp, rtol=1e-11, device=device)
            assert r.converged and r.method == method and r.history.size == r.iterations + 1
            assert np.linalg.norm(r.x - least(A, b, damp)) <= 1e-7 * (1 + np.linalg.norm(r.x))
            whole, normal = norms(A, b, r.x, damp)
            assert r.solved == ("equations" if whole <= 1e-11 * np.linalg.norm(b) else "least squares")
            if whole > 1e-14 * np.linalg.norm(b):                # below it NumPy's r is rounding error
                assert r.normal_residual == pytest.approx(normal, rel=1e-2, abs=1e-13)
            assert r.residual == pytest.approx(np.linalg.norm(b - A @ r.x) / np.linalg.norm(b), rel=1e-3, abs=1e-14)
            assert r.norm_x == pytest.approx(np.linalg.norm(r.x))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("damp", [0.0, 0.3])
def test_as_many_iterations_as_scipys(method, damp):
    A, b = problem((150, 40))
    ours = swell.lstsq(A, b, method=method, damp=damp, rtol=1e-10)
    solver, most = (spla.lsqr, "iter_lim") if method == "lsqr" else (spla.lsmr, "maxiter")
    theirs = solver(A, b, damp, atol=1e-10, btol=1e-10, conlim=0 if method == "lsqr" else 1e14, **{most: 5000})[2]
    assert abs(ours.iterations - theirs) <= 3


@pytest.mark.parametrize("method", METHODS)
def test_what_falls_in_every_step(method):
    """‖r‖ of LSQR, ‖Aᴴ r‖ of LSMR; the norms that a method follows are those of its x."""
    A, b = problem((150, 40))
    found = []
    for limit in range(1, 20):
        r = swell.lstsq(A, b, method=method, rtol=1e-12, maxiter=limit)
        assert r.reason is Reason.MAXITER and r.iterations == limit and r.message.startswith("the iteration limit")
        whole, normal = norms(A, b, r.x)
        assert r.history[-1] == pytest.approx(min(whole / np.linalg.norm(b), normal), rel=1e-6)
        found.append(whole if method == "lsqr" else normal * whole)
    assert (np.diff(found) <= 1e-12 * found[0]).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(60, 30), (30, 60)])
def test_the_least_norm_where_the_rank_is_deficient(method, shape, device):
    draw = rng()
    A = draw.standard_normal((shape[0], 9)) @ draw.standard_normal((9, shape[1]))
    b = draw.standard_normal(shape[0])
    r = swell.lstsq(A, b, method=method, rtol=1e-11, device=device)
    assert r.converged and np.linalg.norm(r.x - least(A, b)) <= 1e-8 * np.linalg.norm(r.x)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("damp", [0.0, 0.3])
def test_a_starting_vector_changes_nothing_in_what_is_minimised(method, damp, device):
    A, b = problem((150, 40))
    x0 = 10 * rng().standard_normal(40)
    before = x0.copy()
    plain, guessed = (swell.lstsq(A, b, method=method, damp=damp, x0=x, rtol=1e-11, device=device) for x in (None, x0))
    assert guessed.converged and np.linalg.norm(guessed.x - plain.x) <= 1e-7 * np.linalg.norm(plain.x)
    assert (x0 == before).all()
    again = swell.lstsq(A, b, method=method, damp=damp, x0=plain.x, rtol=1e-10, device=device)
    assert again.converged and again.iterations == 0 and (again.x == plain.x).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("damp", [0.0, 1e-3])
def test_scaled_columns(method, damp, device):
    """Norms from 1e-4 to 1e4 cost hundreds of iterations without it; a column of zeros stays as it is."""
    A, b = problem((150, 40))
    factors = np.logspace(-4, 4, 40)
    factors[7] = 0
    A = sp.csr_array(A @ sp.diags_array(factors))
    plain = swell.lstsq(A, b, method=method, damp=damp, rtol=1e-9, device=device)
    r = swell.lstsq(A, b, method=method, damp=damp, rtol=1e-9, scaling="columns", device=device)
    wanted = least(A, b, damp)
    assert r.converged and r.iterations < 60 and r.x[7] == 0 and "1 columns of A are zero" in str(r)
    error = np.linalg.norm(A @ (r.x - wanted)) / np.linalg.norm(A @ wanted)
    assert error <= 1e-6 and (plain.iterations > 2 * r.iterations or not plain.converged or
                              error <= np.linalg.norm(A @ (plain.x - wanted)) / np.linalg.norm(A @ wanted))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("exponent", [-200, -20, 20, 200])
def test_scaling_a_problem_changes_nothing(method, exponent):
    A, b = problem((150, 40))
    c = 2.0**exponent
    plain, scaled = swell.lstsq(A, b, method=method), swell.lstsq(c * A, c * b, method=method)
    assert (plain.x == scaled.x).all() and plain.iterations == scaled.iterations


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_single_precision(method, dtype, device):
    A, b = problem((150, 40), dtype)
    r = swell.lstsq(A, b, method=method, rtol=1e-5, device=device)
    assert r.converged and r.x.dtype == dtype and norms(A, b, r.x)[1] <= 1.2e-5
    fine = swell.lstsq(A, b, method=method, rtol=1e-12, device=device)
    assert fine.reason is Reason.ATTAINABLE_ACCURACY and "rounding" in fine.message


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_matrix, lambda A: A.toarray(),
                                  lambda A: np.asfortranarray(A.toarray())])
def test_kinds_of_matrices(kind):
    A, b = problem((30, 12))
    given = kind(A)
    for array in (b, A.data):
        array.setflags(write=False)
    assert np.allclose(swell.lstsq(given, b).x, least(A, b), atol=1e-6)


def test_a_matrix_of_our_own():
    from swell.core.devices import make_space
    A, b = problem((30, 12))
    own, wanted = swell.CSRMatrix.from_scipy(A.copy(), make_space("cpu")), least(A, b)
    assert np.allclose(swell.lstsq(own, b).x, wanted, atol=1e-6)
    own.data *= 2                                # its owner may
    assert np.allclose(swell.lstsq(own, b).x, wanted / 2, atol=1e-6)


def test_complex_b_and_real_matrix():
    A, b = problem((30, 12))
    r = swell.lstsq(A, b + 2j * b)
    assert r.converged and np.allclose(r.x, (1 + 2j) * least(A, b), atol=1e-6)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty(shape, device):
    r = swell.lstsq(np.zeros(shape), np.ones(shape[0]), device=device)
    assert r.converged and r.x.shape == (shape[1],) and not r.x.any() and r.iterations == 0
    assert r.solved == ("least squares" if shape[0] else "equations")


@pytest.mark.parametrize("method", METHODS)
def test_zero_matrix_and_zero_b(method, device):
    A, b = problem((30, 12))
    for given, rhs, solved in ((np.zeros((30, 12)), b, "least squares"), (A, 0 * b, "equations")):
        r = swell.lstsq(given, rhs, method=method, device=device)
        assert r.converged and not r.x.any() and r.iterations == 0 and r.solved == solved
    assert not swell.lstsq(A, 0 * b, method=method, x0=np.ones(12), device=device).x.any()


def test_an_atol():
    A, b = problem((40, 150))
    r = swell.lstsq(A, b, rtol=0, atol=1e-3)
    assert r.converged and r.solved == "equations" and np.linalg.norm(b - A @ r.x) <= 1e-3


def test_a_monitor_sees_every_iteration_and_stops():
    A, b = problem((150, 40))
    seen = []
    r = swell.lstsq(A, b, monitor=lambda k, measure: seen.append((k, measure)))
    assert [k for k, _ in seen] == list(range(r.iterations + 1)) and np.allclose([v for _, v in seen], r.history)
    assert swell.lstsq(A, b, monitor=lambda k, measure: k == 3).reason is Reason.STOPPED


def test_the_result_in_plain_types():
    import json
    A, b = problem((30, 12))
    r = swell.lstsq(A, b)
    told = json.loads(json.dumps(r.as_dict()))
    assert told["solved"] == "least squares" and told["rows"] == 30 and told["reason"] == "CONVERGED"
    assert "‖Aᴴr‖" in str(r) and "lsmr on 30 × 12" in str(r)


A34 = np.ones((3, 4))
BAD = [
    ((A34, np.ones(4)), {}, r"b has shape \(4,\): expected \(3,\)"),
    ((A34, np.ones((3, 2))), {}, "one right-hand side after the other"),
    ((A34, np.array([1, np.nan, 0])), {}, "b contains NaN or Inf"),
    ((np.array([[1, np.inf]]), np.ones(1)), {}, "A contains NaN or Inf"),
    ((A34, np.ones(3)), {"x0": np.ones(3)}, r"x0 has shape \(3,\).*for each column of A"),
    ((A34, np.ones(3)), {"method": "lsq"}, "unknown method 'lsq'.*did you mean 'lsqr'"),
    ((A34, np.ones(3)), {"method": None}, "expected 'lsmr' or 'lsqr'"),
    ((A34, np.ones(3)), {"damp": -1}, "damp=-1: expected a number, not negative"),
    ((A34, np.ones(3)), {"damp": np.nan}, "damp=nan: expected"),
    ((A34, np.ones(3)), {"rtol": 0}, "rtol=0 and atol=0"),
    ((A34, np.ones(3)), {"rtol": -1}, "rtol=-1: expected"),
    ((A34, np.ones(3)), {"maxiter": 1.5}, "maxiter=1.5: expected"),
    ((A34, np.ones(3)), {"scaling": "rows"}, "scaling='rows': expected 'columns'"),
    ((A34, np.ones(3)), {"monitor": 3}, "monitor=3: expected a function"),
    ((A34, np.ones(3)), {"device": "cuda:all"}, "lstsq runs on one device"),
    ((A34, 1e200 * np.ones(3)), {}, "leave the range of double precision"),
    ((spla.aslinearoperator(A34), np.ones(3)), {}, "expected a matrix with entries"),
    ((np.ones(3), np.ones(3)), {}, "two dimensions"),
]


@pytest.mark.parametrize("given, named, message", BAD, ids=[m[:30] for _, _, m in BAD])
def test_bad_input(given, named, message):
    with pytest.raises(swell.InputError, match=message):
        swell.lstsq(*given, **named)


def test_a_matrix_in_parts_is_refused():
    from swell import distributed

    def refused(communicator):
        M = distributed.scatter(communicator, sp.csr_array(sp.eye_array(20)) if communicator.rank == 0 else None)
        with pytest.raises(swell.InputError, match="lstsq runs on one device, and A is in parts"):
            swell.lstsq(M, np.ones(10))
        return True
    assert all(distributed.run(2, refused))


def test_a_square_solver_says_what_is_for_rectangular_matrices(tmp_path, capsys):
    from swell.cli import main
    with pytest.raises(swell.InputError, match=r"expected a square matrix; for least squares use swell.lstsq\(A, b\)"):
        swell.solve(A34, np.ones(3))
    sp.save_npz(tmp_path / "A.npz", sp.csr_array(A34))
    assert main(["solve", str(tmp_path / "A.npz")]) != 0
    assert "swell.lstsq" in capsys.readouterr().err
