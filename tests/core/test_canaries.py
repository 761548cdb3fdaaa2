"""No kernel writes outside of its buffers, nor reads there where that shows: every algorithm of the registry, at sizes
that are small, odd, and no multiple of a warp, a slice or a block."""
from __future__ import annotations

import ctypes
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.canaries import Overrun, guarded_allocations, guarded_kernels

import swell
from swell import gallery
from swell.core import library
from swell.core.registry import load, names, resolve
from swell.core.stopping import Stopping
from swell.pde.poisson_cube import PoissonCube

SIZES = (1, 2, 3, 5, 31, 33, 1000)
METHODS = [*names("method"), "gmres(restart=4)", "gmres(basis=single)", "fgmres(restart=3)", "idrs(s=2)",
           "bicgstabl(l=4)"]
PRECONDS = [name for name in names("precond") if name not in ("shifted_laplacian", "bddc", "field_split", "ams")]      # tests are below
CHOICES = [*({"method": name} for name in METHODS),
           *({"method": "fgmres", "precond": name} for name in PRECONDS),
           *({"method": "fgmres", "precond": f"schwarz(domains=3, kind={kind})"}
             for kind in ("additive", "restricted")),
           {"method": "fgmres", "precond": "schwarz(domains=3, kind=additive, coarse=nicolaides)"},
           *({"method": f"stationary(smoother={name})"} for name in names("smoother")),
           *({"method": "cg(before=2, between=1, every=3)", "smoother": name} for name in names("smoother")),
           *({"method": "cg", "scaling": name} for name in names("scaling")),
           *({"method": "cg", "precond": "ic0", "ordering": name} for name in names("ordering")),
           *({"method": "gmres", "precond": f"ilu0(solve={name})"} for name in names("triangular")),
           *({"method": "bicgstab", "format": name} for name in names("format"))]

DENSE_SOLVERS = [resolve("dense_solver", name) for name in names("dense_solver")]


@contextmanager
def canaries(device):
    """Guards around all that kernels work on."""
    with guarded_kernels() if device == "cpu" else guarded_allocations(pytest.importorskip("cupy")) as seen:
        yield
    assert seen, "nothing was guarded"


def system(n, dtype="float64", hermitian=True):
    """n rows of uneven length, from 1000 on with one long row: Hermitian positive definite, or (complex) symmetric."""
    A = sp.random_array((n, n), density=min(1, 3 / n), rng=np.random.default_rng(n)).tolil()
    if n >= 1000:
        A[7, :] = 0.01
    A = A + A.T
    if np.dtype(dtype).kind == "c" and hermitian:
        turn = sp.diags_array(np.exp(1j * np.arange(n)))
        A = turn @ A @ turn.conj()
    A = A + sp.diags_array(2 + abs(A).sum(axis=1))
    if np.dtype(dtype).kind == "c" and not hermitian:
        A = A + 0.3j * sp.eye_array(n)
    A = sp.csr_array(A.astype(dtype))
    return A, (A @ np.ones(n)).astype(dtype)


def solve(n, device, dtype="float64", rtol=1e-6, **named):
    """Solve under canaries, to the end and stopped in the middle, with a fresh matrix too; True if it came so far."""
    method = load("method", named["method"].partition("(")[0])
    A, b = system(n, dtype, not method.symmetric_only)
    with canaries(device):
        try:
            solver = swell.prepare(A, device=device, **named)
        except swell.InputError:                 # as of blocks of 4 in 3 rows
            return False
        for limit in (1, 2, 3, 2000):
            r = solver.stop_by(Stopping(rtol=rtol, maxiter=limit)).solve(b)
            assert r.iterations <= limit and np.isfinite(r.x).all() and np.isfinite(r.history).all()
        assert r.converged
        assert solver.update(2 * A).solve(b).converged
    return True


