"""Sparse approximate inverses of triangular factors, of points and blocks: against dense ones, guards, bad input; and
what inexact solves cost in iterations, on real systems."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.blocks import applied, blocked, built, csr, growing, near, singular_block, vector
from tests.support.cases import real_matrix, rng
from tests.support.during import during

import swell
from swell import gallery
from swell.core.errors import FactorisationError, OutOfMemory
from swell.core.registry import resolve
from swell.core.cpu import CpuSpace
from swell.core.devices import make_space
from swell.core.space import accumulator
from swell.core.stopping import Reason
from swell.formats.bsr import BSR
from swell.preconditioners.triangular import random_vector

SIZES = (1, 2, 3, 4, 5, 8, 11, 32)
TYPES = ("float32", "float64", "complex64", "complex128")
BLOCKS = {32: 20}                                # block rows; else 30


def system(s, dtype="float64", seed=1):
    return sp.csr_array(blocked(s, dtype, seed, BLOCKS.get(s, 30)).astype(dtype))


def stored(A, s, space):
    """Points in CSR for 0, else blocks."""
    return BSR(s).build(csr(A, space)) if s else csr(A, space)


def triangle(A, s, lower, unit=False):
    """(a triangle of A, the pattern of its blocks), dense."""
    s, A = max(s, 1), A.toarray()
    blocks = np.kron(np.eye(A.shape[0] // s), np.ones((s, s)))
    half = np.kron((np.tril if lower else np.triu)(np.ones((A.shape[0] // s,) * 2)), np.ones((s, s))) - blocks
    T = A * half + (np.eye(A.shape[0]) if unit else A * blocks)
    return T, (T.reshape(-1, s, T.shape[0] // s, s) != 0).any(axis=(1, 3)) | np.eye(T.shape[0] // s, dtype=bool)


def inverse(T, pattern, power, s):
    """W by the definition: row by row of blocks, a dense system on the pattern of each."""
    s, count = max(s, 1), pattern.shape[0]
    reached, W = np.linalg.matrix_power(pattern.astype(float), power) > 0, np.zeros_like(T)
    for i in range(count):
        J = (np.flatnonzero(reached[i])[:, None] * s + np.arange(s)).reshape(-1)
        own = np.arange(i * s, (i + 1) * s)
        right = (J[:, None] == own).astype(T.dtype)
        W[np.ix_(own, J)] = np.linalg.solve(T[np.ix_(J, J)].T, right).T
    return W


def dense(M, adjoint=False):
    return np.stack([applied(M, e, adjoint) for e in np.eye(M.shape[0])], axis=1)


# -- the inverse -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("lower", [True, False])
def test_rows_solve_their_small_systems(lower, dtype, space):
    for s in [0, *SIZES]:                              # 0 stands for points, in CSR
        for power in (1, 2):
            with during(s=s, power=power):
                A = system(s or 1, dtype)
                T, pattern = triangle(A, s, lower)
                W = inverse(T, pattern, power, s)
                if power == 1:
                    assert abs(W @ T - np.eye(T.shape[0])).max() > 1e-3        # it is not the inverse
                with space.active():
                    M = swell.ISAI(power, guard="off").build(stored(A, s, space), lower)
                    assert near(dense(M), W) and near(dense(M, adjoint=True), W.conj().T)
                    assert not M.variable and M.capturable and M.notes == () and f"power={power}" in M.describe()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("s", [0, 3])
def test_every_type(s, kind, space):
    A = system(s or 1, kind)
    T, pattern = triangle(A, s, True)
    with space.active():
        M = swell.ISAI(guard="off").build(stored(A, s, space), True)
        assert M.dtype == kind and near(dense(M), inverse(T, pattern, 1, s), 50 * np.finfo(kind).eps)


@pytest.mark.parametrize("lower", [True, False])
def test_unit_triangles_and_orders(lower, dtype, space):
    for s in [0, 1, 3, 11]:
        with during(s=s):
            A = sp.csr_array(system(s or 1, dtype) / 10)
            T, pattern = triangle(A, s, lower, unit=True)
            order = rng().permutation(pattern.shape[0])
            rows = (order[:, None] * max(s, 1) + np.arange(max(s, 1))).reshape(-1)
            W = np.zeros_like(T)
            W[np.ix_(rows, rows)] = inverse(T, pattern, 2, s)
            with space.active():
                T, order = stored(A, s, space), space.from_host(order)
                M = swell.ISAI(2, guard="off").build(T, lower, unit=True, order=order)
                assert near(dense(M), W) and near(dense(M, adjoint=True), W.conj().T)


@pytest.mark.parametrize("s", [0, 3])
def test_a_power_of_the_levels_is_exact(s, space):
    """Block bidiagonal with 8 levels: power 7 is the inverse, 6 is not."""
    A = sp.csr_array(np.kron(np.eye(8) + np.eye(8, k=-1) / 2, np.eye(max(s, 1)) + 0.1))
    T = triangle(A, s, True)[0]
    with space.active():
        six, seven = (swell.ISAI(power, guard="off").build(stored(A, s, space), True) for power in (6, 7))
    assert near(dense(seven), np.linalg.inv(T)) and seven.remainder < 1e-14 < 1e-6 < six.remainder


def test_in_place_fused_and_updated(dtype, space):
    for s in [0, 3, 8, 11]:
        with during(s=s):
            A, B = system(s or 1, dtype), system(s or 1, dtype, seed=2)
            n, order = A.shape[0], rng().permutation(A.shape[0] // max(s, 1))
            x = vector(n, dtype)
            with space.active():
                order = space.from_host(order)
                M, fresh = (swell.ISAI(2, guard="off").build(stored(C, s, space), True, order=order) for C in (A, B))
                before = applied(M, x), applied(M, x, True)                    # builds what is to be updated
                M.update(stored(B, s, space))
                assert M.remainder == fresh.remainder
                for adjoint in (False, True):
                    found = applied(M, x, adjoint)
                    assert (found == applied(fresh, x, adjoint)).all() and not (found == before[adjoint]).any()
                    y = space.from_host(x.copy())
                    (M.apply_adjoint if adjoint else M.apply)(y, y)
                    assert (space.to_host(y) == found).all()
                y, w, out = space.from_host(x), space.from_host(vector(n, dtype, 1)), space.empty(n, dtype)
                dots = space.empty(2, accumulator(dtype))
                M.adjoint_dots(y, out, w, dots)
                out, sums = space.to_host(out), space.to_host(dots)
                assert near(out, found)
                assert sums[0] == pytest.approx(np.vdot(vector(n, dtype, 1), out), rel=1e-12)
                assert sums[1].real == pytest.approx(np.vdot(out, out).real, rel=1e-12)


@pytest.mark.parametrize("s", [0, 3])
@pytest.mark.parametrize("lower", [True, False])
def test_long_rows_keep_what_is_near_the_diagonal(s, lower, space):
    A = sp.csr_array(np.ones((20 * max(s, 1),) * 2) / 40 + 2 * np.eye(20 * max(s, 1)))
    T = triangle(A, s, lower)[0]
    near_diagonal = abs(np.subtract.outer(np.arange(20), np.arange(20))) < 5
    pattern = near_diagonal & (np.tri(20, dtype=bool) if lower else np.tri(20, dtype=bool).T)
    with space.active():
        M = swell.ISAI(longest=5, guard="off").build(stored(A, s, space), lower)
        assert near(dense(M), inverse(T, pattern, 1, s))
        assert "15 of 20 rows" in M.notes[0] and "more than 5 entries" in M.notes[0]
        assert swell.ISAI(longest=5).build(stored(A, s, space), lower).notes == M.notes
        assert swell.ISAI(longest=20).build(stored(A, s, space), lower).notes == ()


def test_blocks_that_reach_past_the_end(dtype, space):
    for s in [4, 7, 11]:
        with during(s=s):
            A, x = blocked(1, dtype, count=90), vector(90, dtype)
            with space.active():
                for ordering in ("natural", "rcm"):
                    text = f"ilu(block={s}, pad=True, ordering={ordering!r}, solve={{!r}})"
                    exact = built(text.format("exact"), A, space)
                    M = built(text.format("isai(power=40, guard='off')"), A, space)
                    assert near(applied(M, x), applied(exact, x)) and near(applied(M, x, True), applied(exact, x, True))


def test_the_remainder_is_what_it_is_called(space):
    for s in (0, 1, 3):
        A = system(s or 1)
        T, pattern = triangle(A, s, False)
        v = random_vector(T.shape[0], "float64", make_space("cpu"))
        left = v - inverse(T, pattern, 1, s) @ (T @ v)
        with space.active():
            M = swell.ISAI().build(stored(A, s, space), False)
            assert swell.ISAI(guard="off").build(stored(A, s, space), False).remainder == pytest.approx(
                np.linalg.norm(left) / np.linalg.norm(v), rel=1e-10)
            assert M.notes == () and "remainder" in M.describe()


# -- the guard, and bad input ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("s", [1, 3])
def test_an_inverse_that_grows_is_not_used(s, space):
    """Block bidiagonal: the remainder of power 1 is the square of the entries."""
    b = vector(40 * s)
    with space.active():
        T = growing(s, space)
        exact = applied(swell.Exact().build(T, True), b)
        M = swell.ISAI().build(T, True)
        assert (applied(M, b) == exact).all() and "solved with exactly" in M.notes[0] and "power 1" in M.notes[0]
        assert "in place of ISAI(power=1)" in M.describe()
        assert near(applied(M, b, True), applied(swell.Exact().build(T, True), b, True))
        with pytest.raises(FactorisationError, match="power 1.*a higher power.*guard='more'"):
            swell.ISAI(guard="error").build(T, True)
        assert swell.ISAI(guard="off").build(T, True).notes == () == swell.ISAI(growth=1e9).build(T, True).notes
        assert "solved with exactly" in swell.ISAI(guard="more").build(T, True).notes[0]


@pytest.mark.parametrize("s", [0, 2])
def test_a_higher_power_where_it_helps(s, space):
    A = sp.csr_array(np.kron(np.eye(4) + 3 * np.eye(4, k=-1), np.eye(max(s, 1)) + 0.1))
    b = vector(A.shape[0])
    with space.active():
        M = swell.ISAI(guard="more").build(stored(A, s, space), True)
        assert "the pattern of its power 3 is used" in M.notes[0]
        assert near(applied(M, b), applied(swell.Exact().build(stored(A, s, space), True), b))


def test_the_guard_looks_again_at_new_values(space):
    b, seen = vector(120), []
    with space.active():
        good, bad = growing(3, space, 0.5), growing(3, space)
        M = swell.ISAI().build(good, True)
        for T in (bad, good, good):
            M.update(T)
            seen.append(M.revision)
            assert (applied(M, b) == applied(swell.ISAI().build(T, True), b)).all()
    assert seen == [1, 2, 2] and M.notes == ()


def test_what_cannot_be_divided_by_is_named(space):
    T = sp.csr_array(sp.tril(gallery.poisson2d(6))).tolil()
    T[7, 7] = 0
    with space.active():
        with pytest.raises(FactorisationError, match="row 7"):
            swell.ISAI().build(csr(T, space), True)
        with pytest.raises(FactorisationError, match="diagonal block 4"):
            swell.ISAI().build(BSR(2).build(csr(singular_block(), space)), False)


def test_a_pattern_that_does_not_fit_is_refused(monkeypatch):
    A, space = gallery.poisson2d(40), make_space("cpu")
    T = csr(A, space)
    monkeypatch.setattr(CpuSpace, "memory", lambda self: (100_000, 2**30))
    with pytest.raises(OutOfMemory, match="power 3 of a triangle.*a lower power"):
        swell.ISAI(3).build(T, True)


@pytest.mark.parametrize("text, words", [("isai(power=0)", "at least 1"), ("isai(longest=0)", "at least 1"),
                                         ("isai(guard='x')", "'more'"), ("isai(growth=0)", "positive"),
                                         ("isai(single=True)", "no setting")])
def test_settings_that_mean_nothing(text, words):
    with pytest.raises(swell.InputError, match=words):
        resolve("triangular", text)


# -- in a solve --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("precond", ["ilu0(solve=isai)", "ilu0(solve=isai(power=2), ordering=multicolor)",
                                     "ilu(level=1, solve=isai)", "ilu(fill=10, solve=isai)", "ilu(block=2, solve=isai)"])
@pytest.mark.parametrize("method", ["gmres", "bicgstab"])
def test_krylov_methods_are_quicker_with_it(method, precond, device):
    A = gallery.get("atmosmodd~", 1000)
    b = A @ rng().standard_normal(A.shape[0])
    plain = swell.solve(A, b, method=method, precond="jacobi", rtol=1e-10, device=device)
    solver = swell.prepare(A, method=method, precond=precond, rtol=1e-10, device=device)
    first, second = solver.solve(b), solver.solve(b)
    assert first.converged and first.iterations < 0.9 * plain.iterations and first.method == method
    assert (first.x == second.x).all() and np.linalg.norm(b - A @ first.x) <= 1e-10 * np.linalg.norm(b)
    B = sp.csr_array(A + 3 * sp.diags_array(A.diagonal()))
    fresh = swell.prepare(B, method=method, precond=precond, rtol=1e-10, device=device).solve(b)
    solver.update(B)
    again = solver.solve(b)
    assert again.converged and (again.x == fresh.x).all()


def test_it_makes_a_hermitian_preconditioner(dtype, device):
    A = gallery.poisson2d(20).astype(dtype)
    if A.dtype.kind == "c":
        phase = sp.diags_array(np.exp(1j * rng().uniform(0, 6, A.shape[0])))
        A = sp.csr_array(phase @ A @ phase.conj())
    b = A @ vector(A.shape[0], dtype)
    space = make_space(device)
    with space.active():
        M = built("ic0(solve=isai)", A, space)
        P = dense(M)
        assert M.spd and near(P, P.conj().T) and np.linalg.eigvalsh((P + P.conj().T) / 2).min() > 0
    counts = [swell.solve(A, b, method="cg", precond=p, rtol=1e-10, device=device).iterations
              for p in ("ic0", "ic0(solve=isai(power=4))", "ic0(solve=isai)", "jacobi")]
    assert counts == sorted(counts) and counts[2] < counts[3]


def test_what_is_not_symmetric_is_refused_where_symmetry_counts(device):
    """Exact solves and sweeps keep A = Aᵀ; on the patterns of rows L and U = D Lᵀ have inverses that are no transposes,
    and one sweep more for one triangle is no transpose either."""
    A = gallery.helmholtz((12, 12))
    space = make_space(device)
    kept = {"exact": True, "sweeps(count=2)": True, "isai": False, "'sweeps(count=2, upper=3)'": False}
    for solve, symmetric in kept.items():
        with space.active():
            M = built(f"ilu0(solve={solve})", A, space)
            P = dense(M)
            assert (abs(P - P.T).max() <= 1e-13 * abs(P).max()) == symmetric == (M.self_adjoint is not False)
        for method in ("cocg", "cocr"):
            named = {"method": method, "precond": f"ilu0(solve={solve})", "device": device}
            if symmetric:
                assert swell.solve(A, np.ones(144), **named).converged
            else:
                with pytest.raises(swell.InputError, match="its own adjoint|M = Mᵀ"):
                    swell.solve(A, np.ones(144), **named)
        chosen = swell.solve(A, np.ones(144), precond=f"ilu0(solve={solve})", device=device)
        assert chosen.converged and chosen.method == ("cocg" if symmetric else "bicgstab")


def test_the_result_says_what_the_guard_did(device):
    L = np.eye(60) + 3 * np.eye(60, k=-1)
    A = sp.csr_array(L @ L.T)
    result = swell.solve(A, np.ones(60), method="gmres", precond="ilu0(solve=isai)", device=device)
    assert any("ISAI" in note and "solved with exactly" in note for note in result.notes)
    assert np.isfinite(result.x).all()
    result = swell.solve(A, np.ones(60), method="gmres", precond="ilu0(solve=\"isai(guard='error')\")", device=device)
    assert result.reason is Reason.NOT_FACTORED and "a higher power" in str(result) and np.isfinite(result.x).all()


INEXACT = {
    # name: (preconditioner, reduction, counts of sweeps, powers). Grond4e4 takes 1800 iterations to 1e-8.
    "ml_elasticity": ("ilu(block=3, solve={})", 1e-8, (4, 16, 64), (1, 2, 4)),
    "hypre_beam_tet_dof2475": ("ilu(block=3, solve={})", 1e-8, (2, 4, 8), (1, 2, 3)),
    "fasp_spe01_bsr3": ("ilu(block=3, solve={})", 1e-8, (2, 4, 8), (1, 2, 4)),
    "foam_hump_U": ("ilu0(solve={})", 1e-8, (2, 8, 16), (1, 2, 4)),
    "Grond4e4": ("ilu0(solve={})", 1e-3, (2, 4, 8), (1, 2, 3)),
    "sherman5": ("ilu0(solve={})", 1e-8, (2, 4, 8), (1, 2, 4)),
    # As many sweeps as there are levels, 201, are exact. The remainder grows to 1e20 first: rounding alone decides
    # whether a solve with 8 sweeps converges.
    "muelu_condif2": ("ilu0(solve={})", 1e-8, (180, 201), (1, 2, 4)),
}


@pytest.mark.data
@pytest.mark.parametrize("kind", ["sweeps(count={}, guard=off)", "isai(power={}, guard=off)"])
@pytest.mark.parametrize("name", INEXACT)
def test_iterations_approach_those_of_the_exact_solve(name, kind, data, device):
    """The paper's tables: fewer with more sweeps, and with higher powers, down to (nearly) those of the exact solve."""
    approach(sp.csr_array(real_matrix(data, name)).astype(float), *INEXACT[name], kind, device)


@pytest.mark.parametrize("kind", ["sweeps(count={}, guard=off)", "isai(power={}, guard=off)"])
def test_iterations_approach_those_of_the_exact_solve_on_a_generated_system(kind, device):
    approach(gallery.get("atmosmodd~", 27_000), "ilu0(solve={})", 1e-8, (1, 2, 4, 60), (1, 2, 3), kind, device)


def approach(A, precond, rtol, sweeps, powers, kind, device):
    b, counts = A @ np.ones(A.shape[0]), []
    for solve in ("exact", *(kind.format(k) for k in reversed(sweeps if "sweeps" in kind else powers))):
        result = swell.solve(A, b, method="gmres(restart=100)", precond=precond.format(solve), rtol=rtol, device=device,
                             maxiter=1000)
        assert result.converged, str(result)
        counts.append(result.iterations)
    assert counts == sorted(counts) and counts[-1] > 1.25 * counts[0], counts
    if "sweeps" in kind:
        assert counts[1] <= 1.02 * counts[0]
