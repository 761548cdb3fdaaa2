"""``swell.solve_batch``: every method with every preconditioner beside dense solutions, and where arrays come from."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.conftest import DTYPES, space_or_skip
from tests.support.during import during

import swell
from swell.batch.settings import named

PRECONDS = None, "jacobi", "block_jacobi(block=3)", "ilu0"
METHODS = "cg", "bicgstab", "gmres(restart=9)"
TOLERANCE = {"f": 2e-5, "F": 2e-5, "d": 1e-10, "D": 1e-10}


def systems(symmetric, dtype, batch=5, columns=0, cells=(4, 5), seed=1):
    """A pattern, values and right-hand sides; diagonally dominant, Hermitian and definite if ``symmetric``."""
    draw = np.random.default_rng(seed)
    A = sp.csr_array(swell.gallery.convection_diffusion(cells))
    n, dtype = A.shape[0], np.dtype(dtype)
    values = []
    for _ in range(batch):
        S = A.copy()
        S.data = draw.uniform(-1, 1, A.nnz) + (1j * draw.uniform(-1, 1, A.nnz) if dtype.kind == "c" else 0)
        if symmetric:
            S = sp.csr_array(S + S.conj().T)
        S.setdiag(6 + (0 if symmetric else 1) * draw.uniform(0, 2, n))
        values.append(S.data)
    shape = (batch, n, columns) if columns else (batch, n)
    B = draw.standard_normal(shape) + (1j * draw.standard_normal(shape) if dtype.kind == "c" else 0)
    return A, np.array(values).astype(dtype), B.astype(dtype)


def dense(A, values):
    """The matrices of a batch."""
    return np.array([sp.csr_array((v, A.indices, A.indptr), shape=A.shape).toarray() for v in values])


def solution(A, values, B):
    """The solutions by LAPACK, in double precision."""
    wide = np.complex128 if values.dtype.kind == "c" or B.dtype.kind == "c" else np.float64
    columns = B if B.ndim == 3 else B[..., None]
    return np.linalg.solve(dense(A, values).astype(wide), columns.astype(wide)).reshape(B.shape)


def check(r, A, values, B, rtol, exact=None):
    """All converged, as their true residuals confirm, and x is the solution."""
    exact = solution(A, values, B) if exact is None else exact
    x, shape = np.asarray(r.x), B.shape[:1] + B.shape[2:]
    assert r.all_converged, str(r)
    assert x.shape == B.shape and x.dtype == np.result_type(values, B)
    assert r.converged.shape == r.iterations.shape == r.residual.shape == r.reasons.shape == shape
    left = B - np.einsum("sij,sj...->si...", dense(A, values), x)
    residual = np.linalg.norm(left, axis=1) / np.linalg.norm(B, axis=1)
    assert (residual <= 1.01 * rtol + 1e-15).all() or values.dtype.char in "fF" and (residual <= 2 * rtol).all()
    assert np.allclose(r.residual, residual, rtol=1e-2, atol=1e-5 if values.dtype.char in "fF" else 1e-14)
    assert abs(x - exact).max() <= 20 * rtol * abs(exact).max()
    assert (r.backward_error <= rtol).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
def test_every_preconditioner(method, dtype, device):
    for columns in (0, 3):
        A, values, B = systems(method == "cg", dtype, columns=columns)
        rtol, exact, counts = TOLERANCE[values.dtype.char], solution(A, values, B), {}
        for precond in PRECONDS:
            with during(precond=precond, columns=columns):
                r = swell.solve_batch(A, values, B, method=method, precond=precond, rtol=rtol, device=device)
                check(r, A, values, B, rtol, exact)
                assert r.method == method.partition("(")[0]
                assert r.precond == {None: "none", "ilu0": "ilu"}.get(precond, (precond or "").partition("(")[0])
                assert (r.iterations >= 1).all()
                counts[precond] = r.iterations.mean()
        assert counts["ilu0"] < counts[None]
        one = swell.solve_batch(A, values, B[..., :1], method=method, rtol=rtol, device=device) if columns else None
        assert one is None or (one.x == swell.solve_batch(A, values, B[..., 0], method=method, rtol=rtol,
                                                          device=device).x[..., None]).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_lu_of_every_size(dtype, device):
    """In registers and in shared memory, and across the widths of the elimination."""
    draw = np.random.default_rng(4)
    for n, columns in ((1, 0), (2, 33), (7, 0), (8, 1), (9, 3), (31, 0), (33, 3), (65, 0), (66, 2)):
        with during(n=n, columns=columns):
            A = sp.csr_array(np.ones((n, n)))
            values = draw.standard_normal((4, n * n)).astype(dtype)
            if dtype[0] == "c":
                values += 1j * draw.standard_normal((4, n * n))
            values[:, ::n + 1] *= 1e-9                           # wrong without pivoting
            B = draw.standard_normal((4, n, columns) if columns else (4, n)).astype(dtype)
            rtol = 1e-3 if dtype in ("float32", "complex64") else 1e-10
            r, exact = swell.solve_batch(A, values, B, method="lu", rtol=rtol, device=device), solution(A, values, B)
            assert r.all_converged, str(r)
            assert abs(r.x - exact).max() <= 10 * rtol * abs(exact).max()


def test_lu_refines_where_the_tolerance_asks(device):
    """Wilkinson's matrix, whose elements double in each step: only a refined solution meets the tolerance."""
    n = 40
    M = np.eye(n) - np.tril(np.ones((n, n)), -1)
    M[:, -1] = 1
    M *= np.linspace(1, 0.9, n)[:, None]                         # row j is the pivot of step j
    b = np.random.default_rng(6).standard_normal((1, n))
    A, values = sp.csr_array(M), M[M != 0][None]
    r = swell.solve_batch(A, values, b, method="lu", rtol=1e-7, device=device)
    assert r.all_converged and r.iterations[0] == 2
    assert swell.solve_batch(A, values, b, method="lu", rtol=1e-2, device=device).iterations[0] == 1


