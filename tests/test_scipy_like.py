"""SciPy's names: what runs with SciPy runs with swell, with the same meaning."""
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import linalg as theirs

import swell
from swell import gallery, scipy_like
from swell.core.errors import InputError

SPD = gallery.poisson2d(12)
UNSYMMETRIC = gallery.convection_diffusion((12, 12))
CASES = [("cg", SPD), ("minres", SPD), ("gmres", UNSYMMETRIC), ("bicgstab", UNSYMMETRIC), ("tfqmr", UNSYMMETRIC),
         ("qmr", UNSYMMETRIC)]
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
            named = {"M1" if name == "qmr" else "M": preconditioner}
            x, info = mine(matrix, B[:, None], x0=np.ones((144, 1)), rtol=1e-8, **named)
            assert info == 0 and x.shape == (144,)
            assert np.linalg.norm(B - A @ x) <= 1e-8 * np.linalg.norm(B)
    small = np.array([[2, 0], [0, 4]])
    assert np.allclose(mine(small, [2, 4])[0], [1, 1])
    if name != "tfqmr":                          # SciPy's takes no list
        assert np.allclose(scipys(small, [2, 4])[0], [1, 1])


@pytest.mark.parametrize("name, A", CASES)
def test_np_matrix(name, A):
    """Its reshape keeps two dimensions."""
    mine, column = both(name)[0], np.asmatrix(B).T
    x, info = mine(np.asmatrix(A.toarray()), column, x0=column)
    assert info == 0 and np.array_equal(x, mine(A.toarray(), B, x0=B)[0])


@pytest.mark.parametrize("name, A", CASES)
def test_a_list_is_no_matrix(name, A):
    with pytest.raises(InputError, match="A is list: expected a matrix"):
        both(name)[0](A.toarray().tolist(), B)


@pytest.mark.parametrize("name, A", CASES)
@pytest.mark.parametrize("a, b", [("f4", "f4"), ("f4", "f8"), ("f8", "f4"), ("f8", "c16"), ("c8", "f8"), ("i8", "i8")])
def test_types_are_scipys(name, A, a, b):
    mine, scipys = both(name)
    A = A.astype(a) if a != "i8" else (4 * A).astype(a)
    rhs = (100 * B).astype(b)
    x, info = mine(A, rhs, rtol=1e-4)
    expected = scipys(A, rhs, rtol=1e-4)[0].dtype
    if (name, a, b) == ("minres", "f4", "f4"):
        expected = np.float32                    # SciPy's minres turns it into double
    assert info == 0 and x.dtype == expected


@pytest.mark.parametrize("name, A", CASES)
def test_info_tells_when_the_limit_was_reached(name, A):
    mine, _ = both(name)
    options = {"restart": 2} if name == "gmres" else {}
    x, info = mine(A, B, rtol=1e-12, maxiter=2, **options)
    assert info == 2                             # gmres counts cycles, tfqmr half iterations
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
    if name == "minres":
        return                                   # has no atol
    x, info = mine(A, B, rtol=1e-14, atol=0.5 * np.linalg.norm(B))
    assert info == 0 and 1e-6 < np.linalg.norm(B - A @ x) <= 0.5 * np.linalg.norm(B)


@pytest.mark.parametrize("name, A", CASES)
def test_inputs_are_not_modified(name, A):
    mine, _ = both(name)
    b, x0 = B.copy(), np.ones(144)
    mine(A, b, x0=x0)
    assert (b == B).all() and (x0 == 1).all()


@pytest.mark.filterwarnings("ignore:gmres called without:DeprecationWarning")
def test_callback_of_gmres():
    for kind, limit in (("pr_norm", 2), ("legacy", 6), (None, 6)):
        mine, scipys = [], []
        scipy_like.gmres(UNSYMMETRIC, B, rtol=1e-12, restart=3, maxiter=limit, callback=mine.append, callback_type=kind)
        theirs.gmres(UNSYMMETRIC, B, rtol=1e-12, restart=3, maxiter=limit, callback=scipys.append,
                     callback_type=kind or "legacy")
        assert len(mine) == len(scipys) == 6
        assert np.allclose(mine, scipys, rtol=1e-8)


