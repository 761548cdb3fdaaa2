"""swell.jax.solve and prepare: values, derivatives, vmap, setups, threads, errors."""
from __future__ import annotations

import functools
import gc
import threading
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

import swell

RNG = np.random.default_rng(5)
A = sp.csr_matrix(swell.gallery.convection_diffusion((5, 4)))           # not symmetric
N = A.shape[0]
B = RNG.standard_normal(N)
IMAGINARY = 0.2j * RNG.standard_normal(A.nnz)
TIGHT = {"rtol": 1e-12}


def bcsr(A, values=None):
    import jax.numpy as jnp
    from jax.experimental.sparse import BCSR
    values = jnp.asarray(A.data if values is None else values)
    return BCSR((values, jnp.asarray(A.indices), jnp.asarray(A.indptr)), shape=A.shape)


def complex_system():
    M = A.astype(complex)
    M.data += IMAGINARY
    return M, B + 1j * np.roll(B, 3)


@pytest.fixture
def calls(monkeypatch):
    """The names of swell's calls, as programs make them."""
    import swell.api
    from swell.batch.solver import BatchSolver
    made = []
    for place, name in ((swell.api, "prepare"), (swell.Solver, "update"), (swell.Solver, "solve"),
                        (BatchSolver, "update"), (BatchSolver, "solve")):
        monkeypatch.setattr(place, name, counted(made, f"{place.__name__.split('.')[-1]}.{name}", getattr(place, name)))
    return made


def counted(made, name, real):
    """The function ``real``, which adds its name to the list ``made``."""
    def call(*args, **named):
        made.append(name)
        return real(*args, **named)
    return call


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("form", ["BCSR", "BCOO", "dense"])
def test_derivatives_to_second_order(kind, form):
    import jax.numpy as jnp
    from jax.experimental.sparse import BCOO
    from jax.test_util import check_grads
    M, b = (A, B) if kind == "real" else complex_system()
    given = {"BCSR": bcsr(M), "BCOO": BCOO.fromdense(jnp.asarray(M.toarray())), "dense": jnp.asarray(M.toarray())}[form]
    f = swell.jax.prepare(given, **TIGHT)
    values = given if form == "dense" else given.data
    x = f(values, jnp.asarray(b))
    assert np.allclose(M @ np.asarray(x), b, rtol=0, atol=1e-10)
    check_grads(f, (values, jnp.asarray(b)), order=2, modes=("fwd", "rev"))


@pytest.mark.parametrize("options", [{"method": "gmres", "precond": "ilu0"}, {"method": "bicgstab", "scaling": "jacobi"},
                                     {"method": "direct"}], ids=lambda o: o["method"])
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_gradients_are_those_of_a_dense_solve(jax, options, kind):
    jnp = jax.numpy
    M, b = (A, B) if kind == "real" else complex_system()
    rows = np.repeat(np.arange(N), np.diff(M.indptr))

    def loss(solve):
        return lambda values, b: (jnp.abs(solve(values, b)) ** 2).sum() + solve(values, b)[3].imag

    f = loss(swell.jax.prepare(bcsr(M), **options, **TIGHT))
    dense = loss(lambda v, b: jnp.linalg.solve(jnp.zeros((N, N), v.dtype).at[rows, M.indices].set(v), b))
    for argument in (0, 1):
        found, wanted = (jax.jit(jax.grad(one, argument))(jnp.asarray(M.data), jnp.asarray(b)) for one in (f, dense))
        assert np.allclose(found, wanted, rtol=1e-8, atol=1e-9), argument


def test_a_gradient_is_one_more_solve_with_the_same_setup(jax, calls):
    f = swell.jax.prepare(bcsr(A))
    g = jax.jit(jax.value_and_grad(lambda v, b: (f(v, b) ** 2).sum(), argnums=(0, 1)))
    jax.block_until_ready(g(A.data, B))
    assert calls == ["api.prepare", "Solver.solve", "Solver.solve"]
    jax.block_until_ready(g(A.data, 2 * B))
    assert calls[3:] == ["Solver.solve", "Solver.solve"]
    jax.block_until_ready(g(2 * A.data, B))
    assert calls[5:] == ["Solver.update", "Solver.solve", "Solver.solve"]