@pytest.mark.parametrize("named", CHOICES, ids=lambda named: "-".join(named.values()))
def test_no_kernel_leaves_its_buffers(named, device):
    if load("method", named["method"].partition("(")[0]).gpu_only and device != "cuda":
        pytest.skip("runs on a GPU only")
    text = "-".join(named.values())
    if device == "cuda" and "block_gauss_seidel" in text:
        pytest.skip("block Gauss–Seidel runs on a CPU only")
    solved = [n for n in SIZES if solve(n, device, **named)]
    # The long row of the largest system does not fit in the shared memory that block Jacobi's sweeps need on a GPU.
    large = device == "cuda" and "block_jacobi" in text and named.get("precond") != "block_jacobi"
    assert solved[-2:] == ([31, 33] if large else [33, 1000])


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-4), ("complex64", 1e-4), ("complex128", 1e-6)])
@pytest.mark.parametrize("named", [{"method": "cg", "format": "sell"}, {"method": "gmres", "precond": "ilu0"},
                                   {"method": "bicgstab", "format": "csr"}], ids=lambda named: named["method"])
def test_nor_in_any_other_type(named, dtype, rtol, device):
    assert all(solve(n, device, dtype, rtol, **named) for n in SIZES)


@pytest.mark.parametrize("named", METHODS)
def test_nor_in_singular_systems_at_the_limit(named, device):
    """Rank 2 of 4: what a cycle calls converged its true residual contradicts, where no iteration is left."""
    if load("method", named.partition("(")[0]).gpu_only and device != "cuda":
        pytest.skip("runs on a GPU only")
    A = sp.csr_array(np.outer([1.0, 2, 3, 4], [1, 2, 3, 4.0]) + np.ones((4, 4)))
    with canaries(device):
        solver = swell.prepare(A, method=named, device=device)
        for limit in range(1, 9):
            assert solver.stop_by(Stopping(maxiter=limit)).solve(np.ones(4)).iterations <= limit


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("named", [{"format": "bsr(block={})"}, {"format": "block_sell(block={})"},
                                   {"precond": "ilu(block={})"}, {"precond": "block_jacobi(block={})"}], ids=str)
def test_nor_with_blocks(named, size, device):
    for blocks in (1, 2, 7, 33):
        A = sp.csr_array(sp.kron(system(blocks)[0], np.eye(size) + 0.1))
        with canaries(device):
            r = swell.solve(A, np.ones(A.shape[0]), method="gmres", device=device, rtol=1e-6,
                            **{kind: text.format(size) for kind, text in named.items()})
        assert r.converged


def test_nor_of_waves(device):
    for shape in ((2,), (3,), (3, 5), (11, 3)):
        A = gallery.helmholtz(shape)
        with canaries(device):
            r = swell.solve(A, np.ones(A.shape[0]), method="gmres", precond="shifted_laplacian", device=device)
        assert r.converged


@pytest.mark.parametrize("named", [{}, {"dense_lu": "icm(x=8)", "interior": "direct"}], ids=str)
def test_nor_of_bddc(named, device):
    for elements, subdomains in ((2, 2), (3, 3)):
        with canaries(device):
            r = PoissonCube(elements, subdomains).solve(device=device, **named).result
        assert r.converged


def test_nor_of_saddle_points(device):
    for m in (2, 5, 9):
        A, b, fields, mass = gallery.stokes((m, m + 1))
        A = A - sp.diags_array(np.where(np.arange(A.shape[0]) < fields["p"].start, 0, 1e-3))
        for schur in ("diagonal", "l1", mass):
            with canaries(device):
                r = swell.solve(A, b, method="fgmres", precond=swell.FieldSplit(kind="full", schur=schur), device=device)
            assert r.converged


def test_nor_of_curls(device):
    for shape in ((2, 3), (5, 4, 3)):
        A, gradient, edges = gallery.curl_curl(shape)
        for kind in ("additive", "multiplicative"):
            with canaries(device):
                r = swell.solve(A, np.ones(A.shape[0]), method="fgmres", device=device,
                                precond=swell.AMS(gradient=gradient, edges=edges, kind=kind))
            assert r.converged