@pytest.mark.parametrize("name, A", CASES)
def test_a_callback_gets_the_x_of_scipys_callback(name, A):
    M = theirs.spilu(A.tocsc(), drop_tol=0.3) if name in ("gmres", "bicgstab", "tfqmr") else None
    named = {"restart": 5, "callback_type": "x"} if name == "gmres" else {}
    seen = []
    x, info = getattr(scipy_like, name)(A, B, rtol=1e-8, callback=seen.append, **named, **({"M": M} if M else {}))
    norms = [np.linalg.norm(B - A @ y) for y in seen]
    assert info == 0 and (seen[-1] == x).all() and norms[-1] <= 1e-8 * np.linalg.norm(B) < norms[-2]
    if name in ("cg", "minres"):                 # the methods without a random shadow vector
        scipys = []
        getattr(theirs, name)(A, B, rtol=1e-8, callback=lambda y: scipys.append(y.copy()))
        assert all(np.allclose(y, z, atol=1e-9) for y, z in zip(seen, scipys))


def test_a_callback_cannot_stop_the_solve():
    assert scipy_like.gmres(UNSYMMETRIC, B, callback=lambda residual: True, callback_type="pr_norm")[1] == 0
    assert scipy_like.cg(SPD, B, callback=lambda x: True)[1] == 0


@pytest.mark.parametrize("M", [None, sp.diags(1 / SPD.diagonal()), theirs.spilu(SPD.tocsc()), lambda r: r / 4])
def test_start_from_Mb(M):
    first = []
    x, info = scipy_like.cg(SPD, B, x0="Mb", M=M, callback=first.append)
    assert info == 0 and np.linalg.norm(B - SPD @ x) <= 1e-5 * np.linalg.norm(B)
    start = B if M is None else M.solve(B) if hasattr(M, "solve") else M(B) if callable(M) else M @ B
    assert len(first) == swell.solve(SPD, B, method="cg", M=M, x0=start, rtol=1e-5).iterations


@pytest.mark.parametrize("name, A", CASES)
@pytest.mark.parametrize("rtol, atol", [(1.0, 0), (100, 0), (np.inf, 0), (1e-8, np.inf), (0, np.inf), (2, 1e-30)])
def test_tolerances_that_zero_meets(name, A, rtol, atol):
    if name == "minres":                         # has no atol
        if rtol < 1:
            return
        atol = {}
    else:
        atol = {"atol": atol}
    x, info = getattr(scipy_like, name)(A, B, rtol=rtol, **atol)
    assert info == 0 and not x.any()


def test_options_of_minres(capsys):
    x, info = scipy_like.minres(SPD, B, shift=1.5, rtol=1e-10, show=True, check=True)
    shifted = SPD - 1.5 * sp.eye_array(144)
    assert info == 0 and np.allclose(shifted @ x, B) and "converged" in capsys.readouterr().out
    for A in (SPD.toarray(), theirs.aslinearoperator(SPD)):
        assert np.allclose(scipy_like.minres(A, B, shift=1.5, rtol=1e-10)[0], x)
    for A, M in ((theirs.aslinearoperator(UNSYMMETRIC), None), (SPD, UNSYMMETRIC)):
        with pytest.raises(InputError, match="is not symmetric"):
            scipy_like.minres(A, B, M=M, check=True)


def test_both_sides_of_qmr():
    factors = theirs.splu(UNSYMMETRIC.tocsc())
    half = theirs.aslinearoperator(2 * sp.eye_array(144))
    x, info = scipy_like.qmr(UNSYMMETRIC, B, M1=factors, M2=half, rtol=1e-10, maxiter=3)
    assert info == 0 and np.allclose(UNSYMMETRIC @ x, B)


def test_bad_input_is_named():
    with pytest.raises(InputError, match="callback_type='y': expected one of x, pr_norm, legacy"):
        scipy_like.gmres(SPD, B, callback=print, callback_type="y")
    with pytest.raises(InputError, match="b has shape"):
        scipy_like.cg(SPD, np.ones((144, 2)))
    with pytest.raises(InputError, match="x0='b': expected an array, None, or 'Mb'"):
        scipy_like.cg(SPD, B, x0="b")
    with pytest.raises(InputError, match="a preconditioner of swell's acts in a solve only"):
        scipy_like.cg(SPD, B, x0="Mb", M="ic0")
    for atol in ("legacy", None, -1):
        with pytest.raises(InputError, match="atol="):
            scipy_like.cg(SPD, B, rtol=2, atol=atol)
    with pytest.warns(DeprecationWarning, match="without specifying `callback_type`"):
        scipy_like.gmres(SPD, B, callback=lambda r: None)


def test_ctrl_c_reaches_the_caller():
    import signal
    with pytest.raises(KeyboardInterrupt):
        scipy_like.gmres(UNSYMMETRIC, B, rtol=1e-12, callback=lambda r: signal.raise_signal(signal.SIGINT),
                         callback_type="pr_norm")