def test_columns(jax):
    jnp = jax.numpy
    rhs = np.stack([B, 2 * B, np.zeros(N)], axis=1)
    f = swell.jax.prepare(bcsr(A), **TIGHT)
    x, info = f(A.data, rhs, has_aux=True)
    assert np.allclose(A @ np.asarray(x), rhs) and info.iterations.shape == info.residual.shape == (3,)
    from jax.test_util import check_grads
    check_grads(f, (jnp.asarray(A.data), jnp.asarray(rhs)), order=1, modes=("fwd", "rev"))


def test_vmap_over_b_is_one_solve_of_columns(jax, calls):
    f = swell.jax.prepare(bcsr(A), **TIGHT)
    rhs = np.stack([B, 2 * B, np.roll(B, 1)])
    x = jax.jit(jax.vmap(f, (None, 0)))(A.data, rhs)
    assert np.allclose(A @ np.asarray(x).T, rhs.T)
    assert calls.count("api.prepare") == calls.count("Solver.solve") == 1
    nested = jax.vmap(jax.vmap(f, (None, 1), 1), (None, 0))(A.data, np.stack([rhs.T, -rhs.T]))
    assert np.allclose(nested[1], -x.T) and calls.count("Solver.solve") == 2


def test_vmap_over_values_is_a_batch(jax, calls):
    f = swell.jax.prepare(bcsr(A), **TIGHT)
    values, rhs = np.outer([1.0, 2, 4], A.data), np.stack([B, np.roll(B, 1)])
    x = jax.vmap(f, (0, None))(values, B)
    assert np.allclose(A @ np.asarray(x[0]), B) and np.allclose(x[0], 4 * x[2])
    assert calls == ["BatchSolver.update", "BatchSolver.solve"]
    both = jax.vmap(jax.vmap(f, (None, 0)), (0, None))(values, rhs)              # each matrix with each b
    assert both.shape == (3, 2, N) and calls[2:] == ["BatchSolver.update", "BatchSolver.solve"]
    turned = jax.vmap(jax.vmap(f, (0, None)), (None, 0))(values, rhs)
    assert np.allclose(both, turned.swapaxes(0, 1))
    for s in range(3):
        assert np.allclose((s + 1 if s < 2 else 4) * (A @ np.asarray(both[s]).T), rhs.T)


@pytest.mark.parametrize("options", [{}, {"method": "gmres", "ordering": "rcm"}],
                         ids=["batch", "one by one"])
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_vmap_of_gradients(jax, options, kind, calls):
    jnp = jax.numpy
    M, b = (A, B) if kind == "real" else complex_system()
    f = swell.jax.prepare(bcsr(M), **options, **TIGHT)
    g = jax.grad(lambda v, b: (jnp.abs(f(v, b)) ** 2).sum(), (0, 1))
    values, rhs = np.stack([M.data, 1.5 * M.data]), np.stack([b, np.roll(b, 2)])
    together = jax.vmap(g)(values, rhs)
    assert ("BatchSolver.solve" in calls) == (not options)
    for s in range(2):
        for found, wanted in zip(together, g(values[s], rhs[s])):
            assert np.allclose(found[s], wanted, rtol=1e-8, atol=1e-10)


def test_jacobian_and_hessian(jax):
    f = swell.jax.prepare(bcsr(A), **TIGHT)
    inverse = np.linalg.inv(A.toarray())
    assert np.allclose(jax.jacrev(f, 1)(A.data, B), inverse)
    assert np.allclose(jax.jacfwd(f, 1)(A.data, B), inverse)
    assert np.allclose(jax.hessian(lambda b: (f(A.data, b) ** 2).sum())(B), 2 * inverse.T @ inverse)


