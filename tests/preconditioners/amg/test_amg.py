"""Algebraic multigrid against a plain version of its formulas, and what it promises: iterations, definiteness, updates."""
from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import flat_bilinear, real_matrix
from tests.conftest import space_or_skip
from tests.support.interpolation import plain_extended
from hypothesis import given, settings
from hypothesis import strategies as st

import swell
from swell import gallery
from swell.core.library import native_kernels
from swell.formats.csr import CSRMatrix
from swell.preconditioners.amg.interpolation import interpolation, reinterpolate
from swell.preconditioners.amg.pmis import coarse_numbers, pmis
from swell.preconditioners.amg.slots import State
from swell.preconditioners.amg.smoother import steps
from swell.preconditioners.amg.strength import positive_rows, strong_links, with_neighbours

CPU = space_or_skip("cpu")
SYSTEMS = {
    "poisson2d": lambda: gallery.poisson2d(30),
    "poisson3d": lambda: gallery.poisson3d(10),
    "neumann": lambda: gallery.neumann((25, 20)),
    "anisotropic": lambda: gallery.anisotropic2d(30, 1e-3),
    "jumps": lambda: gallery.jumping_diffusion((9, 9, 9)),
    "triangles": lambda: gallery.p1_laplacian(900),
    "flat": lambda: flat_bilinear(30, 20, 10),
}


def m_matrix(n, seed):
    """A random symmetric M-matrix, some of whose rows sum to zero."""
    random = np.random.default_rng(seed)
    links = sp.random_array((n, n), density=min(1, 4 / n), rng=random)
    links = links + links.T
    links.setdiag(0)
    links.eliminate_zeros()
    extra = np.where(random.random(n) < 0.5, 0, random.random(n)) + 1e-3 * (random.random(n) < 0.1)
    A = sp.csr_array(sp.diags_array(links.sum(axis=1) + extra) - links)
    A.setdiag(np.maximum(A.diagonal(), 1e-2))
    A.sum_duplicates()
    return A


def ours(A):
    A = sp.csr_array(A).astype(float)
    A.sort_indices()
    return CSRMatrix.from_scipy(A, CPU)


def split(A, s):
    """(strong links, states, numbers) of a CSRMatrix."""
    strong = strong_links(A, s)
    state = pmis(A, strong, with_neighbours(A, positive_rows(A, s)))
    return strong, state, coarse_numbers(A, state)


def preconditioner(A, **named):
    return swell.AMG(**{"coarsest": 20, **named}).build(ours(A))


def dense(operator):
    """The operator's matrix, a column at a time."""
    n, columns = operator.shape[0], []
    for j in range(n):
        out = np.empty(n)
        operator.apply(np.eye(n)[j].copy(), out)
        columns.append(out)
    return np.array(columns).T


# -- each step against its formula -------------------------------------------------------------------------------------

def plain_strength(A, strength, most):
    strong = np.zeros(A.shape, bool)
    for i, row in enumerate(A):
        off, theta = np.where(np.arange(len(row)) == i, 0, -row), strength
        if strength is None and off.max(initial=0) > 0:
            theta = np.clip(2 * off[off < 0].sum() / -off[off > 0].sum(), 0.25, 0.5)
        if off.max(initial=0) > 0 and abs(row.sum()) <= most * row[i]:
            strong[i] = (off >= theta * off.max()) & (off > 0)
    return strong


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("theta, most", [(0.25, 0.9), (0.5, 1.0), (1.0, 0.3), (None, 0.9)])
def test_strength(name, theta, most):
    A = ours(SYSTEMS[name]())
    strong = strong_links(A, swell.AMG(strength=theta, max_row_sum=most))
    full = A.to_scipy().toarray()
    rows = A.rows()
    found = np.zeros(full.shape, bool)
    found[rows, A.indices] = strong
    assert (found == plain_strength(full, theta, most)).all()


@pytest.mark.parametrize("aspect", [1, 3, 15, 100, 1000])
def test_flat_bilinear_elements(aspect):
    """As few iterations as with the strength that suits them, 0.5; with 0.25 they are 8 to 200."""
    A = flat_bilinear(100, 100, aspect)
    b = A @ np.random.default_rng(0).random(A.shape[0])
    auto, half = (swell.solve(A, b, method="cg", precond=swell.AMG(strength=strength), device="cpu")
                  for strength in (None, 0.5))
    assert auto.converged and auto.iterations <= half.iterations + 2 <= 20