def test_nor_of_products_of_matrices(device):
    for n in SIZES:
        A, P = system(n)[0], sp.csr_array(sp.eye_array(n, n // 3 + 1))
        with canaries(device):
            C = swell.multiply(P.T, A, P, device=device)
        assert (abs(C - P.T @ A @ P) > 1e-12 * abs(C).max()).nnz == 0


@pytest.mark.parametrize("named", [*names("decomposer"), "pcm(form=plain)", "icm(x=8, order=F)"])
def test_nor_of_dense_matrices(named, space):
    decomposer = resolve("decomposer", named)
    if space.name not in decomposer.devices:
        pytest.skip(f"{named} does not run on {space.name}")
    for n in (1, 2, 3, 5, 31, 33, 100):
        A = np.random.default_rng(n).standard_normal((n, n))
        with canaries(space.name):
            factors = decomposer.factor(A, space)
            solutions = [factors.solve(A @ np.ones((n, 3)), solver)
                         for solver in DENSE_SOLVERS if takes(solver, factors)]
        assert solutions and all(np.allclose(X, 1, rtol=1e-6) for X in solutions)


def takes(solver, factors):
    """True if a dense solver takes such factors, where they are."""
    return isinstance(factors, solver.accepts) and factors.space.name in solver.devices


# -- canaries can die --------------------------------------------------------------------------------------------------

def word(array, at):
    """The number at place ``at`` of a contiguous array, which may lie outside of it."""
    return ctypes.c_double.from_address(array.ctypes.data + 8 * at)


def writes_behind(x):
    word(x, x.size).value = 1


def writes_before(x):
    word(x, -1).value = 1


def writes_behind_one_of_several(state):
    writes_behind(state[1])


def reads_behind(x, y):
    y[0] = word(x, x.size).value


def adds(x, y):
    y += x


class Kernel:
    """A function that the canaries take for a kernel."""

    def __init__(self, function):
        self.function, self.name, self.__self__ = function, function.__name__, self

    def __call__(self, *arguments):
        self.function(*arguments)


@pytest.fixture
def kernels(monkeypatch):
    """Kernels that leave their arrays, and one that does not."""
    made = SimpleNamespace(**{function.__name__: Kernel(function) for function in (
        writes_behind, writes_before, writes_behind_one_of_several, reads_behind, adds)})
    monkeypatch.setitem(library.files, ("tests", "wrong"), made)
    return made


@pytest.mark.parametrize("side", ["behind", "before"])
def test_what_is_written_outside_is_found(kernels, side):
    whole, name = np.zeros(9), f"writes_{side}"
    with guarded_kernels(), pytest.raises(Overrun, match=f"{name} wrote {side} its float64.7."):
        getattr(kernels, name)(whole[1:8])       # within NumPy's memory, so that nothing breaks without guards
    assert whole[0] == whole[8] == 0
    getattr(kernels, name)(whole[1:8])
    assert whole[0] + whole[8] == 1              # and no guards are left


def test_what_is_written_behind_a_record_is_found(kernels):
    record = np.zeros(9), np.zeros(9)[1:8]
    with guarded_kernels(), pytest.raises(Overrun, match="behind its float64.7."):
        kernels.writes_behind_one_of_several(record)


def test_what_is_read_outside_is_no_number(kernels):
    whole, out = np.zeros(9), np.zeros(1)
    with guarded_kernels():
        kernels.reads_behind(whole[1:8], out)
    assert np.isnan(out[0])


def test_arrays_that_share_memory_share_it_between_guards(kernels):
    whole = np.arange(8.0)
    with guarded_kernels() as called:
        kernels.adds(whole[:6], whole[:6])
        kernels.adds(whole[::2], whole[::2])
    assert (whole == [0, 2, 8, 6, 16, 10, 12, 7]).all() and called == {"adds"}


@pytest.mark.gpu
def test_what_is_written_outside_is_found_on_a_gpu():
    cupy = pytest.importorskip("cupy")
    for at in (-1, 7):
        with pytest.raises(Overrun, match="on the GPU, at byte"), guarded_allocations(cupy):
            x = cupy.zeros(7)
            cupy.RawKernel(r'extern "C" __global__ void write(double* x, int at) { x[at] = 1; }', "write")(
                (1,), (1,), (x, np.int32(at)))
    with pytest.raises(Overrun, match="in pinned memory"), guarded_allocations(cupy):
        held = cupy.cuda.alloc_pinned_memory(56)
        np.frombuffer(held, np.float64, 8)[7] = 1
