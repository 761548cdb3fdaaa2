"""swell's own calls with JAX's arrays: x comes back as a JAX array."""
from __future__ import annotations

import numpy as np
import pytest

import swell

A = swell.gallery.poisson2d(6)


@pytest.mark.parametrize("kind", ["float32", "float64", "complex128"])
def test_x_is_an_array_of_jax(jax, kind):
    b = jax.numpy.ones(36, kind)
    for r in (swell.solve(A, b), swell.prepare(A, b_like=b).solve(b)):
        x = r.x
        assert isinstance(x, jax.Array) and x.devices() == b.devices()
        assert x.dtype == ("complex128" if kind == "complex128" else "float64")
        assert np.allclose(A @ np.asarray(x), 1)
    columns = swell.solve(A, jax.numpy.ones((36, 2))).x
    assert isinstance(columns, jax.Array) and columns.shape == (36, 2)


def test_batches(jax):
    r = swell.solve_batch(A, jax.numpy.asarray(np.outer([1.0, 2.0], A.data)), jax.numpy.ones((2, 36)))
    assert isinstance(r.x, jax.Array) and np.allclose(r.x[0], 2 * r.x[1])


def test_x_keeps_its_type_without_double_precision(jax):
    """A is double and so is x: rounded to single, it would not have the residual that the result states."""
    jax.config.update("jax_enable_x64", False)                                   # `conftest.py` turns it on again
    b = jax.numpy.ones(36)
    r = swell.solve(A, b, rtol=1e-12)
    assert b.dtype == np.float32 and r.x.dtype == np.float64
    assert np.linalg.norm(1 - A @ np.asarray(r.x)) <= 6e-12