def test_a_matrix_without_positive_links_has_the_strength_of_hypre():
    for name in ("poisson3d", "anisotropic", "jumps"):
        A = ours(SYSTEMS[name]())
        assert (strong_links(A, swell.AMG()) == strong_links(A, swell.AMG(strength=0.25))).all()


def test_rows_whose_sums_cancel_have_the_larger_strength():
    """Rounding leaves nothing of the sum of the negative entries."""
    row = [1.0, 1e17, -1.0, -0.4]
    A = CSRMatrix.from_scipy(sp.csr_array((row, [0, 1, 2, 3], [0, 4, 4, 4, 4]), shape=(4, 4)), CPU)
    assert list(strong_links(A, swell.AMG(max_row_sum=1e18))) == [0, 0, 1, 0]


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("pmax", [1, 4, 16])
def test_extended_interpolation(name, pmax):
    A, s = ours(SYSTEMS[name]()), swell.AMG(pmax=pmax)
    strong, state, numbers = split(A, s)
    P = interpolation(A, A.data, strong, state, numbers, s)
    links = np.zeros(A.shape, bool)
    links[A.rows(), A.indices] = strong
    expected = plain_extended(A.to_scipy().toarray(), links, state, numbers, pmax)
    found = P.to_scipy().toarray()
    close = np.isclose(found, expected, rtol=1e-12, atol=1e-13)
    tied = ~close.all(axis=1)                    # equal weights: rounding decides which is kept
    assert tied.mean() < 0.2 and np.allclose(found.sum(axis=1), expected.sum(axis=1))
    assert P.row_lengths().max() <= pmax and P.to_scipy().has_sorted_indices


@given(n=st.integers(2, 60), seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=60)
def test_interpolation_of_random_m_matrices(n, seed):
    """Weights of an M-matrix lie in [0, 1]; rows that sum to zero interpolate constants."""
    A, s = ours(m_matrix(n, seed)), swell.AMG(max_row_sum=1.0)
    strong, state, numbers = split(A, s)
    for kind in ("extended", "direct"):
        P = interpolation(A, A.data, strong, state, numbers, swell.AMG(max_row_sum=1.0, interpolation=kind))
        assert (P.data >= 0).all() and np.isfinite(P.data).all() and (P.row_sums() <= 1 + 1e-12).all()


@pytest.mark.parametrize("kind", ["extended", "direct"])
@pytest.mark.parametrize("by", [1e-200, 1e-300, 1e200])
def test_weights_do_not_depend_on_the_scale_of_the_matrix(kind, by):
    s, found = swell.AMG(interpolation=kind), []
    for A in (ours(gallery.p1_laplacian(400)), ours(by * gallery.p1_laplacian(400))):
        strong, state, numbers = split(A, s)
        found.append(interpolation(A, A.data, strong, state, numbers, s).to_scipy().toarray())
    assert np.allclose(*found, rtol=1e-9)


def test_a_row_without_a_diagonal_is_not_interpolated():
    """Its coarse matrix may have one, where the matrix is not definite."""
    full = 2.0 * np.eye(8) - np.eye(8, k=1) - np.eye(8, k=-1)
    full[3] = full[:, 3] = 0
    full[3, 2] = full[2, 3] = -1
    full[3, 4] = full[4, 3] = 1
    A, s = ours(full), swell.AMG(interpolation="direct", max_row_sum=2.0)
    strong = strong_links(A, s)
    state = np.full(8, State.COARSE, np.uint8)
    state[3] = State.FINE
    numbers = coarse_numbers(A, state)
    P = interpolation(A, A.data, strong, state, numbers, s)
    assert np.isfinite(P.data).all() and np.isfinite(P.row_sums()).all()


