"""AMS: its definition, iterations that do not grow, singular systems, and what it refuses."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.conftest import space_or_skip

import swell
from swell import AMS, distributed, gallery
from swell.formats.csr import CSRMatrix

KINDS = "additive", "multiplicative"


def given(shape=(4, 3, 5), mass=1.0, **settings):
    A, gradient, edges = gallery.curl_curl(shape, mass)
    return A, AMS(gradient=gradient, edges=edges, **settings)


def dense(M, **more):
    """The matrix of an operator."""
    columns = []
    for k in range(M.shape[0]):
        x, out = M.space.from_host(np.eye(1, M.shape[0], k, M.dtype)[0]), M.space.xp.full(M.shape[0], np.nan, M.dtype)
        M.apply(x, out, **more)
        columns.append(M.space.to_host(out))
    return np.array(columns).T


def expected(A, settings):
    """The textbook's M with exact inner solves."""
    A, G = A.toarray(), settings.gradient.toarray()
    spaces = [G, *(0.5 * abs(G) * along[:, None] for along in settings.edges.T)]
    D = np.diag(1 / abs(A).sum(axis=1))
    steps = [P @ np.linalg.inv(P.T @ A @ P) @ P.T for P in spaces]
    if settings.kind == "additive":
        return D + sum(steps)
    M = np.zeros_like(A)
    for C in (D, *steps, *steps[-2::-1], D):
        M = M + C @ (np.eye(len(A)) - A @ M)
    return M


def test_the_definition(space):
    """Both kinds, symmetric and positive, for two matrices of one pattern, with α and β."""
    with space.active():
        for kind in KINDS:
            A, settings = given(kind=kind, inner="direct")
            M = settings.build(CSRMatrix.from_scipy(A, space))
            for mass in (1.0, 3.0):
                A, _ = given(mass=mass)
                M.update(CSRMatrix.from_scipy(A, space))
                found, wanted = dense(M), expected(A, settings)
                assert np.allclose(found, wanted, atol=1e-12 * abs(wanted).max())
                assert np.linalg.eigvalsh((found + found.T) / 2).min() > 0 and M.spd and M.self_adjoint
            x = space.from_host(np.arange(1.0, A.shape[0] + 1))
            out = x.copy()
            M.apply(x, out, -0.5, 2)
            assert np.allclose(space.to_host(out), 2 * np.arange(1, len(wanted) + 1) - 0.5 * wanted @ np.arange(1, len(wanted) + 1))
            M.apply_adjoint(x, out)
            assert np.allclose(space.to_host(out), wanted.T @ np.arange(1, len(wanted) + 1))


def test_iterations_do_not_grow(device):
    """In two and three dimensions, and for a small mass, where Jacobi needs hundreds."""
    sizes = (((8, 8), (16, 16), 15),) if device == "cuda" else (((12, 12), (48, 48), 15), ((6, 6, 6), (12, 12, 12), 12))
    for small, large, most in sizes:
        for mass in (1.0, 1e-3):
            counts = []
            for shape in (small, large):
                A, precond = given(shape, mass)
                b = np.random.default_rng(0).standard_normal(A.shape[0])
                r = swell.solve(A, b, method="cg", precond=precond, rtol=1e-7, device=device)
                assert r.converged and np.linalg.norm(A @ r.x - b) <= 1e-7 * np.linalg.norm(b)
                counts.append(r.iterations)
            assert max(counts) <= most, counts
    assert swell.solve(A, b, method="cg", precond="jacobi", rtol=1e-7, device=device).iterations > 4 * counts[-1]


def test_additive_takes_more_iterations(device):
    found = []
    for kind in KINDS:
        A, precond = given((5, 5, 5), kind=kind)
        found.append(swell.solve(A, np.ones(A.shape[0]), method="cg", precond=precond, device=device).iterations)
    assert found[1] < found[0] <= 25


def test_without_mass(device):
    """Singular and consistent; the corrections by gradients are left out, and a note says so."""
    A, precond = given((6, 6, 6), mass=0.0)
    b = A @ np.random.default_rng(1).standard_normal(A.shape[0])
    r = swell.solve(A, b, method="cg", precond=precond, device=device)
    assert r.converged and r.iterations <= 30 and any("A annihilates gradients" in note for note in r.notes)