def test_starting_vectors(device):
    A, values, B = systems(True, "float64")
    X = solution(A, values, B)
    for method in METHODS:
        with during(method=method):
            r = swell.solve_batch(A, values, B, method=method, x0=X, device=device)
            assert r.all_converged and not r.iterations.any() and (r.x == X).all()
            r = swell.solve_batch(A, values, B, method=method, x0=X + 1e-6, device=device)
            cold = swell.solve_batch(A, values, B, method=method, device=device)
            assert r.all_converged and (r.iterations < cold.iterations).all()


def test_the_order_of_values_is_the_users(device):
    """CSR with columns in any order, CSC, COO, BSR and dense: values in the order of data."""
    A, values, B = systems(False, "float64")
    X, places = solution(A, values, B), np.random.default_rng(2)
    matrices = dense(A, values)
    unsorted = A.copy()
    for i in range(A.shape[0]):
        row = slice(A.indptr[i], A.indptr[i + 1])
        unsorted.indices[row] = places.permutation(A.indices[row])
    unsorted.has_sorted_indices = False
    coo = A.tocoo()
    shuffled = places.permutation(A.nnz)
    coo = sp.coo_array((coo.data[shuffled], (coo.row[shuffled], coo.col[shuffled])), shape=A.shape)
    bsr = sp.bsr_array(A, blocksize=(2, 2))
    given = {"csr": (unsorted, unsorted.indices, np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))),
             "csc": (A.tocsc(), np.repeat(np.arange(A.shape[0]), np.diff(A.tocsc().indptr)), A.tocsc().indices),
             "coo": (coo, coo.col, coo.row)}
    for name, (matrix, columns, rows) in given.items():
        with during(format=name):
            entries, stored = matrices[:, rows, columns], columns.copy()
            r = swell.solve_batch(matrix, entries, B, method="lu", device=device)
            assert np.allclose(r.x, X, rtol=1e-9)
            assert (columns == stored).all(), "the user's matrix is as it was"
    block_rows = np.repeat(np.arange(bsr.indptr.size - 1), np.diff(bsr.indptr))
    half = A.shape[0] // 2
    blocks = matrices.reshape(len(B), half, 2, half, 2)[:, block_rows, :, bsr.indices].swapaxes(0, 1).reshape(len(B), -1)
    full = dense(A, np.ones((1, A.nnz)))[0]
    for matrix, given in ((bsr, blocks), (full, values)):
        assert np.allclose(swell.solve_batch(matrix, given, B, method="lu", device=device).x, X, rtol=1e-9)


def test_prepared(device):
    A, values, B = systems(False, "float64")
    s = swell.prepare_batch(A, method="bicgstab", precond="ilu0", rtol=1e-11, device=device)
    with pytest.raises(swell.InputError, match="no values yet"):
        s.solve(B)
    changed = values.copy()
    s.update(changed)
    changed[:] = np.nan                                          # the solver has a copy
    check(s.solve(B), A, values, B, 1e-11)
    check(s.update(2 * values[:3]).solve(B[:3]), A, 2 * values[:3], B[:3], 1e-11)
    with pytest.raises(swell.InputError, match="expected"):
        s.update(values[:, 1:])
    check(s.solve(B[:3]), A, 2 * values[:3], B[:3], 1e-11)       # unchanged
    with pytest.raises(swell.InputError, match="dtype='complex128'"):
        s.solve(B[:3] * 1j)


def test_types_are_promoted(device):
    A, values, B = systems(False, "float64", batch=2)
    r = swell.solve_batch(A, values, B + 1j, device=device)
    assert r.dtype == "complex128" and np.allclose(r.x, solution(A, values, B + 1j))
    r = swell.solve_batch(A, values.astype("float32"), B, device=device)
    assert r.dtype == "float32" and r.x.dtype == np.float32
    assert swell.solve_batch(A, np.round(values * 10).astype(int), B, device=device).dtype == "float64"
    assert swell.solve_batch(A, values, B, dtype="float32", rtol=1e-4, device=device).dtype == "float32"


