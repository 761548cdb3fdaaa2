"""swell.jax.lineax: the solver and the sparse operator, beside lineax's own LU and dense operators."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import swell

A = sp.csr_matrix(swell.gallery.convection_diffusion((4, 5)))
N = A.shape[0]
RNG = np.random.default_rng(2)
B = RNG.standard_normal(N)
IMAGINARY = 0.1j * RNG.standard_normal(A.nnz)
TIGHT = {"rtol": 1e-12}


@pytest.fixture(autouse=True)
def lx(jax):
    return pytest.importorskip("lineax", reason="needs lineax: pip install 'swell[jax]'")


def system(kind):
    return (A.data, B) if kind == "real" else (A.data + IMAGINARY, B + 1j * np.roll(B, 3))


def operator(values, tags=()):
    import jax.numpy as jnp
    from jax.experimental.sparse import BCSR

    from swell.jax.lineax import BCSROperator
    return BCSROperator(BCSR((jnp.asarray(values), jnp.asarray(A.indices), jnp.asarray(A.indptr)), shape=A.shape), tags)


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("options", [{}, {"method": "gmres", "precond": "ilu0"}], ids=["chosen", "gmres"])
def test_values_and_gradients_are_those_of_lu(jax, lx, kind, options):
    from swell.jax.lineax import Solver
    jnp = jax.numpy
    values, b = map(jnp.asarray, system(kind))

    own = Solver(**options, **TIGHT)

    def solve(values, b, solver=own):
        return lx.linear_solve(operator(values), b, solver).value

    def loss(solver):
        return lambda values, b: (jnp.abs(solve(values, b, solver)) ** 2).sum() + solve(values, b, solver)[2].imag

    assert np.allclose(solve(values, b), solve(values, b, lx.LU()), rtol=1e-9)
    for argument in (0, 1):
        found, wanted = (jax.grad(loss(one), argument)(values, b) for one in (own, lx.LU()))
        assert np.allclose(found, wanted, rtol=1e-8, atol=1e-10), argument
    from jax.test_util import check_grads
    check_grads(solve, (values, b), order=2)
    both = jax.vmap(solve)(jnp.stack([values, 2 * values]), jnp.stack([b, 3 * b]))
    assert np.allclose(1.5 * both[0], both[1])


def test_other_operators(jax, lx):
    from swell.jax.lineax import Solver
    x = np.linalg.solve(A.toarray(), B)
    dense = lx.MatrixLinearOperator(jax.numpy.asarray(A.toarray()))
    for one in (dense, lx.TaggedLinearOperator(operator(A.data), ()), 2 * operator(A.data) - operator(A.data)):
        assert np.allclose(lx.linear_solve(one, jax.numpy.asarray(B), Solver(**TIGHT)).value, x)
    state = Solver().init(dense, {})
    assert np.allclose(lx.linear_solve(dense, jax.numpy.asarray(B), Solver(), state=state).value, x)
    tree = lx.PyTreeLinearOperator({"all": {"x": jax.numpy.asarray(A.toarray())}},
                                   {"all": jax.ShapeDtypeStruct((N,), "float64")})
    assert np.allclose(lx.linear_solve(tree, {"all": jax.numpy.asarray(B)}, Solver(**TIGHT)).value["x"], x)


def test_failures_are_results(jax, lx):
    from swell.jax.lineax import Solver
    b = jax.numpy.asarray(B)
    few = Solver(method="gmres", maxiter=2)
    solution = lx.linear_solve(operator(A.data), b, few, throw=False)
    assert solution.result == lx.RESULTS.max_steps_reached
    assert solution.stats["num_steps"] == 2 and solution.stats["residual"] > 1e-3
    with pytest.raises(Exception, match="maximum number of solver steps"):
        lx.linear_solve(operator(A.data), b, few)
    for values, rhs, wanted in ((0 * A.data, b, "singular"), (A.data, b * np.nan, "nonfinite_input"),
                                (A.data * np.nan, b, "singular")):
        found = lx.linear_solve(operator(values), rhs, Solver(), throw=False).result
        assert found == getattr(lx.RESULTS, wanted), wanted
    stacked = jax.vmap(lambda b: lx.linear_solve(operator(A.data), b, Solver(), throw=False).value)
    x = stacked(jax.numpy.stack([b, b * np.nan]))
    assert np.allclose(A @ np.asarray(x[0]), B) and np.isnan(x[1]).all()         # one right-hand side, one record


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_the_operator_is_the_matrix(jax, lx, kind):
    values, b = system(kind)
    dense = sp.csr_matrix((values, A.indices, A.indptr)).toarray()
    one = operator(values)
    for found, wanted in ((one, dense), (one.T, dense.T), (lx.conj(one), dense.conj()), (lx.conj(one).T, dense.conj().T),
                          (lx.linearise(one), dense), (lx.materialise(one), dense), (one + one, 2 * dense),
                          (one @ one, dense @ dense)):
        assert np.allclose(found.as_matrix(), wanted) and np.allclose(found.mv(jax.numpy.asarray(b)), wanted @ b)
    assert np.allclose(lx.diagonal(one), dense.diagonal())
    for found, offset in zip(lx.tridiagonal(one), (0, -1, 1)):
        assert np.allclose(found, dense.diagonal(offset))
    assert one.in_structure().shape == one.out_structure().shape == (N,) and one.in_size() == N
    assert jax.jit(lambda one: one.mv(jax.numpy.asarray(b)))(one).shape == (N,)


def test_tags(lx):
    plain = operator(A.data)
    asks = {lx.is_diagonal: lx.diagonal_tag, lx.is_tridiagonal: lx.tridiagonal_tag, lx.is_symmetric: lx.symmetric_tag,
            lx.has_unit_diagonal: lx.unit_diagonal_tag, lx.is_lower_triangular: lx.lower_triangular_tag,
            lx.is_upper_triangular: lx.upper_triangular_tag, lx.is_positive_semidefinite: lx.positive_semidefinite_tag,
            lx.is_negative_semidefinite: lx.negative_semidefinite_tag}
    for ask, tag in asks.items():
        assert not ask(plain) and ask(operator(A.data, tag)), tag
    assert lx.is_symmetric(operator(A.data, lx.positive_semidefinite_tag))
    assert not lx.is_symmetric(operator(A.data + IMAGINARY, lx.positive_semidefinite_tag))
    assert lx.is_upper_triangular(operator(A.data, {lx.lower_triangular_tag}).T)
    symmetric = operator(A.data, lx.symmetric_tag)
    assert symmetric.T is symmetric


def test_what_is_refused(jax, lx):
    from swell.jax.lineax import Solver
    with pytest.raises(swell.InputError, match="options=.'y0'.*when it is made"):
        lx.linear_solve(operator(A.data), jax.numpy.asarray(B), Solver(), options={"y0": 1})
    with pytest.raises(swell.InputError, match="cannot be hashed"):
        Solver(nullspace=np.ones((N, 1)))
    with pytest.raises(swell.InputError, match="expected a square matrix"):
        lx.linear_solve(lx.MatrixLinearOperator(jax.numpy.ones((3, 2))), jax.numpy.ones(3), Solver())
    with pytest.raises(swell.InputError, match="out of reach in float32"):
        lx.linear_solve(operator(A.data.astype("float32")), jax.numpy.asarray(B, "float32"),
                        Solver(rtol=1e-8))