def low_frequency(mass, shape=(4, 5, 6), dtype=np.float64):
    """The curl-curl matrix and the matrix of ∫ E·F with weights ``mass``, a number or one for each edge; AMS for it."""
    A, settings = given(shape, mass=0.0)
    M = sp.diags_array(np.broadcast_to(mass, A.shape[0])) @ (given(shape, mass=1.0)[0] - A)
    return sp.csr_matrix(A + (M + M.T) / 2).astype(dtype), settings


def test_a_small_mass_is_no_rounding(device):
    """Masses from 1e-7 to 1e-11: x is right along the gradients too, for both kinds of source."""
    rng = np.random.default_rng(0)
    for mass in (1e-7, 3e-8, 1e-11):
        A, precond = low_frequency(mass)
        z, x = rng.standard_normal(A.shape[0]), rng.standard_normal(A.shape[0])
        curl = given((4, 5, 6), mass=0.0)[0] @ z                              # a source without divergence
        exact = sp.linalg.spsolve(A.tocsc(), curl)
        r = swell.solve(A, curl, method="cg", precond=precond, device=device)
        assert r.converged and not r.notes and np.linalg.norm(r.x - exact) <= 1e-15 / mass * 100 * np.linalg.norm(exact)
        r = swell.solve(A, A @ x, method="gmres", precond=precond, device=device)
        assert r.converged and not r.notes, mass


def test_what_a_leaves_of_gradients(device):
    """Rounding is recognised, in both precisions; what may be either is said; and air is told from earth."""
    def notes(A, settings):
        return swell.solve(A, np.ones(A.shape[0]), method="cg", precond=settings, device=device, maxiter=1).notes
    rounded, = notes(*low_frequency(1e-14))
    single, = notes(*low_frequency(1e-8, dtype=np.float32))
    assert rounded == single and rounded.startswith("AMS: A annihilates gradients, so that"), (rounded, single)
    between, = notes(*low_frequency(5e-13))
    assert "at 60 of 60 nodes (the first is node 0)" in between and "a mass cannot be told from rounding" in between
    assert not notes(*low_frequency(1e-11)) and not notes(*low_frequency(1e-2, dtype=np.float32))


def test_air_and_earth(device):
    """A mass in one half only: the correction stays there, and a note says where it was left out."""
    A, settings = low_frequency(0.0)
    edges = abs(settings.gradient) @ np.arange(60)                            # large for edges late in the grid
    earth = (edges > np.median(edges)) * 1.0
    A, settings = low_frequency(earth)
    left = abs(settings.gradient.T @ (A @ settings.gradient)).sum(axis=1)
    air = np.flatnonzero(left < 1e-12)
    b = A @ np.random.default_rng(1).standard_normal(A.shape[0])
    r = swell.solve(A, b, method="cg", precond=settings, device=device)
    note, = r.notes
    assert r.converged and 0 < air.size < 60
    assert f"annihilates gradients at {air.size} of 60 nodes (the first is node {air[0]})" in note


def test_notes_of_its_inner_preconditioners(space):
    with space.active():
        A, settings = given()
        M = settings.build(CSRMatrix.from_scipy(A, space))
        for correction in M.corrections:
            correction.inner.advice = ("coarsening ended early",)
        assert M.notes == ("coarsening ended early",)


def test_a_mass_that_comes_and_goes(device):
    """An update finds the gradients anew: it gives the x and the notes of a fresh solver."""
    solver = swell.prepare(low_frequency(1.0)[0], method="cg", precond=low_frequency(1.0)[1], device=device)
    for mass in (0.0, 1.0, 1e-8):
        A, settings = low_frequency(1.0)
        B = sp.csr_matrix(A)
        B.data[:] = low_frequency(mass)[0].toarray()[B.nonzero()]             # one pattern for all
        b = B @ np.ones(A.shape[0])
        fresh = swell.prepare(B, method="cg", precond=settings, device=device).solve(b)
        r = solver.update(B).solve(b)
        assert r.converged and (r.x == fresh.x).all() and r.notes == fresh.notes, mass


def test_update_is_a_fresh_build(device):
    (A, precond), (B, _) = given(), given(mass=7.0)
    first, second = (swell.prepare(M, method="cg", precond=precond, device=device) for M in (A, B))
    b = np.ones(A.shape[0])
    first.solve(b)
    assert (first.update(B).solve(b).x == second.solve(b).x).all()


