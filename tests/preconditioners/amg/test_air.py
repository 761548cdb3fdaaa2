"""AIR against plain versions of its formulas on every device, iterations on advection, updates, and what users give wrongly."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.conftest import DEVICES, space_or_skip
from tests.support.cases import rng
from tests.support.during import during
from tests.support.host_reads import host_reads

import swell
from swell import AIR, gallery
from swell.core.errors import FactorisationError, InputError
from swell.formats.csr import CSRMatrix
from swell.preconditioners.amg import air_cycle
from swell.preconditioners.amg.local_restriction import WIDTH, LocalRestriction, restriction, strong_moduli
from swell.preconditioners.amg.slots import State

MOST = WIDTH - 1          # unknowns of a local system


def random_flow(n, seed):
    """A row-dominant matrix of random links in one direction each, with a row that has none, and positive entries too."""
    G = sp.random_array((n, n), density=min(1, 4 / n), rng=np.random.default_rng(seed)).tocsr()
    G = G - 0.2 * sp.random_array((n, n), density=min(1, 1 / n), rng=np.random.default_rng(seed + 1)).tocsr()
    keep = sp.diags_array((np.arange(n) != n // 2).astype(float))
    G = sp.csr_array(keep @ G)
    G.setdiag(0)
    G.eliminate_zeros()
    return canonical(sp.diags_array(abs(G).sum(axis=1) + 0.1) - G)


def canonical(A):
    A = sp.csr_array(A).astype(float)
    A.sum_duplicates()
    return A


SYSTEMS = {
    "oblique": lambda: gallery.advection((21, 17)),
    "rotating": lambda: gallery.advection((20, 20), "rotating"),
    "inset": lambda: gallery.advection((7, 8, 6), "inset"),
    "some diffusion": lambda: gallery.advection((20, 20), "rotating", 0.01),
    "random": lambda: random_flow(300, 3),
    "diffusion alone": lambda: gallery.poisson2d(17),
    "parts": lambda: sp.block_diag([gallery.advection((12, 9)), 1e-9 * gallery.advection((9, 9), "inset"), 3 * sp.eye_array(40)]),
}


def moved(A, space):
    return CSRMatrix.from_scipy(canonical(A), space)


def built(A, space, **options):
    return AIR(**{"coarsest": 20, **options}).build(moved(A, space))


def applied(M, space, b, adjoint=False):
    out = space.empty(b.size, b.dtype)
    (M.apply_adjoint if adjoint else M.apply)(space.from_host(b), out)
    return space.to_host(out).copy()


def on_host(space, *arrays):
    return [space.to_host(array).copy() for array in arrays]


def other_values(A, seed=5):
    B = canonical(A).copy()
    B.data *= 1 + 0.2 * np.random.default_rng(seed).random(B.nnz)
    return B


# -- each step against its formula -------------------------------------------------------------------------------------

def plain_neighbours(A, i, strong, coarse, distance):
    """The set Nᵢ by loops: strongest first, then the strong fine columns of these, at most MOST."""
    def links(row):
        return [j for j in np.flatnonzero(strong[row]) if not coarse[j]]
    found = sorted(links(i), key=lambda j: (-abs(A[i, j]), j))[:MOST]
    for k in list(found) if distance == 2 else ():
        found += [j for j in links(k) if j not in found][:MOST - len(found)]
    return sorted(found)


@pytest.mark.parametrize("distance", [1, 2])
@pytest.mark.parametrize("name", SYSTEMS)
def test_restriction_is_ideal_on_neighbourhoods(space, name, distance):
    A = canonical(SYSTEMS[name]())
    dense = A.toarray()
    s = AIR(distance=distance)
    with space.active():
        level = LocalRestriction(s).interpolation(moved(A, space))
        strong, state, rows, parents = on_host(space, strong_moduli(moved(A, space), s.neighbours), level.state, level.rows,
                                               level.parents)
        R, P = level.R.to_scipy().toarray(), level.P.to_scipy().toarray()
    off = abs(dense) * (1 - np.eye(len(dense)))
    limits = off.max(axis=1, keepdims=True)
    links = (off >= s.neighbours * limits) & (off > 0)
    assert np.array_equal(np.flatnonzero(strong), np.flatnonzero(links[A.nonzero()]))
    coarse = state == State.COARSE
    assert np.array_equal(rows, np.flatnonzero(coarse))
    RA = R @ dense
    for r, i in enumerate(rows):
        near = plain_neighbours(dense, i, links, coarse, distance)
        with during(row=i):
            assert np.array_equal(np.flatnonzero(R[r]), sorted({*np.array(near)[R[r, near] != 0], i})) and R[r, i] == 1
            assert abs(RA[r, near]).max(initial=0) <= 1e-12 * limits.max()
    links = (off >= s.strength * limits) & (off > 0)
    for i in range(len(dense)):
        choices = np.flatnonzero(links[i] & coarse)
        best = np.searchsorted(rows, i if coarse[i] else choices[np.argmax(off[i, choices])]) if coarse[i] or choices.size else -1
        assert parents[i] == best and np.array_equal(np.flatnonzero(P[i]), [best] if best >= 0 else [])


def test_a_wide_neighbourhood_keeps_the_strongest(space):
    n = 3 * MOST
    A = sp.lil_array(2 * sp.eye_array(n))
    A[0, 1:] = -(1 + rng().permutation(n - 1) / n)
    A = canonical(A)
    state = np.full(n, State.FINE, np.uint8)
    state[0] = State.COARSE
    with space.active():
        M = moved(A, space)
        R = restriction(M, strong_moduli(M, 0.0), space.from_host(state), space.from_host(np.zeros(1, M.indices.dtype)), 2)
        R = R.to_scipy().toarray()[0]
    kept = np.argsort(A.toarray()[0])[:MOST]
    assert set(np.flatnonzero(R)) == {0, *kept} and np.allclose(R[kept], -A.toarray()[0, kept] / 2)


def test_a_singular_local_system_has_a_solution_all_the_same(space):
    """Fine rows 1 and 2 are equal where they meet: one unknown stays zero."""
    A = canonical(np.array([[2.0, -1, -1, 0], [0, 1, 1, -1], [0, 1, 1, -1], [0, 0, 0, 1]]))
    state = np.array([State.COARSE, State.FINE, State.FINE, State.FINE], np.uint8)
    with space.active():
        M = moved(A, space)
        R = restriction(M, strong_moduli(M, 0.05), space.from_host(state), space.from_host(np.zeros(1, M.indices.dtype)), 1)
        R = R.to_scipy().toarray()
    assert np.allclose(R, [[1, 1, 0, 0]]) and np.allclose((R @ A)[0, 1:3], 0)


@pytest.mark.parametrize("share", [0.0, 0.02, 1.0])
def test_dropped_entries_go_to_the_diagonal(space, share):
    A = SYSTEMS["rotating"]()
    with space.active():
        restricted = LocalRestriction(AIR(drop=share))
        M = moved(A, space)
        level = restricted.level(M, restricted.interpolation(M))
        whole, kept = level.RAP.C.to_scipy().toarray(), level.coarse.to_scipy().toarray()
        R, P = level.R.to_scipy(), level.P.to_scipy()
    assert np.allclose(whole, (R @ A @ P).toarray(), atol=1e-14)
    limit = share * abs(whole).max(axis=1, keepdims=True)
    stay = (abs(whole) >= limit) | np.eye(len(whole), dtype=bool)
    expected = np.where(stay, whole, 0) + np.diag(np.where(stay, 0, whole).sum(axis=1))
    assert np.allclose(kept, expected, atol=1e-14) and np.allclose(kept.sum(axis=1), whole.sum(axis=1), atol=1e-13)


def test_small_diagonal_entries_are_raised(space):
    A = canonical(np.array([[2.0, 5, 0], [100, -1, 0], [0, 0, 0]]))
    with space.active():
        found, = on_host(space, air_cycle.relaxed_diagonal(moved(A, space)))
    assert np.allclose(found, [2, -10, 1])


def plain_cycle(levels, last, b, sweeps):
    """The cycle as the papers have it, with a level's own order of rows."""
    if not levels:
        return np.linalg.pinv(last) @ b
    (A, R, P, coarse), *below = levels
    x = P @ plain_cycle(below, last, R @ b, sweeps)
    for rows in [~coarse] * sweeps + [coarse]:
        x = np.where(rows, x + (b - A @ x) / A.diagonal(), x)
    return x


