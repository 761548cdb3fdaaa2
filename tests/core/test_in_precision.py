"""InPrecision: an operator in another precision between two scalings, and its kernels for one column and for four."""
from __future__ import annotations

import numpy as np
import pytest

from swell import gallery
from swell.core.in_precision import InPrecision
from swell.core.space import accumulator
from swell.formats.csr import CSRMatrix

N = 1000
NARROW = {"float32": "float32", "float64": "float32", "complex64": "complex64", "complex128": "complex64"}


def random(shape, dtype, seed, space):
    values = np.random.default_rng(seed).standard_normal((*shape, 2)) @ [1, 1j]
    return space.from_host((values if np.dtype(dtype).kind == "c" else values.real).astype(dtype))


@pytest.mark.parametrize("width", [1, 4])
def test_kernels_for_columns(width, dtype, space):
    """Each of k columns comes out as if it were alone, to the bit; sums to rounding."""
    with space.active():
        kernels, narrow = space.kernels("swell.core", "precision", dtype), NARROW[dtype]
        x, w, old = (random((N, width), dtype, seed, space) for seed in (1, 2, 3))
        scale = space.from_host((1 + np.random.default_rng(4).random(N)).astype(np.dtype(dtype).type(0).real.dtype))
        factor, kind = space.from_host(np.array([0.25])), np.dtype(dtype).type

        def run(x, w, old, width):
            y, out, more = space.empty(N * width, narrow), space.empty(N * width, dtype), old.copy()
            dots = space.empty(2 * width, accumulator(dtype))
            kernels.enter(x, scale, factor, width, y)
            kernels.leave(y, scale, factor, width, more, kind(2), kind(-1))
            kernels.leave_dots(y, scale, factor, width, out, w, dots)
            return [space.to_host(a) for a in (y, more, out, dots)]

        y, more, out, dots = run(*(a.reshape(-1) for a in (x, w, old)), width)
        for c in range(width):
            single = run(*(space.xp.ascontiguousarray(a[:, c]) for a in (x, w, old)), 1)
            for together, alone in zip((y, more, out), single):
                assert (together[c::width] == alone).all()
            assert np.allclose(dots[c::width], single[3], rtol=1e-6 if narrow == dtype else 1e-12)
        d, host = space.to_host(scale)[:, None], [space.to_host(a) for a in (x, w, old)]
        assert np.allclose(y.reshape(N, width), 0.25 * d * host[0], rtol=1e-6)
        assert np.allclose(out.reshape(N, width), d**2 * host[0], rtol=1e-6)
        assert np.allclose(more.reshape(N, width), 2 * d**2 * host[0] - host[2], rtol=1e-5, atol=1e-6)
        assert np.allclose(dots[:width], (host[1].conj() * out.reshape(N, width)).sum(axis=0), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("width", [1, 4])
def test_dense_product(width, space):
    with space.active():
        n = 70
        matrix, x = random((n, n), "float32", 1, space), random((n, width), "float32", 2, space)
        y = space.empty(n * width, "float32")
        space.kernels("swell.preconditioners.amg", "cycle", np.float32).dense_product(matrix.reshape(-1), width,
                                                                                     x.reshape(-1), y)
        expected = space.to_host(matrix).astype(float) @ space.to_host(x)
        assert np.allclose(space.to_host(y).reshape(n, width), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("norm", [1.0, 1e-100, 1e100])
def test_a_product_in_single_precision(norm, space):
    """D A D x to single precision, however large x is; double in and out."""
    with space.active():
        A = CSRMatrix.from_scipy(gallery.convection_diffusion((30, 30), 4.0), space)
        n, scale = A.shape[0], 1 + np.random.default_rng(5).random(A.shape[0])
        M = InPrecision(A.astype(np.float32), space.from_host(scale), np.float64)
        x = norm * np.random.default_rng(6).standard_normal(n)
        M.expect(norm)
        out, given, w = space.empty(n, np.float64), space.from_host(x), space.from_host(np.ones(n))
        expected = scale * (A.to_scipy() @ (scale * x))
        M.apply(given, out)
        assert np.allclose(space.to_host(out), expected, rtol=1e-5, atol=1e-5 * norm)
        M.apply(given, out, 2, -1)
        assert np.allclose(space.to_host(out), expected, rtol=1e-5, atol=1e-5 * norm)
        M.apply_adjoint(given, out)
        assert np.allclose(space.to_host(out), scale * (A.to_scipy().T @ (scale * x)), rtol=1e-5, atol=1e-5 * norm)
        dots = space.empty(2, np.float64)
        M.apply_dots(given, out, w, dots)
        assert float(dots[0]) == pytest.approx(expected.sum(), rel=1e-3, abs=1e-3 * norm)
        assert M.dtype == np.float64 and M.arithmetic == np.float32