def test_pmis_is_a_maximal_independent_set():
    for name in SYSTEMS:
        A, s = ours(SYSTEMS[name]()), swell.AMG(positive=0)
        strong, state, _ = split(A, s)
        rows, links = A.rows()[strong == 1], A.indices[strong == 1]
        coarse = state == State.COARSE
        mutual = np.isin(rows * A.shape[0] + links, links * A.shape[0] + rows)
        assert not (mutual & coarse[rows] & coarse[links]).any(), "two coarse rows that depend on each other"
        counts = np.bincount(links, minlength=A.shape[0])
        covered = np.zeros(A.shape[0], bool)
        covered[rows[coarse[links]]] = True
        fine = state == State.FINE
        assert (covered | (counts == 0))[fine].all(), "a fine row without a strong coarse row, on which others depend"
        assert set(np.unique(state)) <= {State.FINE, State.COARSE, State.ISOLATED}


def test_ties_are_broken_by_murmurhash():
    """The last step of MurmurHash3 in 32 bits: known values, and different ones for different rows."""
    assert [*hashed(0, 3), *hashed(2**31, 1)] == [0, 1364076727, 821347078, murmur(2**31)]
    assert len(set(hashed(0, 10_000))) == 10_000


def hashed(first, count):
    """The hashes of row numbers from ``first`` on."""
    keys = np.empty(count, np.int64)
    native_kernels("swell.preconditioners.amg", "aggregates").hashes(first, keys)
    return keys.tolist()


def murmur(h):
    h = (h ^ h >> 16) * 0x85EBCA6B % 2**32
    h = (h ^ h >> 13) * 0xC2B2AE35 % 2**32
    return h ^ h >> 16


def test_rows_with_many_dependents_become_coarse_first():
    """A key is the count before the hash: in a star of strong links the centre is the one coarse row."""
    star = sp.lil_array((40, 40))
    star.setdiag(1.0)
    star[0, 1:], star[1:, 0], star[0, 0] = -1, -1, 39
    _, state, _ = split(ours(star), swell.AMG(max_row_sum=2))
    assert state[0] == State.COARSE and (state[1:] == State.FINE).all()


def test_forced_rows_stay_with_their_neighbours():
    A, s = ours(gallery.p1_laplacian(40_000)), swell.AMG()
    marked = positive_rows(A, s)
    assert 0 < marked.sum() < 100
    _, state, _ = split(A, s)
    rows = A.rows()
    near = np.zeros(A.shape[0], bool)
    near[A.indices[marked[rows] == 1]] = True
    assert (state[near | (marked == 1)] == State.COARSE).all()
    assert not positive_rows(A, swell.AMG(positive=0)).size
    assert not positive_rows(ours(abs(gallery.poisson2d(30))), s).size, "positive entries everywhere: nothing is forced"


# -- the hierarchy -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", SYSTEMS)
def test_galerkin_products(name):
    h = preconditioner(SYSTEMS[name]()).hierarchy
    assert len(h.levels) >= 2
    for level in h.levels:
        A, P, R = (M.to_scipy() for M in (level.A, level.P, level.R))
        assert abs(R - P.T).max() == 0
        expected = P.T @ A @ P
        assert abs(level.RAP.C.to_scipy() - expected).max() <= 1e-13 * abs(expected).max()


def test_constants_are_kept_on_every_level():
    """The matrices of a Neumann problem annihilate them on all levels, and interpolation reproduces them."""
    h = preconditioner(gallery.neumann((40, 30))).hierarchy
    for level in h.levels:
        assert np.allclose(level.P.row_sums(), 1, rtol=1e-12)
    for A in h.matrices:
        assert abs(A.row_sums()).max() <= 1e-12 * A.norm_inf()


def test_every_level_of_an_m_matrix_is_definite():
    for seed in range(5):
        for A in preconditioner(m_matrix(300, seed), coarsest=5).hierarchy.matrices:
            full = A.to_scipy().toarray()
            assert np.linalg.eigvalsh((full + full.T) / 2)[0] > -1e-13 * abs(full).max()


