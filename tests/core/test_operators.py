"""The contract of operators and preconditioners: adjoint, linearity, definiteness, update."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from tests.support.cases import rng
from tests.conftest import space_or_skip

import swell
from swell import gallery
from swell.core.operator import CallableOperator
from swell.core.registry import load, names, resolve
from swell.core.space import accumulator
from swell.formats.csr import CSRMatrix

N = 100
NEEDS = {"field_split": "field_split(fields=2)"}         # AMS needs a gradient: preconditioners/test_ams.py
OPERATORS = [*(("format", f) for f in names("format")), *(("precond", p) for p in names("precond") if p != "ams")]


@pytest.fixture(params=OPERATORS, ids=lambda pair: pair[1])
def kind_and_name(request):
    return request.param


def matrix(dtype, seed=0):
    """Unsymmetric, well conditioned, its diagonal away from zero."""
    A = sp.csr_array(gallery.convection_diffusion((10, 10), 5.0)).astype(dtype)
    random = np.random.default_rng(seed)
    A.data = (A.data * (1 + 0.3 * random.random(A.nnz))).astype(dtype)
    if np.dtype(dtype).kind == "c":
        A.data *= np.exp(0.2j * random.random(A.nnz))
    A.sum_duplicates()
    return A


def skip_other_kinds(kind, name, dtype):
    """Skip a type that the preconditioner is not for; that it is refused is tested with the preconditioner."""
    if kind == "precond" and np.dtype(dtype).kind not in load(kind, name).kinds:
        pytest.skip(f"not for {np.dtype(dtype).name}")


def fitting(kind, name, dtype, seed=0):
    """A matrix that this kind of operator takes: Hermitian positive definite where it asks for one, dominant where it
    splits the matrix itself."""
    A = matrix(dtype, seed)
    if name == "bddc":
        return sp.csr_array(A + sp.diags_array(2 * np.ones(N, A.dtype)))
    skip_other_kinds(kind, name, dtype)
    if kind != "precond" or not load(kind, name).hermitian_only:
        return A
    A = sp.csr_array((A + A.conj().T) / 2)
    return sp.csr_array(A + sp.diags_array(2 * np.ones(N)))


def built(kind, name, A, space):
    if name == "block_gauss_seidel" and space.name != "cpu":
        pytest.skip("sequential: on a CPU only")
    return resolve(kind, NEEDS.get(name, name)).build(CSRMatrix.from_scipy(A, space))


def vector(dtype, seed, space):
    values = np.random.default_rng(seed).standard_normal((N, 2)) @ [1, 1j]
    return space.from_host(values.astype(dtype) if np.dtype(dtype).kind == "c" else values.real.astype(dtype))


def rounding(M):
    """Machine epsilon of the operator's arithmetic over machine epsilon of its vectors: 1, but for lower precision."""
    return np.finfo(M.arithmetic).eps / np.finfo(M.dtype).eps


def applied(operator, x, adjoint=False, **more):
    out = operator.space.xp.full(operator.shape[0], np.nan, operator.dtype)
    (operator.apply_adjoint if adjoint else operator.apply)(x, out, **more)
    return out


def test_adjoint(kind_and_name, dtype, space):
    """(y, A x) = (Aᴴ y, x)."""
    with space.active():
        M = built(*kind_and_name, fitting(*kind_and_name, dtype), space)
        x, y, xp = vector(dtype, 1, space), vector(dtype, 2, space), space.xp
        left, right = xp.vdot(y, applied(M, x)), xp.vdot(applied(M, y, adjoint=True), x)
        assert complex(left) == pytest.approx(complex(right), rel=1e-12 * rounding(M))


def test_linearity(kind_and_name, dtype, space):
    with space.active():
        M = built(*kind_and_name, fitting(*kind_and_name, dtype), space)
        if M.variable:
            pytest.skip("declared variable")
        x, y, xp = vector(dtype, 1, space), vector(dtype, 2, space), space.xp
        together, apart = applied(M, 2 * x - 3 * y), 2 * applied(M, x) - 3 * applied(M, y)
        assert float(abs(together - apart).max()) <= 1e-12 * rounding(M) * float(abs(apart).max())
        assert not bool(xp.isnan(together).any())


def test_alpha_beta(kind_and_name, dtype, space):
    with space.active():
        M, x = built(*kind_and_name, fitting(*kind_and_name, dtype), space), vector(dtype, 1, space)
        for alpha, beta in [(1, 0), (-0.5, 0), (2, 1), (1, -0.5)]:
            y = vector(dtype, 2, space)
            expected = alpha * applied(M, x) + beta * y
            M.apply(x, y, alpha, beta)
            error = float(abs(y - expected).max()) / float(abs(expected).max())
            assert error <= 1e-13 * rounding(M), (alpha, beta)


