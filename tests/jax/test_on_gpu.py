"""JAX's arrays on a CUDA GPU: solved there, on XLA's stream, without the host."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import swell

pytestmark = pytest.mark.gpu

A = sp.csr_matrix(swell.gallery.convection_diffusion((12, 10)))
N = A.shape[0]
RNG = np.random.default_rng(3)
B = RNG.standard_normal(N)
IMAGINARY = 0.1j * RNG.standard_normal(A.nnz)
TIGHT = {"rtol": 1e-11}


@pytest.fixture(autouse=True)
def gpu(jax):
    """JAX's first GPU."""
    try:
        return jax.devices("gpu")[0]
    except RuntimeError:
        pytest.skip("needs JAX on a GPU: pip install 'jax[cuda13]'")


def bcsr(values, gpu, kind="BCSR"):
    import jax
    from jax.experimental import sparse
    put = lambda array: jax.device_put(array, gpu)
    if kind == "dense":
        return put(sp.csr_matrix((values, A.indices, A.indptr)).toarray())
    if kind == "BCOO":
        rows = np.repeat(np.arange(N, dtype=np.int32), np.diff(A.indptr))
        return sparse.BCOO((put(values), put(np.stack([rows, A.indices], axis=1))), shape=A.shape)
    return sparse.BCSR((put(values), put(A.indices), put(A.indptr)), shape=A.shape)


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("form", ["BCSR", "BCOO", "dense"])
def test_derivatives(jax, gpu, kind, form):
    from jax.test_util import check_grads
    values, b = (A.data, B) if kind == "real" else (A.data + IMAGINARY, B + 1j * np.roll(B, 3))
    given, b = bcsr(values, gpu, form), jax.device_put(b, gpu)
    f = swell.jax.prepare(given, method="gmres", precond="jacobi", **TIGHT)
    own = given if form == "dense" else given.data
    x = jax.jit(f)(own, b)
    assert x.devices() == {gpu}
    M = sp.csr_matrix((values, A.indices, A.indptr))
    assert np.allclose(M @ np.asarray(x), np.asarray(b), atol=1e-8)
    check_grads(f, (own, b), order=2)


def test_arrays_stay_on_the_gpu(jax, gpu, monkeypatch):
    """swell gets CuPy's arrays over XLA's buffers, on XLA's stream, and solves there."""
    import cupy
    seen = []
    real = swell.Solver.solve

    def solve(self, b, *args, **named):
        seen.append((type(b), self.space.name, cupy.cuda.get_current_stream().ptr))
        return real(self, b, *args, **named)

    monkeypatch.setattr(swell.Solver, "solve", solve)
    f = jax.jit(swell.jax.prepare(bcsr(A.data, gpu), **TIGHT))
    f(jax.device_put(A.data, gpu), jax.device_put(B, gpu)).block_until_ready()
    kind, where, stream = seen[0]
    assert kind is cupy.ndarray and where == "cuda" and stream != cupy.cuda.Stream.null.ptr


def test_in_a_longer_program(jax, gpu):
    """The solve sees what the program has computed before it, and the program sees x, many times in a loop."""
    jnp = jax.numpy
    f = swell.jax.prepare(bcsr(A.data, gpu), **TIGHT)

    @jax.jit
    def steps(values, x):
        return jax.lax.fori_loop(0, 20, lambda k, x: jnp.tanh(f(values * (1 + k / 10), jnp.sin(x) + 1)), x)

    x = steps(jax.device_put(A.data, gpu), jax.device_put(B, gpu))
    wanted = B
    for k in range(20):
        wanted = np.tanh(np.linalg.solve(A.toarray() * (1 + k / 10), np.sin(wanted) + 1))
    assert np.allclose(x, wanted, atol=1e-8)


def test_vmap(jax, gpu):
    f = swell.jax.prepare(bcsr(A.data, gpu), **TIGHT)
    values = jax.device_put(np.outer([1.0, 2, 4], A.data), gpu)
    rhs = jax.device_put(np.stack([B, np.roll(B, 1)]), gpu)
    x = jax.jit(jax.vmap(f, (None, 0)))(values[0], rhs)
    assert np.allclose(A @ np.asarray(x).T, np.asarray(rhs).T, atol=1e-8)
    both = jax.jit(jax.vmap(jax.vmap(f, (None, 0)), (0, None)))(values, rhs)
    assert np.allclose(both[0], x, atol=1e-8) and np.allclose(both[0], 4 * both[2], atol=1e-8)
    g = jax.vmap(jax.grad(lambda v: f(v, rhs[0]).sum()))(values)
    assert np.allclose(g[0], 16 * g[2], rtol=1e-6, atol=1e-8)


def test_a_failure_is_an_error(jax, gpu):
    f = swell.jax.prepare(bcsr(A.data, gpu), method="gmres", maxiter=2)
    with pytest.raises(jax.errors.JaxRuntimeError, match="solve with A did not converge"):
        jax.jit(f)(jax.device_put(A.data, gpu), jax.device_put(B, gpu)).block_until_ready()


@pytest.mark.parametrize("form", ["BCSR", "BCOO", "dense"])
def test_swells_own_calls(jax, gpu, form):
    """A and b are read where they lie, and x comes back there."""
    b = jax.device_put(B, gpu)
    r = swell.solve(bcsr(A.data, gpu, form), b, method="gmres", rtol=1e-10)
    assert r.device == "cuda:0" and isinstance(r.x, jax.Array) and r.x.devices() == {gpu}
    assert np.allclose(A @ np.asarray(r.x), B, atol=1e-7)
    mixed = swell.solve(A, b, method="gmres", rtol=1e-10)
    assert mixed.device == "cuda:0" and mixed.x.devices() == {gpu}
    batch = swell.solve_batch(A, jax.device_put(np.outer([1.0, 2.0], A.data), gpu), jax.device_put(np.stack([B, B]), gpu))
    assert isinstance(batch.x, jax.Array) and np.allclose(batch.x[0], 2 * batch.x[1], atol=1e-7)


def test_single_precision_and_columns(jax, gpu):
    f = jax.jit(swell.jax.prepare(bcsr(A.data, gpu), rtol=1e-5))
    rhs = jax.device_put(np.stack([B, 2 * B], axis=1).astype(np.float32), gpu)
    x = f(jax.device_put(A.data.astype(np.float32), gpu), rhs)
    assert x.dtype == np.float32 and np.allclose(A @ np.asarray(x), np.asarray(rhs), atol=1e-3)