def test_lists_of_matrices(device):
    """Grouped by pattern; the results have the user's order."""
    matrices, rhs = [], []
    for seed, cells in enumerate([(4, 5), (3, 3), (4, 5), (2, 2), (3, 3), (4, 5)]):
        A, values, B = systems(False, "float64", 1, cells=cells, seed=seed)
        matrix = sp.csr_array((values[0], A.indices, A.indptr), shape=A.shape)
        matrices.append(matrix.tocsc() if seed == 4 else matrix.toarray() if seed == 3 else matrix)
        rhs.append(B[0])
    r = swell.solve_batch(matrices, B=rhs, rtol=1e-11, device=device)
    assert r.all_converged and len(r) == 6 and isinstance(r.x, list) and "3 patterns" in r.notes[0]
    for k, one in enumerate(r):
        M = matrices[k].toarray() if sp.issparse(matrices[k]) else matrices[k]
        assert np.allclose(M @ one.x, rhs[k], rtol=1e-9) and one.index == k
    dense = [matrices[3], np.asmatrix(matrices[3])]              # of one pattern
    assert swell.solve_batch(dense, B=rhs[3:4] * 2, device=device).all_converged
    same = swell.solve_batch([matrices[0], matrices[2]], B=np.array([rhs[0], rhs[2]]), device=device)
    assert isinstance(same.x, np.ndarray) and np.allclose(same.x[1], r.x[2])


def test_gri30(data, device):
    """Real systems of combustion, with condition numbers up to 1e15."""
    file = data / "matrices" / "batch_gri30.npz"
    if not file.exists():
        pytest.skip(f"{file} is not there")
    given = np.load(file)
    A = sp.csr_array((np.ones(given["indices"].size), given["indices"], given["indptr"]), shape=(54, 54))
    few = slice(None, None, 1 if device == "cpu" else 9)
    values, B = given["values"][few], given["b"][few]
    for method, precond in (("lu", None), ("bicgstab", "jacobi"), ("gmres", "jacobi")):
        with during(method=method):
            r = swell.solve_batch(A, values, B, method=method, precond=precond, rtol=1e-10, device=device)
            residual = np.linalg.norm(B - np.einsum("sij,sj->si", dense(A, values), r.x), axis=1)
            assert r.all_converged and (residual <= 1.01e-10 * np.linalg.norm(B, axis=1)).all()


@pytest.mark.gpu
def test_arrays_of_cupy_stay_there():
    space_or_skip("cuda")
    import cupy
    import cupyx.scipy.sparse
    A, values, B = systems(False, "float64")
    r = swell.solve_batch(A, cupy.asarray(values), cupy.asarray(B))
    assert isinstance(r.x, cupy.ndarray) and r.device == "cuda:0"
    assert np.allclose(r.x.get(), solution(A, values, B))
    there = cupyx.scipy.sparse.csr_matrix(tuple(map(cupy.asarray, (A.data, A.indices, A.indptr))), shape=A.shape)
    assert (swell.solve_batch(there, cupy.asarray(values), cupy.asarray(B)).x.get() == r.x.get()).all()
    host = swell.solve_batch(A, cupy.asarray(values), B)
    assert isinstance(host.x, np.ndarray) and (host.x == r.x.get()).all()


def test_tensors_of_torch():
    torch = pytest.importorskip("torch", reason="needs torch")
    A, values, B = systems(False, "float64")
    r = swell.solve_batch(A, torch.from_numpy(values), torch.from_numpy(B))
    assert isinstance(r.x, torch.Tensor) and np.allclose(r.x.numpy(), solution(A, values, B))


@pytest.mark.gpu
def test_launches_do_not_depend_on_the_size_of_a_batch():
    """Ten systems and ten thousand: the same kernels, whatever the method."""
    space_or_skip("cuda")
    A = sp.csr_array(swell.gallery.poisson2d(2))
    rng = np.random.default_rng(6)
    for method, expected in (("lu", 1), ("cg", 1), (None, 2)):
        counts = []
        for batch in (10, 10_000):
            values, B = np.tile(A.data, (batch, 1)), rng.standard_normal((batch, 4))
            r = swell.solve_batch(A, values, B, method=method, device="cuda")
            assert r.all_converged
            counts.append(r.launches)
        assert counts[0] == counts[1] and counts[0] >= expected, method


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["cg", "bicgstab", "gmres(restart=4)"])
def test_values_outside_the_chip_give_the_same(method, monkeypatch):
    """Systems whose values do not fit into shared memory read them where they are."""
    from swell.batch import placement, solver
    space = space_or_skip("cuda")
    A, values, B = systems(method == "cg", "float64")
    held = swell.solve_batch(A, values, B, method=method, precond="jacobi", device="cuda")
    assert placement.place(named(method, "jacobi"), A.shape[0], A.nnz, 1, "float64", space).held == 1

    def outside(choice, n, nnz, columns, dtype, space):
        return placement.Placement(choice.name, 2, 64, placement._shared(choice, n, nnz, dtype, False), 0)
    monkeypatch.setattr(solver, "place", outside)
    r = swell.solve_batch(A, values, B, method=method, precond="jacobi", device=space.device_name)
    assert np.allclose(r.x, held.x, rtol=1e-7) and r.all_converged