def levels_of(M, space):
    h = M.hierarchy
    return [(*(part.to_scipy().toarray() for part in (level.A, level.R, level.P)),
             space.to_host(level.interpolation.state) == State.COARSE) for level in h.levels], h.last.to_scipy().toarray()


@pytest.mark.parametrize("sweeps", [1, 2, 3])
@pytest.mark.parametrize("name", ["oblique", "inset", "parts"])
def test_the_cycle_is_the_papers(space, name, sweeps):
    A = SYSTEMS[name]()
    b, v = rng().standard_normal((2, A.shape[0]))
    with space.active():
        M = built(A, space, f_sweeps=sweeps, dtype="float64")
        assert len(M.hierarchy.levels) >= 3
        for now in (A, other_values(A)):
            M.update(moved(now, space))
            expected = plain_cycle(*levels_of(M, space), b, sweeps)
            x, y = applied(M, space, b), applied(M, space, v, adjoint=True)
            assert np.allclose(x, expected, rtol=1e-10, atol=1e-11 * abs(expected).max())
            assert abs(x @ v - b @ y) <= 1e-11 * np.linalg.norm(x) * np.linalg.norm(v)


def test_a_large_coarsest_level_gets_jacobi_steps(space, monkeypatch):
    monkeypatch.setattr("swell.preconditioners.amg.hierarchy.DENSE", {"cpu": 5, "cuda": 5})
    A = SYSTEMS["oblique"]()
    b, v = rng().standard_normal((2, A.shape[0]))
    with space.active():
        M = built(A, space, levels=2, dtype="float64")
        assert isinstance(M.inner.levels[-1], air_cycle.JacobiSteps) and "Jacobi steps alone" in M.notes[0]
        levels, last = levels_of(M, space)
        D = np.diag(last.diagonal())
        S = np.eye(len(last)) - np.linalg.solve(D, last)
        inverse = (np.eye(len(last)) + S + S @ S) @ np.linalg.inv(D)
        x = applied(M, space, b)
        assert np.allclose(x, plain_cycle(levels, np.linalg.inv(inverse), b, 2))
        y = applied(M, space, v, adjoint=True)
        assert abs(x @ v - b @ y) <= 1e-12 * np.linalg.norm(x) * np.linalg.norm(v)


