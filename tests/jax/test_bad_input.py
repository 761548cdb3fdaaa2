"""What swell.jax refuses, what JAX's arrays refuse, and the messages."""
from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import swell
from swell.core.errors import InputError

A = sp.csr_matrix(swell.gallery.convection_diffusion((4, 4)))
N = A.shape[0]
B = np.ones(N)


def bcsr(**changed):
    import jax.numpy as jnp
    from jax.experimental.sparse import BCSR
    parts = {"data": A.data, "indices": A.indices, "indptr": A.indptr, **changed}
    return BCSR(tuple(jnp.asarray(parts[name]) for name in ("data", "indices", "indptr")), shape=A.shape)


def refused(words, A, b=B, **options):
    with pytest.raises(InputError, match=words):
        swell.jax.solve(A, b, **options)


def test_a_traced_pattern(jax):
    with pytest.raises(InputError, match="indices of A are traced.*swell.jax.prepare"):
        jax.jit(swell.jax.solve)(bcsr(), B)


def test_matrices_of_no_use(jax):
    from jax.experimental import sparse
    dense = jax.numpy.asarray(A.toarray())
    refused("a JAX CSR.*expected a BCOO or BCSR", sparse.CSR.fromdense(dense))
    refused("a JAX BCOO.*two sparse dimensions", sparse.BCOO.fromdense(dense, n_dense=1))
    refused("a JAX BCOO.*two sparse dimensions", sparse.BCOO.fromdense(dense, n_batch=1))
    refused("shape .2, 16, 16.: expected a square.*jax.vmap", jax.numpy.stack([dense, dense]))
    refused(r"shape \(16, 3\): expected a square", dense[:, :3])
    refused("format 'lil'.*tocsr", A.tolil())
    refused("list of shape", [[1.0]])
    refused("row pointers are inconsistent: expected 17 .* at most 64", bcsr(indptr=A.indptr[::-1].copy()))
    refused("index of -1", bcsr(indices=A.indices - 1))


def test_wrong_vectors_and_values(jax):
    f = swell.jax.prepare(bcsr())
    refused(r"b has shape \(15,\): expected \(16,\) or \(16, k\)", bcsr(), B[1:])
    refused(r"b has shape \(16, 0\)", bcsr(), np.ones((N, 0)))
    refused("b has shape .*other axes use jax.vmap", bcsr(), np.ones((N, 1, 1)))
    refused("b is no array of numbers", bcsr(), ["one"] * N)
    with pytest.raises(InputError, match="values has shape .*in its order; for several matrices use jax.vmap"):
        f(A.data[1:], B)
    with pytest.raises(InputError, match="values has shape .*jax.vmap"):
        f(np.stack([A.data, A.data]), B)
    from jax.experimental.sparse import BCOO
    refused(r"b is a JAX BCOO.*b.todense\(\)", bcsr(), BCOO.fromdense(jax.numpy.asarray(B)))


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_precision_is_upcast_only_if_asked(jax, kind):
    half = jax.numpy.asarray(A.data, kind)
    refused(f"of type {kind}: expected one of float32.*dtype='float32'", bcsr(data=half), jax.numpy.asarray(B, kind),
            rtol=1e-5)
    with pytest.raises(InputError, match=kind):
        swell.solve(A, jax.numpy.asarray(B, kind))
    assert swell.jax.solve(bcsr(data=half), jax.numpy.asarray(B, kind), rtol=1e-5, dtype="float32").dtype == np.float32


def test_single_precision(jax):
    single = bcsr(data=A.data.astype(np.float32))
    refused("rtol=1e-08 is out of reach in float32: expected at least 1e-06, .*or b to float64", single,
            B.astype(np.float32), rtol=1e-8)
    jax.config.update("jax_enable_x64", False)                                   # `conftest.py` turns it on again
    refused("rtol=1e-08 is out of reach in float32: .*jax_enable_x64", single, B, rtol=1e-8)
    refused("dtype='float64': JAX's double precision is off.*jax_enable_x64", single, B, dtype="float64")
    assert np.allclose(A @ np.asarray(swell.jax.solve(single, B, rtol=1e-6)), B, atol=1e-4)
    assert np.allclose(A @ np.asarray(swell.jax.solve(single, B)), B, atol=1e-3)                 # the default is 1e-5


def test_options():
    with pytest.raises(TypeError, match="metod"):
        swell.jax.solve(bcsr(), B, metod="cg")
    refused("unknown method 'gmers': did you mean 'gmres'", bcsr(), method="gmers")
    refused("both M and precond", bcsr(), precond="ilu0", M=A)
    refused("rtol=0 with atol=0.001: a derivative needs a relative tolerance", bcsr(), rtol=0, atol=1e-3)
    refused("drop the imaginary part", bcsr(), B * 1j, dtype="float64")
    refused("dtype='real': expected one of", bcsr(), dtype="real")


