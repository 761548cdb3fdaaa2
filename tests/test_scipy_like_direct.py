"""SciPy's calls by factors: spsolve, splu, factorized."""
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.integrate import solve_ivp
from scipy.sparse import linalg as theirs

import swell
from swell import scipy_like
from swell.core.errors import InputError, NotConverged

A = swell.gallery.convection_diffusion((20, 20))
N = A.shape[0]
B = np.random.default_rng(3).random((N, 3))


@pytest.mark.parametrize("a, b", [("f4", "f4"), ("f4", "f8"), ("f8", "c16"), ("c8", "f8"), ("i8", "i8")])
def test_values_shapes_and_types_are_scipys(a, b):
    matrix = (4 * A if a == "i8" else A).astype(a).tocsc()
    for rhs in ((10 * B[:, 0]).astype(b), (10 * B[:, :1]).astype(b), (10 * B).astype(b)):
        x, y = scipy_like.spsolve(matrix, rhs), theirs.spsolve(matrix, rhs)
        assert x.shape == y.shape and x.dtype == y.dtype
        assert np.allclose(x, y, rtol=1e-4 if y.dtype == np.float32 else 1e-12)


def test_a_sparse_right_hand_side():
    sparse = sp.random(N, 4, density=0.1, format="csc", random_state=1)
    x = scipy_like.spsolve(A, sparse)
    assert type(x) is type(sparse) and abs(x - theirs.spsolve(A.tocsc(), sparse)).max() < 1e-12
    assert scipy_like.spsolve(A, sparse[:, :1]).shape == (N,)
    assert np.allclose(scipy_like.spsolve(A, list(B[:, 0])), theirs.spsolve(A, B[:, 0]))


@pytest.mark.parametrize("matrix", [A, (A + 1j * swell.gallery.poisson2d(20)).tocsc()])
@pytest.mark.parametrize("order", [None, "COLAMD", "MMD_AT_PLUS_A"])
def test_factors_are_scipys(matrix, order):
    ours, scipys = scipy_like.splu(matrix, permc_spec=order), theirs.splu(matrix.tocsc())
    assert ours.shape == matrix.shape
    for trans in "NTH":
        for b in (B, B[:, 0], B[:, :1]):
            x, y = ours.solve(b.astype(matrix.dtype), trans), scipys.solve(b.astype(matrix.dtype), trans)
            assert x.shape == y.shape and np.allclose(x, y, rtol=1e-10)
    assert np.allclose(scipy_like.factorized(matrix)(B[:, 0].astype(matrix.dtype)), ours.solve(B[:, 0]))
    if order:
        assert ours.solver.choices[0].method.ordering == {"COLAMD": None}.get(order, "minimum_degree")


@pytest.mark.parametrize("singular", [np.ones((3, 3)), np.diag([1.0, 0, 2])])
def test_a_singular_matrix_is_told_as_by_scipy(singular):
    with pytest.warns(theirs.MatrixRankWarning, match="no factors, and x is NaN"):
        assert np.isnan(scipy_like.spsolve(sp.csr_array(singular), np.arange(1.0, 4))).all()
    with pytest.raises(RuntimeError, match="singular"):
        scipy_like.splu(sp.csr_array(singular))


def test_where_scipy_is_silent():
    """A system that the factors solve to no digit of b."""
    h = np.sin(np.outer(np.arange(1, 41), np.arange(1, 41)) ** 0.5) @ np.diag(10.0 ** -np.arange(40))
    H, b = sp.csr_array(h @ h.T), np.arange(40.0)
    assert np.linalg.norm(H @ theirs.spsolve(H.tocsc(), b) - b) > 1e-3 * np.linalg.norm(b)         # without a word
    with pytest.warns(UserWarning, match="swell did not converge"):
        scipy_like.spsolve(H, b)
    with pytest.raises(NotConverged):
        scipy_like.splu(H).solve(b)


def test_any_option_of_swell():
    x = scipy_like.spsolve(A, B[:, 0], method="gmres", precond="ilu0", rtol=1e-10)
    assert np.linalg.norm(A @ x - B[:, 0]) <= 1e-10 * np.linalg.norm(B[:, 0])
    assert len(scipy_like.splu(A, method=None).solver.choices) >= 1            # the advisor's
    with pytest.raises(InputError, match="diag_pivot_thresh=0: no such option"):
        scipy_like.splu(A, diag_pivot_thresh=0)
    with pytest.raises(InputError, match="permc_spec='NATURAL': expected one of COLAMD"):
        scipy_like.spsolve(A, B[:, 0], permc_spec="NATURAL")
    with pytest.raises(InputError, match="trans='C': expected one of N, T, H"):
        scipy_like.splu(A).solve(B[:, 0], "C")


def test_inside_scipys_time_integration(monkeypatch):
    """Radau factors a real and a complex matrix, BDF a real one."""
    laplacian = -swell.gallery.poisson2d(8).tocsc()
    expected = {}
    for method in ("BDF", "Radau"):
        named = {"method": method, "jac": laplacian, "rtol": 1e-8, "atol": 1e-10}
        run = lambda: solve_ivp(lambda t, y: laplacian @ y + 1, (0, 1), np.zeros(64), **named)  # noqa: E731
        expected[method] = run()
        module = f"scipy.integrate._ivp.{method.lower()}"
        monkeypatch.setattr(f"{module}.splu", scipy_like.splu)
        found = run()
        assert found.nlu == expected[method].nlu and np.allclose(found.y[:, -1], expected[method].y[:, -1], rtol=1e-9)