@pytest.mark.parametrize("name", SYSTEMS)
def test_an_update_with_the_same_values_gives_the_same_bits(space, name):
    A = SYSTEMS[name]()
    b = rng().standard_normal(A.shape[0])
    with space.active():
        M = built(A, space)
        first = applied(M, space, b)
        M.update(moved(other_values(A), space))
        second = applied(M, space, b)
        M.update(moved(A, space))
        assert np.array_equal(applied(M, space, b), first) and not np.array_equal(second, first)


@pytest.mark.gpu
@pytest.mark.parametrize("name", SYSTEMS)
def test_devices_agree_to_the_bit(name):
    A, found = SYSTEMS[name](), []
    for device in ("cpu", "cuda"):
        space = space_or_skip(device)
        with space.active():
            M = built(A, space)
            found.append([on_host(space, M.inner.places, *(part for level in M.hierarchy.levels for part in (
                level.R.indptr, level.R.indices, level.R.data, level.coarse.indices, level.coarse.data)))])
    assert all(np.array_equal(a, b) for a, b in zip(*(parts[0] for parts in found), strict=True))


@pytest.mark.gpu
def test_what_a_level_costs_the_host():
    """Reads: n_c with nnz(P), nnz(R), two of products, kept entries, patterns of the cycle, and ten of SELL."""
    A, space, counts = gallery.advection((40, 40), "rotating"), space_or_skip("cuda"), []
    with space.active():
        for levels in (2, 3, 4):
            with host_reads(space) as reads:
                built(A, space, levels=levels)
            counts.append(len(reads))
    assert all(b - a <= 16 for a, b in zip(counts, counts[1:])), counts


# -- what it promises --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("field", ["oblique", "rotating", "inset"])
def test_iterations_hardly_grow(device, field):
    space_or_skip(device)
    counts = []
    for m in (24, 48, 96):
        A = gallery.advection((m, m), field)
        r = swell.solve(A, rng().standard_normal(m * m), method="fgmres", precond="air(coarsest=50)", rtol=1e-8, device=device)
        assert r.converged
        counts.append(r.iterations)
    assert max(counts) <= 15 and counts[-1] <= counts[0] + 4, counts


@pytest.mark.parametrize("method", ["gmres", "bicgstab", "fgmres", "qmr", "idrs"])
def test_every_method_for_nonsymmetric_matrices_takes_it(method):
    A = gallery.advection((12, 11, 10), "rotating")
    r = swell.solve(A, rng().standard_normal(A.shape[0]), method=method, precond="air(coarsest=50)", device="cpu")
    assert r.converged and r.iterations <= 30


@pytest.mark.parametrize("diffusion", [1e-4, 1e-2, 1.0])
def test_diffusion_does_no_harm(diffusion):
    A = gallery.advection((60, 60), "rotating", diffusion)
    r = swell.solve(A, rng().standard_normal(3600), method="fgmres", precond="air(coarsest=50)", rtol=1e-8, device="cpu")
    assert r.converged and r.iterations <= 25