def test_a_solve_that_fails_raises_an_error_with_its_reason(jax):
    options = {"method": "gmres", "maxiter": 2}
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"solve with A did not converge \(MAXITER: .*‖b − Ax‖"):
        swell.jax.solve(bcsr(), B, **options).block_until_ready()
    f = swell.jax.prepare(bcsr(), **options)
    rhs = np.stack([np.zeros(N), B], axis=1)
    with pytest.raises(jax.errors.JaxRuntimeError, match="right-hand side 1 did not converge.*1 of 2 solves failed"):
        f(A.data, rhs).block_until_ready()
    with pytest.raises(jax.errors.JaxRuntimeError, match="solve with Aᵀ did not converge"):
        jax.block_until_ready(jax.vjp(lambda b: f(A.data, b), np.zeros(N))[1](B))
    zero_row = A.data * (np.repeat(np.arange(N), np.diff(A.indptr)) != 3)
    with pytest.raises(jax.errors.JaxRuntimeError, match="matrix 1 did not converge .*; .*1 of 2 solves failed"):
        jax.vmap(swell.jax.prepare(bcsr()), (0, None))(np.stack([A.data, zero_row]), B).block_until_ready()
    with pytest.raises(jax.errors.JaxRuntimeError, match="contains NaN or Inf"):
        jax.jit(swell.jax.prepare(bcsr()))(A.data, B * np.nan).block_until_ready()
    with pytest.raises(jax.errors.JaxRuntimeError, match="cg needs a Hermitian matrix"):
        swell.jax.solve(bcsr(), B, method="cg").block_until_ready()
    assert np.allclose(A @ np.asarray(swell.jax.solve(bcsr(), B)), B)            # nothing is left of them


def test_a_gradient_where_there_is_no_adjoint(jax):
    f = swell.jax.prepare(bcsr(), method="fgmres", M=lambda r: r / 4)
    assert np.allclose(A @ np.asarray(f(A.data, B)), B)
    with pytest.raises(jax.errors.JaxRuntimeError, match="adjoint"):
        jax.block_until_ready(jax.grad(lambda b: f(A.data, b).sum())(B))


def test_numbers_are_wanted_outside_of_swell_jax(jax):
    for call in (lambda b: swell.solve(A, b).x, lambda b: swell.prepare(A).solve(b).x,
                 lambda b: swell.solve(A.toarray() * b, B).x):
        with pytest.raises(InputError, match="traced by a JAX transformation.*swell.jax.solve"):
            jax.jit(call)(B)


TWO_DEVICES = """
import jax, numpy as np, swell
jax.config.update("jax_enable_x64", True)
one, two = jax.devices()
print(one, two)
A = swell.gallery.poisson2d(4)
f = swell.jax.prepare(A)
values, b = jax.device_put(A.data, one), jax.device_put(np.ones(16), two)
mesh = jax.sharding.Mesh(np.array([one, two]), "i")
shared = jax.device_put(np.ones(16), jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i")))
for call in (lambda: f(values, b), lambda: f(values, shared), lambda: swell.solve(A, shared)):
    try:
        call()
    except swell.InputError as error:
        print(error)
x = f(jax.device_put(A.data, two), b)
assert x.devices() == {two} and swell.solve(A, b).x.devices() == {two}
"""


def test_devices_that_differ():
    done = subprocess.run([sys.executable, "-c", TWO_DEVICES], capture_output=True, text=True, check=False,
                          env={**os.environ, "JAX_PLATFORMS": "cpu",
                               "XLA_FLAGS": "--xla_force_host_platform_device_count=2"})
    names, differ, sharded, outside = done.stdout.splitlines()
    one, two = names.split()
    assert f"lie on different devices (A's values on {one}, b on {two})" in differ, done.stderr
    assert "b is sharded over 2 devices" in sharded and "sharded over 2 devices: expected one" in outside
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("lines", ["swell.jax.solve(None, None)", "swell.jax.prepare(None)", "import swell.jax.lineax"])
def test_a_missing_library(lines):
    code = (f"import sys, swell; sys.modules['jax'] = None\ntry:\n    {lines}\n"
            "except swell.MissingDependency as error:\n    print(error)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'swell[jax]'" in done.stdout, done.stderr


def test_single_precision_that_does_not_suffice_is_named(jax):
    P, b = swell.gallery.poisson2d(50).astype(np.float32), np.ones(2500, np.float32)
    with pytest.raises(jax.errors.JaxRuntimeError, match="ATTAINABLE_ACCURACY.*jax_enable_x64"):
        swell.jax.solve(P, b).block_until_ready()