def test_a_copy_has_vectors_of_its_own(device):
    A, precond = given()
    solver = swell.prepare(A, method="cg", precond=precond, device=device)
    other, b = solver.copy(), np.ones(A.shape[0])
    assert (solver.solve(b).x == other.solve(b).x).all()
    assert not any(solver.space.same_memory(getattr(other.M.operator, name), solver.space.to_host(getattr(solver.M.operator, name)))
                   or getattr(other.M.operator, name) is getattr(solver.M.operator, name) for name in ("_r", "_z"))


def test_coordinates_in_place_of_edges():
    """Where every edge has both ends: a ring around a square, with natural conditions."""
    points = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    G = sp.csr_array(np.array([[-1.0, 1, 0, 0], [0, -1, 1, 0], [0, 0, -1, 1], [1, 0, 0, -1]]))
    A = sp.csr_array(np.ones((4, 4)) + np.eye(4))
    space = space_or_skip("cpu")
    with space.active():
        one, other = (dense(AMS(gradient=G, inner="jacobi", **options).build(CSRMatrix.from_scipy(sp.csr_matrix(A), space)))
                      for options in ({"coordinates": points}, {"edges": G @ points}))
    assert (one == other).all()


@pytest.mark.parametrize("change, words", [
    ({"gradient": None}, "AMS needs the discrete gradient: give gradient"),
    ({"gradient": np.eye(3)}, r"AMS\(gradient\) has shape \(3, 3\): expected the discrete gradient, \(98, nodes\)"),
    ({"gradient": lambda G: 2 * G}, "entries other than −1 and 1"),
    ({"gradient": lambda G: sp.csr_array(np.ones(G.shape))}, "a row with 24 entries"),
    ({"gradient": lambda G: sp.hstack([G, sp.csr_array((98, 1))])}, "node 24 has no edge"),
    ({"edges": None}, "expected edges, the vector along each edge, or coordinates"),
    ({"coordinates": np.ones((24, 3))}, "and not both"),
    ({"edges": None, "coordinates": np.ones((24, 3))}, "edge 0 has one end"),
    ({"edges": np.ones((98, 4))}, r"AMS\(edges\) has shape \(98, 4\): expected \(98, 2\) or \(98, 3\)"),
    ({"edges": np.full((98, 3), np.nan)}, "non-finite"),
    ({"kind": "both"}, "kind='both'"), ({"inner": None}, "expected a preconditioner for the nodal matrices"),
    ({"inner": "ic0(level=1)"}, "ic0 without level")])
def test_bad_input(change, words):
    A, settings = given()
    options = {"gradient": settings.gradient, "edges": settings.edges}
    options |= {name: value(options[name]) if callable(value) else value for name, value in change.items()}
    with pytest.raises(swell.InputError, match=words):
        swell.solve(A, np.ones(A.shape[0]), method="cg", precond=AMS(**options), device="cpu")


def test_other_matrices_are_refused():
    A, precond = given()
    b = np.ones(A.shape[0])
    with pytest.raises(swell.InputError, match="got a matrix of complex128: expected a real one"):
        swell.solve(1j * A, b, method="gmres", precond=precond, device="cpu")
    with pytest.raises(swell.InputError, match="AMS needs a Hermitian matrix"):
        swell.solve(A + sp.csr_array(np.triu(np.ones(A.shape))), b, method="gmres", precond=precond, device="cpu")
    def of(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        with pytest.raises(swell.InputError, match="AMS works on one device"):
            swell.solve(M, np.ones(M.rows.stop - M.rows.start), method="cg", precond=precond)
        return True
    assert distributed.run(2, of) == [True, True]


@pytest.mark.parametrize("arguments, words", [(((4,),), "two or three axes"), (((4, 1),), "at least 2 cells"),
                                              (((4, 4), -1.0), "mass=-1.0")])
def test_curl_curl_refuses(arguments, words):
    with pytest.raises(swell.InputError, match=words):
        gallery.curl_curl(*arguments)


def test_curl_curl_annihilates_gradients():
    for shape in ((4, 5), (3, 4, 5)):
        A, gradient, edges = gallery.curl_curl(shape, 0.0)
        assert abs(A - A.T).max() < 1e-12 and abs(A @ gradient).max() < 1e-12
        values = np.linalg.eigvalsh(A.toarray())
        assert values[0] > -1e-10 and (values < 1e-10).sum() == gradient.shape[1] and (edges.sum(axis=1) > 0).all()