def test_fused_dots(kind_and_name, dtype, space):
    with space.active():
        M = built(*kind_and_name, fitting(*kind_and_name, dtype), space)
        x, w, out = vector(dtype, 1, space), vector(dtype, 2, space), space.empty(N, dtype)
        dots = space.empty(2, accumulator(dtype))
        M.apply_dots(x, out, w, dots)
        y, found = applied(M, x), space.to_host(dots)
        assert float(abs(out - y).max()) <= 1e-13 * float(abs(y).max())
        assert found[0] == pytest.approx(complex(space.xp.vdot(w, y)), rel=1e-12)
        assert found[1] == pytest.approx(complex(space.xp.vdot(y, y)), rel=1e-12)


def test_update_is_a_fresh_build(kind_and_name, dtype, space):
    with space.active():
        M = built(*kind_and_name, fitting(*kind_and_name, dtype, 0), space)
        x = vector(dtype, 1, space)
        before = applied(M, x)
        M.update(CSRMatrix.from_scipy(fitting(*kind_and_name, dtype, 1), space))
        after, fresh = applied(M, x), applied(built(*kind_and_name, fitting(*kind_and_name, dtype, 1), space), x)
        assert bool((after == fresh).all()) and not bool((after == before).all())


def test_definite_where_it_says_so(kind_and_name, space):
    with space.active():
        skip_other_kinds(*kind_and_name, "float64")
        M = built(*kind_and_name, gallery.poisson2d(10), space)
        if not M.spd:
            pytest.skip("not declared")
        for seed in range(5):
            x = vector("float64", seed, space)
            assert float(space.xp.vdot(x, applied(M, x))) > 0


@pytest.mark.parametrize("name", [n for n in names("precond") if n not in ("direct", "ams")])
def test_a_preconditioner_is_an_approximate_inverse(name, dtype, space):
    A = sp.csr_array(sp.diags_array(np.arange(1.0, N + 1))).astype(dtype)
    skip_other_kinds("precond", name, dtype)
    with space.active():
        x = vector(dtype, 1, space)
        M = built("precond", name, A, space)
        stored = np.finfo("f4" if name == "deflation" else "f8").eps           # in which its vectors are stored
        assert np.allclose(space.to_host(applied(M, x)), space.to_host(x) / np.arange(1.0, N + 1),
                           rtol=1e-11 * rounding(M), atol=4 * stored * rounding(M))


def test_direct_is_the_inverse(dtype, space):
    A = matrix(dtype)
    with space.active():
        x = vector(dtype, 1, space)
        z = space.to_host(applied(built("precond", "direct", A, space), x))
    assert np.allclose(A @ z, space.to_host(x), rtol=1e-12)


@pytest.mark.parametrize("name, row", [("jacobi", 3)])
def test_a_zero_on_the_diagonal_is_named(name, row, space):
    A = matrix("float64").tolil()
    A[row, row] = 0
    with space.active(), pytest.raises(swell.InputError, match=f"first in row {row}.*swell.transversal"):
        built("precond", name, A.tocsr(), space)


# -- operators of the user ---------------------------------------------------------------------------------------------

def user_operator(function, adjoint=None):
    return CallableOperator((3, 3), np.dtype(np.float64), space_or_skip("cpu"), function, adjoint)


def test_a_function_may_overwrite_its_argument():
    def matvec(x):
        x *= 2
        return x
    x = np.ones(3)
    assert (applied(user_operator(matvec), x) == 2).all() and (x == 1).all()


def test_a_function_may_return_integers_columns_and_lists():
    for result in (np.array([1, 2, 3]), np.array([[1.0], [2], [3]]), [1, 2, 3]):
        assert (applied(user_operator(lambda x, result=result: result), np.ones(3)) == [1, 2, 3]).all()


@pytest.mark.parametrize("result, words", [(np.ones(4), "returned 4 values"), (np.ones(3) * 1j, "complex")])
def test_a_function_that_returns_something_else(result, words):
    with pytest.raises(swell.InputError, match=words):
        applied(user_operator(lambda x: result), np.ones(3))


def test_no_adjoint_is_said():
    with pytest.raises(swell.InputError, match="no adjoint"):
        applied(user_operator(lambda x: x), np.ones(3), adjoint=True)


def test_the_shape_of_m_is_checked():
    A = gallery.poisson2d(5)
    small = gallery.poisson2d(4)
    own = CSRMatrix.from_scipy(small, space_or_skip("cpu"))
    for M in (small, small.toarray(), spla.aslinearoperator(small), own):
        with pytest.raises(swell.InputError, match="M has shape"):
            swell.solve(A, np.ones(25), method="gmres", M=M)


def test_m_is_for_the_system_as_it_was_given():
    A = gallery.poisson2d(5)
    for named in ({"ordering": "rcm"}, {"scaling": "jacobi"}):
        with pytest.raises(swell.InputError, match="without ordering and scaling"):
            swell.solve(A + sp.diags_array(rng().random(25)), np.ones(25), method="cg", M=lambda r: r / 4, **named)
