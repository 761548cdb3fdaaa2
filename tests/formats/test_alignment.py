"""Arrays that kernels access 16 bytes at a time begin at multiples of 16 bytes: sizes and offsets that are odd.

A GPU's launcher refuses others (core/cuda_kernels.py). What reaches it is the same on both devices, so that the CPU's
kernels are asked here for what their GPU forms need, without a GPU."""
from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest
from tests.support.across import METHODS, banded
from tests.support.cases import rng
from tests.support.during import during

import swell
from swell import distributed, gallery
from swell.core import cuda_kernels
from swell.core.cuda import CudaSpace
from swell.core.cuda_sources import kernel_file, kernel_files, signatures
from swell.core.registry import names, resolve
from swell.core.cpu import CpuSpace
from swell.core.space import accumulator
from swell.formats.csr import CSRMatrix

ROOT = pathlib.Path(swell.__file__).parent
SIZES = [1, 31, 33]


class Watched:
    """Kernels of the CPU that take what their GPU forms would."""

    def __init__(self, kernels, signatures, seen):
        self._kernels, self._signatures, self._seen = kernels, signatures, seen

    def __getattr__(self, name):
        kernel, signature = getattr(self._kernels, name), self._signatures.get(name)
        if signature is None or not any(p.wide for p in signature.parameters):
            return kernel

        def checked(*arguments):
            self._seen.add(name)
            for p, array in zip(signature.parameters, arguments, strict=False):
                assert not (p.wide and cuda_kernels.misaligned(array, array.ctypes.data)), f"{name}: {p.name}"
            return kernel(*arguments)
        return checked


@pytest.fixture
def watched(monkeypatch):
    """The names of the kernels that have been called and are wide on a GPU; rows of a basis are padded as there."""
    seen, plain = set(), CpuSpace.kernels

    def kernels(self, package, stem, dtype, state=None):
        found = plain(self, package, stem, dtype, state)
        source = kernel_file(package, stem)
        return Watched(found, signatures(source), seen) if source.exists() else found

    monkeypatch.setattr(CpuSpace, "kernels", kernels)
    monkeypatch.setattr(CpuSpace, "padded", CudaSpace.padded)
    return seen


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("n", SIZES)
def test_vector_operations(space, device, dtype, n):
    values = rng().standard_normal((2, 3, n)).astype(np.float32)
    x, y, w = values[0] + 1j * values[1] if dtype == "complex64" else values[0]
    put, near = (lambda v: space.from_host(v.copy())), {"rtol": 1e-5, "atol": 1e-5}
    with space.active():
        X, Y, W, out = put(x), put(y), put(w), space.empty(2, accumulator(dtype))
        space.axpy(2, X, Y)
        assert np.allclose(space.to_host(Y), y := 2 * x + y, **near)
        space.axpby(3, X, -1, Y)
        assert np.allclose(space.to_host(Y), y := 3 * x - y, **near)
        space.multiply(X, Y)
        assert np.allclose(space.to_host(Y), y := x * y, **near)
        space.scale(0.5, Y)
        assert np.allclose(space.to_host(Y), y := 0.5 * y, **near)
        space.axpy_dots(1, X, Y, W, out)
        y = x + y
        assert np.allclose(space.to_host(out), [np.vdot(w, y), np.vdot(y, y)], **near)
        space.dot(X, Y, out)
        assert np.allclose(space.to_host(out)[0], np.vdot(x, y), **near)
        space.norm(X, out)
        assert np.allclose(space.to_host(out)[0], np.linalg.norm(x), **near)
        space.assign(7, X)
        assert (space.to_host(X) == 7).all()


@pytest.mark.parametrize("n", [31, 33])
def test_a_slice_is_refused_before_it_is_a_misaligned_address(space, device, n):
    """On a GPU; a CPU takes it."""
    x, y = (space.from_host(rng().random(n + 1).astype(np.float32))[1:] for _ in range(2))
    with space.active():
        if device == "cpu":
            space.axpy(1, x, y)
            return
        with pytest.raises(swell.InputError, match="takes x 16 bytes at a time"):
            space.axpy(1, x, y)
        space.axpy(1, x.copy(), y.copy())


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("name", names("format"))
def test_products_in_every_format(space, device, dtype, name):
    for n in SIZES:
        with during(n=n):
            A = (banded(n)[0] * (1 + 1j if dtype == "complex64" else 1)).astype(dtype)
            x, y = (rng().standard_normal((2, n)) * (1 - 2j if dtype == "complex64" else 1)).astype(dtype)
            with space.active():
                M = resolve("format", name).build(CSRMatrix.from_scipy(A, space))
                X, Y, dots = space.from_host(x.copy()), space.from_host(y.copy()), space.empty(2, accumulator(dtype))
                M.apply(X, Y, 2, -1)
                assert np.allclose(space.to_host(Y), 2 * (A @ x) - y, rtol=1e-4, atol=1e-4)
                M.apply_dots(X, Y, X, dots)
                expected = [np.vdot(x, A @ x), np.vdot(A @ x, A @ x)]
                assert np.allclose(space.to_host(dots), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_methods(watched, method):
    for n in SIZES:
        with during(n=n):
            A, b = banded(n, "float32")
            r = swell.solve(A, b, method=method, rtol=1e-4)
            assert r.converged


@pytest.mark.parametrize("precond", ["schwarz(kind='additive', inner='ic0')", "schwarz(overlap=2)",
                                     "schwarz(overlap=0, inner='jacobi')", "bddc", "block_jacobi", "ic0"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_preconditioners_of_ranks_with_odd_parts(watched, precond, ranks):
    """A rank's rows begin anywhere among those that it shares with others."""
    A, b = banded(67)

    def solved(communicator):
        M = distributed.scatter(communicator, A)
        return M.gather(swell.solve(M, b[M.rows], method="gmres", precond=precond).x)

    for x in distributed.run(ranks, solved):
        assert np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)
    assert watched


WIDE = re.compile(r"\b(?:vectors|packs|products|plus_rows|gram)(?:<[^>]*>)?\(|\b(?:load|store|load_strip|store_strip|Several|double2|float[24])\b")
FUNCTION = re.compile(r"(?:__global__ void|DEVICE|KERNEL)\s(?:[^;{}]*?\b)?(?!__launch_bounds__)(\w+)\((?:[^()]|\([^()]*\))*\)\s*(?:const\s*)?\{")


def functions(text):
    """The functions of a source by name, with their bodies; without comments, which may speak of loads and stores."""
    text = re.sub(r"//.*", "", text)
    heads = [*FUNCTION.finditer(text)]
    return {head[1]: text[head.end():after.start() if after else None]
            for head, after in zip(heads, [*heads[1:], None], strict=True)}


def test_every_kernel_that_reads_wider_than_a_value_says_so():
    wrong, files = [], kernel_files(ROOT)
    for path in files:
        bodies = functions(path.read_text())
        wide = {name for name, body in bodies.items() if WIDE.search(body)}
        for _ in bodies:                                         # and those that call them
            wide |= {name for name, body in bodies.items() if re.search(rf"\b(?:{'|'.join(wide) or '^'})\s*[<(]", body)}
        found = signatures(path)
        say = {name for name, s in found.items() if any(p.wide for p in s.parameters)}
        wrong += [f"{path.name}: {name} was not found" for name in found.keys() - bodies.keys()]
        wrong += [f"{path.name}: {name} reads wide and does not say so" for name in wide & found.keys() - say]
        wrong += [f"{path.name}: {name} says that it reads wide, and does not" for name in say - wide]
    assert files and not wrong, "\n".join(["", *wrong])
