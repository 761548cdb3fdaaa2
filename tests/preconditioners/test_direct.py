"""The direct solver's factors: their order and pivots, new values, adjoints, refusals, and what happens where small pivots fail."""
from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import of_type, rng
from tests.support.during import during
from tests.conftest import space_or_skip

import swell
from swell import dense, gallery
from swell.bench import families
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix
from swell.orderings.minimum_degree import eliminate, factorisation_cost
from swell.preconditioners import direct, superlu_factors


def csr(A):
    A = sp.csr_matrix(A)
    A.sum_duplicates()
    return CSRMatrix.from_scipy(A, make_space("cpu"))


def rows_shuffled(A):
    return sp.csr_array(A)[rng().permutation(A.shape[0])]


def circuit(n=300):
    """Nodes and voltage sources between them: a zero on the diagonal for each source."""
    L = gallery.p1_laplacian(n) + sp.eye_array(n)
    B = sp.eye_array(n, n // 6, k=-n // 3)
    return sp.block_array([[L, B], [B.T, None]]).tocsr()


SYSTEMS = {"grid": lambda: gallery.poisson2d(20), "convection": lambda: gallery.convection_diffusion((15, 15), 5.0),
           "helmholtz": lambda: gallery.helmholtz((12, 12)), "saddle point": lambda: gallery.saddle_point(9),
           "circuit": circuit, "control": lambda: families.optimal_control(500), "rows shuffled": lambda: rows_shuffled(gallery.poisson2d(15)),
           "triangular": lambda: sp.tril(gallery.poisson2d(12)).tocsr(), "1 x 1": lambda: sp.csr_array([[3.0]])}


@pytest.mark.parametrize("ordering", direct.ORDERINGS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_it_solves_in_a_step_or_two(dtype, ordering):
    for name in SYSTEMS:
        with during(name=name):
            A = of_type(SYSTEMS[name](), dtype)
            x = rng().standard_normal(A.shape[0]).astype(dtype)
            tolerance = 1e-5 if dtype in ("float32", "complex64") else 1e-10
            r = swell.solve(A, A @ x, method=swell.Direct(ordering=ordering), rtol=tolerance)
            assert r.converged and r.iterations <= 2 and not r.notes


@pytest.mark.parametrize("ordering", ["minimum_degree", "colamd"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_the_inverse_and_its_adjoint(name, ordering):
    A = sp.csr_array(SYSTEMS[name]())
    M, x, y = direct.Direct(ordering=ordering).build(csr(A)), rng().standard_normal(A.shape[0]), rng().random(A.shape[0])
    x, out = x.astype(A.dtype), y.astype(A.dtype)
    M.apply(A @ x, out)
    assert np.allclose(out, x, atol=1e-8)
    M.apply(A @ x, out, 2, 1)
    assert np.allclose(out, 3 * x, atol=1e-8)
    M.apply_adjoint(A.conj().T @ x, out)
    assert np.allclose(out, x, atol=1e-8)


@pytest.mark.parametrize("name, exchanged", [("grid", False), ("helmholtz", False), ("saddle point", False),
                                             ("circuit", False), ("rows shuffled", True), ("control", True)])
def test_the_factors_are_as_large_as_foretold(name, exchanged):
    """SuperLU counts L's unit diagonal, and fills up some blocks. The count is for a symmetric pattern, which an
    exchange of rows destroys."""
    A = csr(SYSTEMS[name]())
    foretold = superlu_factors.eliminate_with_pivots(A)[0].cost.entries + A.shape[0]
    M = direct.Direct(package="superlu").build(A)
    assert (0.4 if exchanged else 0.95) * foretold <= M._made[1].nnz <= 1.1 * foretold
    assert ("SuperLU, minimum degree, rows exchanged and scaled, " in M.describe()) == exchanged


def triangular(n, exchanged, random):
    """A lower triangular matrix with entries all over, rows and columns permuted; alike unless ``exchanged``. Some
    pivots are weak."""
    rows, columns = random.integers(0, n, (2, 4 * n))
    below = columns < rows
    A = sp.coo_array((random.uniform(-1, 1, below.sum()), (rows[below], columns[below])), shape=(n, n)).tocsr()
    A = (A + sp.diags_array(np.where(np.arange(n) % 400 == 7, 1e-4, 3.0))).tocsr()
    order = random.permutation(n)
    return A[random.permutation(n) if exchanged else order][:, order].tocsr()


@pytest.mark.parametrize("exchanged", [False, True])
def test_a_permuted_triangular_matrix_has_no_fill(exchanged):
    A = triangular(2000, exchanged, rng())
    M, b = direct.Direct().build(csr(A)), rng().standard_normal(2000)
    assert superlu_factors.eliminate_with_pivots(csr(A))[0].cost.entries == A.nnz == M._made[1].nnz - 2000
    for solver in swell.prepare(A, method="direct"), swell.prepare(A):
        for values in (A, 2 * A):
            solver.update(values)
            x = solver.solve(b).x
            floor = np.finfo(float).eps * (abs(values) @ abs(x) + abs(b))
            assert (abs(b - values @ x) <= 20 * floor).all()
    A.data[A.indptr[5]] = 0
    A[7, :] = 0
    with pytest.raises(direct.FactorisationError, match="singular"):
        direct.Direct().build(csr(A))


def test_columns_of_any_scale_leave_the_order_as_it_is():
    """D A D of a symmetric A: the largest entries of rows are off the diagonal, and yet no row moves."""
    A = gallery.poisson2d(30)
    D = sp.diags_array(10.0 ** rng().uniform(-4, 4, A.shape[0]))
    M = direct.Direct(package="superlu").build(csr(D @ A @ D))
    assert np.array_equal(M._made[0].rows.order, M._made[0].columns.order)
    assert M._made[1].nnz <= 1.1 * (factorisation_cost(csr(A)).entries + A.shape[0])


def fluxes_and_cells(m, rounding):
    """Mixed elements on m × m cells with a wall all round but for one outlet: a diagonal mass matrix with ``rounding``
    between fluxes of a cell, where exact integrals are zero."""
    D = sp.diags_array([np.ones(m), -np.ones(m - 1)], offsets=[0, -1]).tocsr()[:, :m - 1]
    B = sp.hstack([sp.kron(D, sp.eye_array(m)), sp.kron(sp.eye_array(m), D), sp.eye_array(m * m, 1)]).tocsr()
    shared = (abs(B).T @ abs(B)).tocsr()
    shared.setdiag(0)
    shared.eliminate_zeros()
    return sp.block_array([[sp.eye_array(B.shape[1]) + rounding * shared, B.T], [B, None]]).tocsr()


def test_entries_that_are_rounding_errors_stay_out_of_the_factors_beside_weak_pivots():
    A, noisy, full = (fluxes_and_cells(20, rounding) for rounding in (0, 1e-17, 1e-2))
    settings, x = direct.Direct(package="superlu"), rng().standard_normal(A.shape[0])
    assert settings.build(csr(noisy))._made[1].nnz == settings.build(csr(A))._made[1].nnz
    solver = swell.prepare(noisy, method=swell.Direct(package="superlu"))
    for values in (noisy, full, noisy):          # the pattern of `full` counts wholly
        result = solver.update(values).solve(values @ x)
        assert np.allclose(result.x, x) and result.converged and not result.notes


def test_entries_that_alone_make_a_matrix_regular_stay_in_the_factors():
    A = sp.csr_array([[0, 1.0, 1e-17], [1, 0, 1], [1e-17, 1, 0]])
    assert swell.solve(A, A @ np.ones(3), method=swell.Direct(package="superlu")).residual < 1e-15


def test_a_structurally_singular_matrix_is_named():
    A = sp.csr_array([[0.0, 1, 0], [0, 2, 0], [1, 1, 1]])
    with pytest.raises(direct.FactorisationError, match="1 of 3 rows can have no pivot of their own"):
        direct.Direct(ordering="minimum_degree").build(csr(A))


def test_new_values_keep_the_order_while_the_same_pivots_are_weak(monkeypatch):
    A, calls = sp.csr_array(gallery.convection_diffusion((15, 15), 5.0)), []
    analyse = superlu_factors.eliminate_with_pivots
    monkeypatch.setattr(superlu_factors, "eliminate_with_pivots", lambda *args, **named: calls.append(1) or analyse(*args, **named))
    solver, x = swell.prepare(A, method=swell.Direct(package="superlu")), rng().standard_normal(225)
    for values in (A, 3 * A, A + 0.1 * sp.diags_array(rng().random(225))):
        solver.update(values)
        assert np.allclose(solver.solve(values @ x).x, x)
    assert len(calls) == 1
    weak = A.copy()
    weak[7, 7] = 1e-9
    solver.update(weak)
    assert np.allclose(solver.solve(weak @ x).x, x) and len(calls) == 2


def test_fill_that_is_refused():
    A = csr(gallery.poisson3d(12))
    foretold = int(factorisation_cost(A).entries)
    for ordering in direct.ORDERINGS:
        direct.Direct(largest=foretold, ordering=ordering, package="superlu").build(A)
        with pytest.raises(direct.FactorisationError, match=f"more than {foretold - 1} entries"):
            direct.Direct(largest=foretold - 1, ordering=ordering, package="superlu").build(A)


def test_a_dense_row_is_not_refused():
    """n times the bandwidth would be a billion entries."""
    A = sp.diags_array(np.full(30_000, 4.0)).tolil()
    A[11, :] = A[:, 11] = 1e-3
    direct.Direct(largest=200_000).build(csr(A.tocsr()))


def tiny_pivots(size):
    """Blocks that are lost in rounding where their first pivot is tiny."""
    block = np.array([[size, 1, 2], [1, 1.1, 3], [2, 3.3, 1.7]])
    return sp.csr_array(sp.kron(sp.eye_array(40), block))


@pytest.mark.parametrize("size, products", [(1e-16, 3), (1e-30, 2)])
def test_factors_that_refinement_cannot_rescue_are_repeated(size, products, monkeypatch):
    """The second are singular to SuperLU, which says so before any step."""
    A, x = tiny_pivots(size), rng().standard_normal(120)
    monkeypatch.setattr(superlu_factors, "WEAK", 0.0)
    monkeypatch.setattr(superlu_factors, "eliminate_with_pivots", lambda A, *limits: (eliminate(A), None))
    monkeypatch.setattr(superlu_factors.Permuted, "__init__", in_given_order(superlu_factors.Permuted.__init__))
    solver = swell.prepare(A, method=swell.Direct(package="superlu"))
    r = solver.solve(A @ x)
    assert r.converged and np.allclose(r.x, x)
    assert any("repeated by COLAMD with full pivoting" in note for note in r.notes)
    assert (r.iterations, r.products, r.preconditioner_applications) == (1, products, products - 1)
    again = solver.solve(A @ x)
    assert again.converged and again.products == 2 and any("repeated" in note for note in again.notes)
    fine = tiny_pivots(5.0)
    solver.update(fine)
    r = solver.solve(fine @ x)
    assert r.converged and not r.notes and "minimum degree" in "\n".join(r.configuration)


def in_given_order(original):
    class Natural:
        def __init__(self, found):
            self.cost, self.size = found.cost, found.group.size

        def order(self):
            return np.arange(self.size)

    return lambda self, A, found, match: original(self, A, Natural(found), match)


def test_rounding_is_no_reason_to_factor_again():
    """Condition 1e12: what is left is all that can be had."""
    A = gallery.poisson1d(1000)
    r = swell.solve(A @ A, np.ones(1000), method="direct", rtol=1e-13)
    assert r.reason is swell.Reason.ATTAINABLE_ACCURACY and not any("repeated" in note for note in r.notes)


@pytest.mark.parametrize("ordering", direct.ORDERINGS)
def test_a_singular_matrix(ordering):
    A = gallery.poisson2d(6).tolil()
    A[5, :] = A[:, 5] = 0
    r = swell.solve(A.tocsr(), np.ones(36), method=swell.Direct(ordering=ordering))
    assert r.reason is swell.Reason.SINGULAR


def test_an_ordering_that_is_not_there():
    with pytest.raises(swell.InputError, match=r"ordering='mmd'\): expected None, minimum_degree, colamd"):
        swell.Direct(ordering="mmd")


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
def test_a_nearly_full_matrix_is_factored_as_a_full_one(dtype, device):
    """Also its adjoint, an update, and a singular one."""
    rng = np.random.default_rng(8)
    A = (rng.standard_normal((150, 150)) + (1j * rng.standard_normal((150, 150)) if dtype == np.complex128 else 0)
         ).astype(dtype)
    solver = swell.prepare(A, method="direct", rtol=1e-5, device=device)
    assert ("LAPACK" if device == "cpu" else "cuSOLVER") in "".join(solver.describe())
    x = rng.standard_normal(150).astype(dtype)
    assert np.allclose(solver.solve(A @ x).x, x, rtol=1e-2 if dtype == np.float32 else 1e-8, atol=1e-2)
    assert solver.update(2 * A).solve(A @ x).converged
    M = solver.M.operator
    with M.space.active():
        out = M.space.empty(150, dtype)
        M.apply_adjoint(M.space.from_host((2 * A).conj().T @ x), out)
        assert np.allclose(M.space.to_host(out), x, rtol=1e-2, atol=1e-2)
    A[3] = A[4]
    assert swell.solve(A, x, method="direct", device=device).reason.name == "SINGULAR"


def zeros_on_the_diagonal(n, seed=9):
    """A well-conditioned matrix whose rows are exchanged: a solver without pivots cannot start."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=4 / n, rng=rng, format="csr") + 3 * sp.eye_array(n)
    return A.tocsr()[rng.permutation(n)], rng.standard_normal(n)


@pytest.mark.gpu
def test_small_matrices_are_factored_as_full_ones_on_a_gpu():
    """Without cuDSS; zeros on the diagonal do no harm."""
    A, x = zeros_on_the_diagonal(700)
    space_or_skip("cuda")
    r = swell.solve(A, A @ x, method="direct", device="cuda", rtol=1e-10)
    assert r.converged and np.allclose(r.x, x) and r.iterations <= 2
    r = swell.solve(A, A @ x, device="cuda", rtol=1e-10)
    assert r.converged and r.method == "direct"


@pytest.mark.gpu
class TestCuDSS:
    """What the contracts ask of operators, which there get cuSOLVER's factors."""

    @pytest.mark.parametrize("dtype", [np.float64, np.complex128])
    def test_zeros_on_the_diagonal(self, dtype, cudss):
        space_or_skip("cuda")
        A, x = zeros_on_the_diagonal(700)
        A, x = A.astype(dtype), x.astype(dtype)
        solver = swell.prepare(A, method="direct", device="cuda", rtol=1e-10)
        assert "cuDSS" in "".join(solver.describe())
        r = solver.solve(A @ x)
        assert r.converged and np.allclose(r.x, x)

    def test_an_update_is_a_fresh_build(self, cudss):
        space = space_or_skip("cuda")
        A = gallery.convection_diffusion((20, 20), (1.0, 0.5))
        with space.active():
            M, out = direct.Direct().build(CSRMatrix.from_scipy(A, space)), space.empty(400, float)
            M.update(CSRMatrix.from_scipy(2 * A, space))
            M.apply(space.from_host(A @ np.ones(400)), out, -2, 0)
            assert np.allclose(space.to_host(out), -1)
            M.apply(space.from_host(A @ np.ones(400)), out, 2, 3)
            assert np.allclose(space.to_host(out), -2)

    def test_copies_solve_from_threads(self, cudss):
        space_or_skip("cuda")
        A = gallery.poisson2d(30)
        solver = swell.prepare(A, method="direct", device="cuda")
        copies = [solver.copy() for _ in range(3)]
        x = np.random.default_rng(1).standard_normal((900, 3))
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(lambda k: copies[k].solve(A @ x[:, k]), range(3)))
        assert all(r.converged and np.allclose(r.x, x[:, k]) for k, r in enumerate(found))


# -- dense decomposers by name -----------------------------------------------------------------------------------------

DENSE = ["getrf", "pcm", "icm", "gem", "cm", "icm(x=8)", "pcm(x=8, order=F)", "direct(dense_lu=icm(x=8), dense_solver=is)",
         "direct(dense_lu=getrf, dense_solver=getrs)", "direct(dense_lu=gem, dense_solver=ss)"]


def full_matrix(n=40, kind="float64"):
    random = np.random.default_rng(0)
    A = random.standard_normal((n, n)) + (1j * random.standard_normal((n, n)) if np.dtype(kind).kind == "c" else 0)
    return A.astype(kind)


@pytest.mark.parametrize("method", DENSE)
def test_a_decomposer_is_a_method(method):
    A, B = full_matrix(), np.random.default_rng(1).standard_normal((40, 3))
    solver = swell.prepare(A, method=method)
    for b in (B[:, 0], B):
        r = solver.solve(b)
        assert r.converged and abs(A @ r.x - b).max() < 1e-10
    r = solver.solve(B[:, 1], adjoint=True)
    assert r.converged and abs(A.T @ r.x - B[:, 1]).max() < 1e-10
    solver.update(2 * A)
    assert abs(2 * A @ solver.solve(B[:, 2]).x - B[:, 2]).max() < 1e-10


@pytest.mark.parametrize("kind", ["float32", "complex128"])
def test_a_decomposer_is_a_method_in_every_type_and_for_sparse_matrices(kind):
    A = full_matrix(30, kind)
    rtol = {"float32": 1e-4, "complex128": 1e-10}[kind]
    assert swell.solve(A, np.ones(30, kind), method="pcm(x=8)", rtol=rtol).converged
    P = gallery.poisson2d(8).astype(kind)
    assert swell.solve(P, np.ones(64, kind), method=dense.PCM(x=8), rtol=rtol).converged


def test_loose_factors_are_refined_and_useless_ones_refused():
    A = full_matrix()
    r = swell.solve(A, np.ones(40), method="icm(x=8, tolerance=1e-3, pivoting=full)")
    assert r.converged and r.iterations > 1 and abs(A @ r.x - 1).max() < 1e-6
    np.fill_diagonal(A, 1e-14)
    r = swell.solve(A, np.ones(40), method="pcm(pivoting=none)")
    assert not r.converged and "L U misses P A" in str(r)


@pytest.mark.parametrize("tolerance", ["1e-3", "0.1"])
def test_a_solver_that_stops_by_a_tolerance(tolerance):
    """Its tolerance is absolute, and residuals become small: refinement goes on nevertheless. As a preconditioner it is
    no fixed linear map."""
    A = gallery.convection_diffusion((12, 12), 20.0, "upwind").tocsr()
    A, b = A / abs(A).max(), np.linspace(0, 1, 144)
    text = f"direct(dense_lu=pcm(x=8), dense_solver=is(tolerance={tolerance}))"
    for r in (swell.solve(A, b, method=text, rtol=1e-12), swell.solve(A, b, method="gmres", precond=text, rtol=1e-12)):
        assert r.converged and np.linalg.norm(b - A @ r.x) <= 1.01e-12 * np.linalg.norm(b)
    assert "FGMRES" in str(r)


@pytest.mark.parametrize("method, words", [
    ("gertf", "did you mean 'getrf'.*icm, getrf"), ("icm(y=3)", "ICM has no setting 'y'"),
    ("direct(dense_solver=is)", "has no effect without a decomposer"),
    ("direct(dense_lu=icm, ordering=colamd)", "has no effect with dense_lu='icm'"),
    ("direct(dense_lu=pcm, dense_solver=getrs)", "getrs takes factors with the unit diagonal in L"),
    ("direct(dense_lu=getrf, dense_solver=none)", "expected a solver, such as 'trsm'"),
    (swell.dense.IS(), "expected one of cg, .*, getrf, or one of their settings objects")])
def test_dense_methods_that_cannot_be(method, words):
    with pytest.raises(swell.InputError, match=words):
        swell.solve(full_matrix(), np.ones(40), method=method)


def test_singular_matrices_end_a_dense_method():
    A = full_matrix()
    A[:, 7] = 0
    r = swell.solve(A, np.ones(40), method="getrf")
    assert not r.converged and "column 7" in str(r)


LIMITED = """
import resource, numpy as np, swell
A = swell.gallery.poisson3d(30)
swell.solve(swell.gallery.poisson3d(4), np.ones(64), method="direct")          # compiled before the limit
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (60 << 20),) * 2)
try:
    swell.solve(A, np.ones(27000), method="direct")
except swell.OutOfMemory as error:
    print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux tells how many addresses a process has")
def test_factors_that_do_not_fit_are_refused_before_they_are_begun():
    """SuperLU would write to the terminal, and cannot be interrupted."""
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True)
    assert "entries of L and U needs about" in done.stdout and "MemType" not in done.stderr + done.stdout


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("below, above", [(1, 1), (3, 1), (0, 2), (5, 0)])
def test_a_band_is_factored_by_lapack(below, above, dtype):
    """Zeros on the diagonal do no harm; so do updates, adjoints and several columns."""
    n, random = 300, np.random.default_rng(2)
    A = sp.diags_array([random.uniform(0.1, 0.2, n) + 3 * (k == 0) for k in range(-below, above + 1)],
                       offsets=list(range(-below, above + 1)), shape=(n, n)).tocsr()
    if below and above:
        A[4, 4] = 0
    A = A.astype(dtype) * (1 + 1j if np.dtype(dtype).kind == "c" else 1)
    solver, x = swell.prepare(A, method="direct"), random.standard_normal((n, 2)).astype(dtype)
    assert f"LAPACK on a band, {below} below the diagonal and {above} above" in "".join(solver.describe())
    for values in (A, 3 * A):
        solver.update(values)
        r = solver.solve(values @ x)
        assert r.converged and np.allclose(values @ r.x, values @ x, rtol=1e-3, atol=1e-3)
    out = np.zeros(n, A.dtype)
    solver.M.operator.apply_adjoint(3 * (A.conj().T @ x[:, 0]), out)
    assert np.allclose(A.conj().T @ out, A.conj().T @ x[:, 0], rtol=1e-2, atol=1e-2)
    A.data[A.indptr[7]:A.indptr[8]] = 0
    assert solver.update(A).solve(x[:, 0]).reason is swell.Reason.SINGULAR


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("kind", ["definite", "indefinite", "unsymmetric"])
def test_a_small_matrix_is_factored_by_a_band_in_another_order(kind, dtype, monkeypatch):
    """A grid with its rows shuffled has a narrow band in reverse Cuthill–McKee's order; definite ones have Cholesky
    factors, until new values are not definite."""
    random = np.random.default_rng(2)
    A = rows_and_columns_shuffled(gallery.convection_diffusion((12, 20), 3.0) if kind == "unsymmetric" else
                                  gallery.poisson2d(16), random)
    n = A.shape[0]
    A = sp.csr_array(A - (kind == "indefinite") * 2.5 * sp.eye_array(n)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        skew = sp.triu(A, 1) * 0.1j
        A = sp.csr_array(A + skew + skew.conj().T)
    M, x = direct.Direct().build(csr(A)), random.standard_normal(n).astype(dtype)
    assert "reverse Cuthill–McKee" in M.describe() and ("Cholesky" in M.describe()) == (kind == "definite")
    for values in (A, 3 * A, A - 10 * sp.eye_array(n, dtype=dtype), A):
        M.update(csr(values))
        for image, apply in ((values, M.apply), (values.conj().T, M.apply_adjoint)):
            out = np.zeros(n, dtype)
            apply(image @ x, out)
            assert np.allclose(out, x, atol=1e-3 if dtype == np.float32 else 1e-9)
    wide = csr(gallery.poisson3d(10))            # an order is sought once
    assert direct.narrow_band(wide) is None and wide.band is False
    monkeypatch.setattr("swell.preconditioners.banded_factors.reverse_order", None)
    assert direct.narrow_band(wide) is None
    assert direct.narrow_band(csr(gallery.poisson2d(120))) is direct.narrow_band(csr(gallery.poisson3d(13))) is None


def rows_and_columns_shuffled(A, random):
    order = random.permutation(A.shape[0])
    return sp.csr_array(A)[order][:, order].tocsr()


@pytest.mark.parametrize("module, library, word", [(False, False, "nvmath-python is not installed"),
                                                   (True, False, "cuDSS's library was not found"), (True, True, None)])
def test_what_cudss_needs_is_named(module, library, word, monkeypatch):
    """nvmath-python alone is not enough: the advisor then has no direct solver, and the error says what is missing."""
    from swell.preconditioners import direct
    monkeypatch.setattr(direct.importlib.util, "find_spec", lambda name: object() if module else None)
    monkeypatch.setattr(direct, "_libraries", lambda pattern: ["libcudss.so.0"] if library else [])
    monkeypatch.setattr(direct, "_loads", lambda name: False)
    sentence = direct.missing.__wrapped__()
    assert sentence is None if word is None else word in sentence and "pip install 'swell[cuda13]'" in sentence
