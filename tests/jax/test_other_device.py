"""``device="cuda"`` for JAX's arrays on the host: swell moves them, and x comes back to the host."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import swell

pytestmark = pytest.mark.gpu

A = sp.csr_matrix(swell.gallery.convection_diffusion((5, 4)))
B = np.linspace(1, 2, 20)


def test_arrays_on_the_host_are_solved_on_the_gpu(jax):
    host = jax.devices("cpu")[0]
    f = jax.jit(swell.jax.prepare(A, method="gmres", precond="jacobi", device="cuda", rtol=1e-10))
    values, b = jax.device_put(A.data, host), jax.device_put(B, host)
    for factor in (1.0, 1.0, 2.0):
        x = f(factor * values, b)
        assert x.devices() == {host} and np.allclose(factor * (A @ np.asarray(x)), B)
    gradient = jax.grad(lambda b: f(values, b).sum())(b)
    assert np.allclose(gradient, np.linalg.solve(A.toarray().T, np.ones(20)))
    both = jax.vmap(f, (0, None))(np.stack([A.data, 2 * A.data]), b)
    assert np.allclose(both[0], 2 * both[1])
    assert swell.solve(A, b, method="gmres", device="cuda").x.devices() == {host}