def test_duplicates_padding_and_order(jax):
    from jax.experimental.sparse import BCOO, BCSR
    jnp = jax.numpy
    coo = A.tocoo()
    shuffled = RNG.permutation(A.nnz)
    rows = np.concatenate([coo.row[shuffled], [0, 0, N, N]])                     # (0, 0) twice more, and padding
    columns = np.concatenate([coo.col[shuffled], [0, 0, N, N]])
    data = jnp.asarray(np.concatenate([coo.data[shuffled], [0.5, 0.25, 7.0, 7.0]]))
    M = sp.coo_matrix((data[:-2], (rows[:-2], columns[:-2]))).tocsr()
    given = BCOO((data, jnp.asarray(np.stack([rows, columns], axis=1))), shape=A.shape)
    assert np.allclose(M @ np.asarray(swell.jax.solve(given, B)), B)
    f = swell.jax.prepare(given, **TIGHT)
    g = jax.grad(lambda v: f(v, B).sum())(data)
    first = np.flatnonzero((rows == 0) & (columns == 0))
    assert len(first) == 3 and np.allclose(g[first], g[first[0]]) and g[first[0]] != 0 and not g[-2:].any()

    row = np.arange(A.indptr[3], A.indptr[4])                                    # unsorted columns in row 3
    order = np.arange(A.nnz)
    order[row] = row[::-1]
    padded = BCSR((jnp.asarray(np.append(A.data[order], 9.0)), jnp.asarray(np.append(A.indices[order], 0)),
                   jnp.asarray(A.indptr)), shape=A.shape)
    assert np.allclose(A @ np.asarray(swell.jax.solve(padded, B)), B)
    f = swell.jax.prepare(padded, **TIGHT)
    sorted_gradient = jax.grad(lambda v: swell.jax.prepare(bcsr(A), **TIGHT)(v, B).sum())(jnp.asarray(A.data))
    gradient = jax.grad(lambda v: f(v, B).sum())(padded.data)
    assert np.allclose(gradient[:-1], sorted_gradient[order]) and gradient[-1] == 0


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr"])
def test_patterns_of_scipy(form):
    M = getattr(A, f"to{form}")()
    x = swell.jax.solve(M, B)
    assert np.allclose(A @ np.asarray(x), B)
    assert np.allclose(2 * swell.jax.prepare(M)(2 * M.data.ravel(), B), x)


def test_a_dense_matrix_may_be_traced(jax):
    x = jax.jit(swell.jax.solve)(A.toarray(), B)
    assert np.allclose(A @ np.asarray(x), B)


def test_the_type_of_x(jax):
    jnp = jax.numpy
    single = A.data.astype(np.float32)
    f = swell.jax.prepare(bcsr(A), rtol=1e-5)
    assert f(single, B.astype(np.float32)).dtype == np.float32
    assert f(single, B).dtype == np.float64
    assert f(single, B.astype(np.complex64)).dtype == np.complex64
    assert swell.jax.solve(np.array([[2, 0], [0, 4]]), np.array([2, 4])).tolist() == [1.0, 1.0]
    half = jnp.asarray(A.data, "bfloat16")
    asked = swell.jax.prepare(bcsr(A), rtol=1e-5, dtype="float32")
    assert asked(half, jnp.asarray(B, "bfloat16")).dtype == np.float32
    assert jax.grad(lambda v: asked(v, B).sum())(half).dtype == half.dtype


def test_setups_are_kept_by_the_contents_of_pattern_and_options(jax, calls):
    swell.jax.solve(bcsr(A), B, rtol=1e-7).block_until_ready()
    swell.jax.solve(bcsr(A.copy()), B, rtol=1e-7).block_until_ready()
    assert calls.count("api.prepare") == 1 and "Solver.update" not in calls
    swell.jax.solve(bcsr(A), B, rtol=1e-6).block_until_ready()
    assert calls.count("api.prepare") == 2
    P, Q = (sp.csr_matrix(np.diag([1.0, 2, 3]) + np.eye(3, k=k)) for k in (1, -1))       # as many entries
    for M in (P, Q, P):
        assert np.allclose(M @ np.asarray(swell.jax.solve(bcsr(M), np.ones(3))), 1)


def require_programs_that_end():
    from swell.jax.call import buffer_callback
    if buffer_callback is None:
        pytest.skip("this JAX keeps compiled programs until jax.clear_caches()")