@pytest.mark.parametrize("device", DEVICES)
def test_single_precision_and_scales(device):
    space_or_skip(device)
    A = gallery.advection((30, 30), "inset")
    b = rng().standard_normal(900)
    r = swell.solve(A.astype(np.float32), b.astype(np.float32), method="fgmres", precond="air(coarsest=50)", rtol=1e-4,
                    device=device)
    assert r.converged and r.x.dtype == np.float32
    counts = {swell.solve(s * A, t * b, method="fgmres", precond="air(coarsest=50)", device=device).iterations
              for s, t in ((1, 1), (1e-130, 1), (1e130, 1), (1, 1e-50), (1, 1e50))}
    assert len(counts) == 1


def test_an_update_of_a_solver():
    A = gallery.advection((40, 40), "rotating")
    b = rng().standard_normal(1600)
    s = swell.prepare(A, method="fgmres", precond="air(coarsest=50)", device="cpu")
    first = s.solve(b)
    B = sp.csr_array(other_values(A))
    s.update(B)
    r = s.solve(b)
    assert first.converged and r.converged and r.iterations <= first.iterations + 3


def test_rows_without_links_and_a_singular_matrix():
    alone = sp.block_diag([sp.eye_array(400), gallery.advection((15, 15)), 1e-12 * sp.eye_array(50)])
    r = swell.solve(alone, np.ones(alone.shape[0]), method="fgmres", precond="air(coarsest=20)", device="cpu")
    assert r.converged
    r = swell.solve(3 * sp.eye_array(900), np.ones(900), method="gmres", precond="air(coarsest=20)", device="cpu")
    assert r.converged and r.iterations <= 2
    closed = gallery.neumann((20, 20))
    r = swell.solve(closed, closed @ rng().standard_normal(400), method="fgmres", precond="air(coarsest=20)", device="cpu")
    assert r.converged


def test_the_levels_are_printed():
    M = swell.prepare(gallery.advection((60, 60)), method="gmres", precond="air", device="cpu").M
    text = str(M)
    assert "approximate ideal restriction at distance 2, strength 0.3, float32" in text and "operator complexity" in text
    assert "2 F sweeps and a C sweep" in M.describe() and M.nbytes > 0


def test_a_copy_has_its_own_vectors():
    A = gallery.advection((30, 30), "rotating")
    s = swell.prepare(A, method="bicgstab", precond="air(coarsest=50)", device="cpu")
    other = s.copy()
    assert not np.shares_memory(s.M.operator._x, other.M.operator._x) and s.M.operator.inner.places is other.M.operator.inner.places
    b = rng().standard_normal(900)
    assert np.array_equal(s.solve(b).x, other.solve(b).x)


@pytest.mark.parametrize("options, message", [
    ({"strength": -0.1}, "strength=-0.1"), ({"strength": 1.5}, "at most 1"), ({"neighbours": "all"}, "neighbours='all'"),
    ({"distance": 3}, "distance=3"), ({"distance": 0}, "at least 1"), ({"drop": 2}, "drop=2"), ({"f_sweeps": 0}, "f_sweeps=0"),
    ({"f_sweeps": 5}, "at most 4"), ({"levels": 0}, "levels=0"), ({"coarsest": 5000}, "at most 4096"), ({"dtype": "half"}, "'half'"),
])
def test_options_out_of_range(options, message):
    with pytest.raises(InputError, match=message):
        AIR(**options)


def test_settings_of_a_smoother_are_refused_by_name():
    with pytest.raises(InputError, match="AIR has no setting 'cycle'.*f_sweeps"):
        swell.prepare(gallery.advection((6, 6)), method="gmres", precond="air(cycle=W)", device="cpu")


def test_matrices_that_it_refuses():
    A, space = canonical(gallery.advection((6, 6))), space_or_skip("cpu")
    with pytest.raises(InputError, match="AIR got a matrix of complex128"):
        AIR().build(CSRMatrix.from_scipy(A * (1 + 0j), space))
    with pytest.raises(InputError, match="complex"):
        swell.prepare(A * (1 + 0j), method="gmres", precond="air", device="cpu")
    A.data[(A.indices == 7) & (np.repeat(np.arange(36), np.diff(A.indptr)) == 7)] = 0
    with pytest.raises(FactorisationError, match="non-zero diagonal.*first in row 7"):
        AIR().build(moved(A, space))
    r = swell.solve(A, np.ones(36), method="gmres", precond="air", device="cpu")
    assert not r.converged and "first in row 7" in r.notes[0]
