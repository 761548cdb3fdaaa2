"""JAX with double precision, for all tests of this folder; they are skipped where JAX is missing."""
from __future__ import annotations

import os

import pytest

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take most of the GPU from the other workers


@pytest.fixture(autouse=True)
def jax():
    """JAX, in double precision while a test runs."""
    jax = pytest.importorskip("jax", reason="needs JAX: pip install 'swell[jax]'")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)