def test_few_setups_are_kept():
    from swell.jax.linear_solve import KEPT
    require_programs_that_end()
    from swell.autodiff.system import System

    def systems():
        gc.collect()
        return {id(found) for found in gc.get_objects() if type(found) is System}          # isinstance asks dead proxies of others

    before = systems()
    for n in range(2, 2 * KEPT + 2):
        swell.jax.solve(bcsr(sp.eye(n, format="csr")), np.ones(n)).block_until_ready()
    assert len(systems() - before) <= KEPT


def test_a_prepared_function_takes_its_setup_along(jax):
    require_programs_that_end()
    f = swell.jax.prepare(bcsr(A))
    g, system = jax.jit(functools.partial(f, b=B)), weakref.ref(f.system)
    g(A.data).block_until_ready()
    del f
    gc.collect()
    assert np.allclose(A @ np.asarray(g(A.data)), B) and system() is not None
    del g
    gc.collect()
    assert system() is None


def test_a_program_is_traced_once(jax):
    traces = []

    @jax.jit
    def f(values, b):
        traces.append(1)
        return swell.jax.solve(bcsr_of(values), b)

    pattern = bcsr(A)

    def bcsr_of(values):
        from jax.experimental.sparse import BCSR
        return BCSR((values, pattern.indices, pattern.indptr), shape=A.shape)

    for factor in (1.0, 2.0, 3.0):
        assert np.allclose(factor * (A @ np.asarray(f(factor * A.data, B))), B)
    assert len(traces) == 1


def test_values_for_which_the_choice_does_not_fit():
    """swell chooses cg for the first values, and must choose again for others."""
    S = sp.csr_matrix(swell.gallery.poisson3d(12))
    b, shifted = np.ones(S.shape[0]), S.copy()
    shifted.data = S.data + 0.1 * RNG.standard_normal(S.nnz)
    f = swell.jax.prepare(bcsr(S), method=None, precond="jacobi")
    for M in (S, shifted, S):
        assert np.linalg.norm(b - M @ np.asarray(f(M.data, b))) <= 2e-8 * np.linalg.norm(b)


def test_threads(jax):
    f = jax.jit(swell.jax.prepare(bcsr(A), **TIGHT))
    wrong = []

    def work(k):
        for step in range(1, 6):
            x = np.asarray(f((k + step) * A.data, B))
            if not np.allclose((k + step) * (A @ x), B):
                wrong.append((k, step))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_absolute_tolerance_is_not_for_gradients(jax):
    f = swell.jax.prepare(bcsr(A), method="gmres", rtol=1e-10, atol=1e-2)
    scale = 1e-6
    g = jax.grad(lambda b: scale * f(A.data, b).sum())(B)
    assert np.allclose(g, scale * np.linalg.solve(A.toarray().T, np.ones(N)), rtol=1e-7, atol=0)
    assert not f(A.data, 1e-6 * B).any()                         # forward, it counts


def test_the_host_route_of_older_versions(jax, monkeypatch):
    from jax.test_util import check_grads

    from swell.jax import call
    monkeypatch.setattr(call, "buffer_callback", None)
    f = swell.jax.prepare(bcsr(A), **TIGHT)
    check_grads(f, (jax.numpy.asarray(A.data), jax.numpy.asarray(B)), order=2)
    x = jax.vmap(f)(np.stack([A.data, 2 * A.data]), np.stack([B, B]))
    assert np.allclose(x[0], 2 * x[1])


def test_aux_beside_a_gradient(jax):
    f = swell.jax.prepare(bcsr(A), method="gmres", **TIGHT)

    def total(b):
        x, info = f(A.data, b, has_aux=True)
        return x.sum(), info

    (_, info), gradient = jax.jit(jax.value_and_grad(total, has_aux=True))(B)
    assert info.iterations > 1 and info.residual <= 1e-12
    assert swell.Reason.of(int(info.code)) is swell.Reason.CONVERGED
    assert np.allclose(gradient, np.linalg.solve(A.toarray().T, np.ones(N)))


def test_the_repr_says_how_to_call():
    f = swell.jax.prepare(bcsr(A))
    assert repr(f) == f"Prepared({N} unknowns, values of shape ({A.nnz},): call it with (values, b))"