SMALL = {
    "poisson2d": lambda: gallery.poisson2d(14),
    "poisson3d": lambda: gallery.poisson3d(6),
    "neumann": lambda: gallery.neumann((15, 13)),
    "anisotropic": lambda: gallery.anisotropic2d(15, 1e-3),
    "jumps": lambda: gallery.jumping_diffusion((6, 6, 6)),
    "triangles": lambda: gallery.p1_laplacian(200),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("options", [{}, {"degree": 2}, {"degree": 4}, {"smoother": "l1_jacobi"},
                                     {"smoother": "l1_jacobi", "degree": 3}, {"interpolation": "direct"}, {"levels": 2}],
                         ids=str)
def test_the_cycle_is_symmetric_and_positive(name, options):
    operator = preconditioner(SMALL[name](), dtype="float64", **options)
    assert len(operator.hierarchy.levels) >= (1 if "levels" in options else 2)
    M = dense(operator)
    assert abs(M - M.T).max() <= 1e-12 * abs(M).max()
    assert np.linalg.eigvalsh((M + M.T) / 2)[0] > 0


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_chebyshev_of_the_fourth_kind(degree):
    """With β = 1 the error polynomial p is W_k(1 − 2λ) / (2k + 1); with Lottes' weights the constant of the V-cycle's
    bound, sup λ p² / (1 − p²), is smaller."""
    angle = np.linspace(1e-3, np.pi, 500)
    eigenvalue = (1 - np.cos(angle)) / 2
    z, r, x, weighted = 0.0, 1.0, 0.0, 0.0
    for step, (a, b, beta) in enumerate(steps("chebyshev", degree)):
        r = r - eigenvalue * z if step else r
        z = a * z + b * r
        x, weighted = x + z, weighted + beta * z
    plain, best = ((eigenvalue * p**2 / (1 - p**2)).max() for p in (1 - eigenvalue * x, 1 - eigenvalue * weighted))
    assert best < plain
    fourth = np.sin((2 * degree + 1) * angle / 2) / np.sin(angle / 2) / (2 * degree + 1)
    assert np.allclose(1 - eigenvalue * x, fourth, atol=1e-12)


# -- what a user gets --------------------------------------------------------------------------------------------------

def iterations(A, options="", **named):
    b = A @ np.random.default_rng(1).random(A.shape[0])
    r = swell.solve(A, b, **{"method": "cg", "precond": f"amg{options}", "rtol": 1e-8, "device": "cpu", **named})
    assert r.converged and np.linalg.norm(b - A @ r.x) <= 1e-8 * np.linalg.norm(b)
    return r.iterations


def test_iterations_do_not_grow_with_n():
    """Within two over a factor of 16 in 2D and of 27 in 3D."""
    for counts in ([iterations(gallery.poisson2d(k)) for k in (64, 128, 256)],
                   [iterations(gallery.poisson3d(k)) for k in (16, 32, 48)],
                   [iterations(gallery.jumping_diffusion((k, k, k))) for k in (12, 24, 36)]):
        assert max(counts) <= min(counts) + 2 and max(counts) <= 12, counts


def test_anisotropy_and_jumps():
    assert max(iterations(gallery.anisotropic2d(150, e)) for e in (1, 0.1, 1e-2, 1e-3, 1e-4)) <= 30
    assert iterations(gallery.p1_laplacian(40_000)) <= 32


@pytest.mark.data
@pytest.mark.parametrize("name, most", [("foam_hump_p", 14), ("foam_motorBike_ldu", 19)])
def test_real_pressure_systems(name, most, data):
    """No more than two above what hypre's BoomerAMG takes with the same choices: 12 and 17."""
    assert iterations(real_matrix(data, name)) <= most


def test_single_precision_costs_no_iterations():
    for A in (gallery.poisson2d(120), gallery.jumping_diffusion((16, 16, 16))):
        assert abs(iterations(A) - iterations(A, "(dtype=float64)")) <= 1


def test_degrees_and_smoothers():
    A = gallery.poisson2d(100)
    first, second, plain = (iterations(A, o) for o in ("", "(degree=2)", "(smoother=l1_jacobi)"))
    assert second < first < plain
    assert iterations(A, "(interpolation=direct)") > first


def test_a_scaling_beside_it_has_a_note():
    A = gallery.jumping_diffusion((10, 10, 10))
    for scaling, notes in (("none", 0), ("jacobi", 1)):
        r = swell.solve(A, A @ np.ones(1000), method="cg", precond="amg", scaling=scaling, device="cpu")
        assert sum("may cost iterations: AMG takes its interpolation" in note for note in r.notes) == notes


def test_it_prints_its_levels():
    text = str(swell.prepare(gallery.poisson2d(60), method="cg", precond="amg", device="cpu").M)
    assert "algebraic multigrid" in text and "operator complexity" in text


def test_other_methods_take_it():
    A = gallery.poisson2d(60)
    for method in ("gmres", "bicgstab", "single_reduction_cg", "idrs"):
        assert iterations(A, method=method) <= 14


def test_tiny_and_huge_right_hand_sides():
    """The cycle in single precision sees vectors of norm about one."""
    A = gallery.poisson2d(50)
    b = np.random.default_rng(1).random(2500)
    counts = {swell.solve(A, s * b, method="cg", precond="amg", device="cpu").iterations for s in (1, 1e-130, 1e130)}
    assert len(counts) == 1


@pytest.mark.parametrize("method", ["gmres", "fgmres", "qmr", "bicgstab", "idrs"])
def test_tiny_and_huge_right_hand_sides_of_other_methods(method):
    """Methods that apply M to vectors of norm 1 and to some of the residual's: both fit single precision."""
    A = gallery.poisson2d(30)
    b = np.random.default_rng(1).random(900)
    results = [swell.solve(A, s * b, method=method, precond="amg(coarsest=50)", device="cpu") for s in (1, 1e-50, 1e50)]
    assert all(r.converged and r.iterations <= results[0].iterations + 2 for r in results)


@pytest.mark.parametrize("by", [1e140, 1e-140])
def test_tiny_and_huge_matrices(by):
    """The cycle in single precision sees balanced vectors of norm about one, whatever the scale of A, and of b too."""
    A = sp.csr_array(gallery.jumping_diffusion((9, 9, 9)))
    x = np.random.default_rng(1).random(729)
    s = swell.prepare(A, method="cg", precond="amg(coarsest=50)", device="cpu")
    count = s.solve(A @ x).iterations
    s.update(by * A)
    for b in (A @ x, np.sqrt(by) * (A @ x), (A @ x) / np.sqrt(by)):
        r = s.solve(b)
        assert r.converged and r.iterations == count


def test_an_update_with_the_same_values_changes_no_bit():
    A = ours(gallery.jumping_diffusion((10, 10, 10)))
    M, x = swell.AMG(coarsest=20).build(A), np.random.default_rng(2).random(1000)
    before, after = np.empty(1000), np.empty(1000)
    M.apply(x, before)
    M.update(A)
    M.apply(x, after)
    assert (before == after).all()


def test_an_update_keeps_patterns_and_follows_values():
    A = gallery.poisson3d(14)
    random = np.random.default_rng(3)
    left = 1 + 0.3 * random.random(A.shape[0])
    B = sp.csr_array(sp.diags_array(left) @ A @ sp.diags_array(left))
    B.sort_indices()
    s = swell.prepare(A, method="cg", precond="amg(coarsest=50)", rtol=1e-8, device="cpu")
    b = random.random(A.shape[0])
    s.solve(b)
    rows = [M.shape[0] for M in s.M.hierarchy.matrices]
    s.update(B)
    r = s.solve(b)
    assert r.converged and r.iterations <= iterations(B, "(coarsest=50)") + 2
    assert rows == [M.shape[0] for M in s.M.hierarchy.matrices]


def test_update_in_reinterpolation_equals_interpolation():
    A, s = ours(gallery.p1_laplacian(2000)), swell.AMG()
    strong, state, numbers = split(A, s)
    P = interpolation(A, A.data, strong, state, numbers, s)
    before = P.data.copy()
    P.data.fill(np.nan)
    reinterpolate(A, A.data, strong, state, numbers, s, P)
    assert (P.data == before).all()


def test_setup_without_scipy_and_pyamg(monkeypatch):
    """Products and factors are swell's own."""
    from scipy.sparse import _sparsetools

    A = ours(gallery.poisson2d(60))
    monkeypatch.setitem(sys.modules, "pyamg", None)
    for name in ("csr_matmat", "csr_tocsc", "csr_plus_csr", "coo_tocsr"):
        monkeypatch.setattr(_sparsetools, name, None)
    monkeypatch.setattr(np.linalg, "inv", None)
    M = swell.AMG().build(A)
    M.update(A)
    out = np.empty(3600)
    M.apply(np.ones(3600), out)
    assert len(M.hierarchy.matrices) > 2 and np.isfinite(out).all()


# -- bad input ---------------------------------------------------------------------------------------------------------

def tried(A, **named):
    A = sp.csr_array(A)
    return swell.solve(A, A @ np.ones(A.shape[0]), **{"method": "cg", "precond": "amg(coarsest=20)", "device": "cpu",
                                                     **named})


def test_no_couplings():
    r = tried(sp.diags_array(np.linspace(1, 9, 3000)))
    assert r.converged and any("no row has a strong link with strength=None" in note for note in r.notes)


def test_coarsening_that_stalls():
    """A row with a large positive entry keeps all its neighbours: here all rows."""
    star = sp.lil_array((3000, 3000))
    star.setdiag(1.0)
    star[0, 1:], star[1:, 0], star[0, 0] = -1e-3, -1e-3, 4
    star[0, 7] = star[7, 0] = 0.5
    r = tried(star)
    assert r.converged and any("3000 of 3000 rows would stay with strength=None" in note for note in r.notes)


def test_singular_coarsest_level():
    """Three problems without boundary values in one matrix: three zero eigenvalues."""
    r = tried(sp.block_diag([gallery.neumann((20, 20))] * 3))
    assert r.converged and r.iterations <= 14


def test_singular_parts_that_shrink_to_one_row():
    """What rounding leaves of such a row's diagonal entry is not inverted, nor its sign taken for indefiniteness."""
    parts = gallery.poisson2d(12), gallery.neumann((9, 9)), gallery.poisson3d(6), gallery.neumann((20,))
    A = sp.csr_array(sp.block_diag([s * part for s in (1, 1e-9, 1e9) for part in (*parts, 3 * sp.eye_array(40))]))
    b = A @ np.random.default_rng(0).standard_normal(A.shape[0])
    for options in ("coarsest=20", "coarsest=1", "coarsest=5, degree=2", "coarsest=40, dtype=float64"):
        for jacobi in (None, "jacobi"):
            r = swell.solve(A, b, method="cg", precond=f"amg({options})", scaling=jacobi, rtol=1e-8, device="cpu")
            assert r.converged and r.iterations <= 12, (options, jacobi, r.reason, r.iterations)


def test_rows_that_sum_to_nearly_zero():
    A = sp.csr_array(gallery.neumann((40, 40))) + sp.diags_array(np.full(1600, 1e-9))
    assert iterations(A, "(coarsest=20)") <= 12


@pytest.mark.parametrize("A, words", [
    (lambda P: -P, "least diagonal entry is -4.*negate A and b"),
    (lambda P: P - 0.5 * sp.eye_array(900), "positive definite matrix, and elimination on its coarsest"),
    (lambda P: P - sp.diags_array(P.diagonal() * (np.arange(900) == 3)), "1 diagonal entries are zero .the first in row 3"),
])
def test_matrices_that_are_not_definite(A, words):
    import re
    r = tried(A(sp.csr_array(gallery.poisson2d(30))), precond="amg(coarsest=400)")
    assert not r.converged and r.reason is swell.Reason.NOT_FACTORED
    assert any(re.search(words, note) for note in r.notes), r.notes


def test_refusals():
    P = gallery.poisson2d(10)
    for wrong in ("strength=2", "strength=best", "pmax=0", "interpolation='best'", "degree=9", "dtype='float16'", "positive=-1",
                  "max_row_sum='a'"):
        with pytest.raises(swell.InputError, match=wrong.split("=")[0]):
            tried(P, precond=f"amg({wrong})")


def test_a_hierarchy_that_would_not_fit(monkeypatch):
    monkeypatch.setattr(type(CPU), "memory", lambda self: (10**6, 10**9))
    with pytest.raises(swell.OutOfMemory, match="algebraic multigrid for .* entries needs about"):
        swell.AMG().build(ours(gallery.poisson2d(100)))


def test_small_matrices():
    for n in (1, 2, 3):
        assert tried(gallery.poisson1d(n)).converged
    r = swell.solve(sp.csr_array((0, 0)), np.zeros(0), method="cg", precond="amg", device="cpu")
    assert r.converged and r.x.size == 0
