"""SciPy's names: what runs with SciPy runs with swell, with the same meaning."""
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import linalg as theirs

from swell import gallery, scipy_like
from swell.core.errors import InputError

SPD = gallery.poisson2d(12)
UNSYMMETRIC = gallery.convection_diffusion((12, 12))
CASES = [("cg", SPD), ("gmres", UNSYMMETRIC), ("bicgstab", UNSYMMETRIC)]
B = np.random.default_rng(3).random(144)


def both(name):
    return getattr(scipy_like, name), getattr(theirs, name)


@pytest.mark.parametrize("name, A", CASES)
def test_same_answer(name, A):
    mine, scipys = both(name)
    (x, info), (y, _) = mine(A, B, rtol=1e-10), scipys(A, B, rtol=1e-10)
    assert info == 0 and x.shape == y.shape and x.dtype == y.dtype
    assert np.linalg.norm(B - A @ x) <= 1e-10 * np.linalg.norm(B)
    assert np.allclose(x, y, rtol=1e-7)


@pytest.mark.parametrize("name, A", CASES)
def test_every_kind_of_input(name, A):
    mine, scipys = both(name)
    M = sp.diags(1 / A.diagonal())
    for matrix in (A, A.toarray(), A.tocoo(), sp.csr_array(A), theirs.aslinearoperator(A)):
        for preconditioner in (None, M, theirs.aslinearoperator(M)):
            x, info = mine(matrix, B[:, None], x0=np.ones((144, 1)), rtol=1e-8, M=preconditioner)
            assert info == 0 and x.shape == (144,)
            assert np.linalg.norm(B - A @ x) <= 1e-8 * np.linalg.norm(B)
    small = np.array([[2, 0], [0, 4]])
    assert np.allclose(mine(small, [2, 4])[0], [1, 1]) and np.allclose(scipys(small, [2, 4])[0], [1, 1])


@pytest.mark.parametrize("name, A", CASES)
@pytest.mark.parametrize("a, b", [("f4", "f4"), ("f4", "f8"), ("f8", "f4"), ("f8", "c16"), ("c8", "f8"), ("i8", "i8")])
def test_types_are_scipys(name, A, a, b):
    mine, scipys = both(name)
    A = A.astype(a) if a != "i8" else (4 * A).astype(a)
    rhs = (100 * B).astype(b)
    x, info = mine(A, rhs, rtol=1e-4)
    assert info == 0 and x.dtype == scipys(A, rhs, rtol=1e-4)[0].dtype


@pytest.mark.parametrize("name, A", CASES)
def test_info_tells_when_the_limit_was_reached(name, A):
    mine, _ = both(name)
    options = {"restart": 2} if name == "gmres" else {}
    x, info = mine(A, B, rtol=1e-12, maxiter=2, **options)
    assert info == (4 if name == "gmres" else 2)             # SciPy's gmres counts cycles in maxiter
    assert np.linalg.norm(B - A @ x) > 1e-12 * np.linalg.norm(B)


def test_maxiter_equal_to_the_exact_count_converges():
    info = scipy_like.cg(sp.diags([1.0, 2.0, 3.0]), np.ones(3), maxiter=3)[1]    # SciPy says 3 here
    assert info == 0


def test_breakdown_is_negative():
    assert scipy_like.cg(-SPD, B)[1] < 0


@pytest.mark.parametrize("name, A", CASES)
def test_zero_right_hand_side_and_absolute_tolerance(name, A):
    mine, _ = both(name)
    x, info = mine(A, np.zeros(144))
    assert info == 0 and not x.any()
    x, info = mine(A, B, rtol=1e-14, atol=0.5 * np.linalg.norm(B))
    assert info == 0 and 1e-6 < np.linalg.norm(B - A @ x) <= 0.5 * np.linalg.norm(B)


@pytest.mark.parametrize("name, A", CASES)
def test_inputs_are_not_modified(name, A):
    mine, _ = both(name)
    b, x0 = B.copy(), np.ones(144)
    mine(A, b, x0=x0)
    assert (b == B).all() and (x0 == 1).all()


def test_callback_of_gmres():
    for kind, limit in (("pr_norm", 2), ("legacy", 6), (None, 6)):
        mine, scipys = [], []
        scipy_like.gmres(UNSYMMETRIC, B, rtol=1e-12, restart=3, maxiter=limit, callback=mine.append, callback_type=kind)
        theirs.gmres(UNSYMMETRIC, B, rtol=1e-12, restart=3, maxiter=limit, callback=scipys.append,
                     callback_type=kind or "legacy")
        assert len(mine) == len(scipys) == 6
        assert np.allclose(mine, scipys, rtol=1e-8)


def test_a_callback_cannot_stop_the_solve():
    assert scipy_like.gmres(UNSYMMETRIC, B, callback=lambda residual: True, callback_type="pr_norm")[1] == 0


def test_what_swell_cannot_do_is_said():
    for function in (scipy_like.cg, scipy_like.bicgstab):
        with pytest.raises(InputError, match="monitor"):
            function(SPD, B, callback=print)
    with pytest.raises(InputError, match="callback_type='x'"):
        scipy_like.gmres(SPD, B, callback=print, callback_type="x")
    with pytest.raises(InputError, match="b has shape"):
        scipy_like.cg(SPD, np.ones((144, 2)))


def test_ctrl_c_reaches_the_caller():
    import signal
    with pytest.raises(KeyboardInterrupt):
        scipy_like.gmres(UNSYMMETRIC, B, rtol=1e-12, callback=lambda r: signal.raise_signal(signal.SIGINT),
                         callback_type="pr_norm")
