"""BDDC beyond symmetric positive definite matrices: convection, waves, Hermitian and indefinite problems."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.conftest import space_or_skip

import swell
from swell import gallery
from swell.core.errors import FactorisationError
from swell.formats.csr import CSRMatrix
from swell.preconditioners.bddc.splitting import split
from swell.preconditioners.bddc.symmetry import GENERAL, HERMITIAN, SYMMETRIC, symmetry_of

RNG = np.random.default_rng(4)


def square(elements, parts, element):
    """Bilinear elements with one element matrix on a square of parts² subdomains of elements² elements."""
    nodes, found = np.arange((elements * parts + 1) ** 2).reshape(elements * parts + 1, -1), []
    for i, j in np.ndindex(parts, parts):
        own = nodes[i * elements:(i + 1) * elements + 1, j * elements:(j + 1) * elements + 1]
        cells = np.stack([own[:-1, :-1], own[:-1, 1:], own[1:, :-1], own[1:, 1:]], -1).reshape(-1, 4)
        dofs, place = np.unique(cells, return_inverse=True)
        place = place.reshape(-1, 4)
        rows, columns = np.repeat(place, 4, axis=1).ravel(), np.tile(place, 4).ravel()
        values = np.tile(element.ravel(), len(cells))
        found.append((sp.coo_array((values, (rows, columns)), (dofs.size,) * 2).tocsr(), dofs))
    return swell.Subdomains(found)


def elements(k2h2=0.0, damping=0.0, wind=0.0, phase=0.0):
    """The element matrix of −Δu − k²(1 − i damping) u + wind·∇u, in units of h; ``phase`` turns it into a Hermitian one
    with complex couplings."""
    stiff, mass = np.array([[1, -1], [-1, 1.0]]), np.array([[2, 1], [1, 2.0]]) / 6
    drift = np.array([[0, 0.5], [-0.5, 0]])
    K, M = np.kron(stiff, mass) + np.kron(mass, stiff), np.kron(mass, mass)
    E = K - k2h2 * (1 - 1j * damping) * M + wind * (np.kron(mass, drift) + np.kron(drift, mass)) + 0.02 * M
    if phase:
        turn = np.exp(1j * phase * np.array([0, 1, 2, 3]))
        E = turn[:, None].conj() * E * turn + 1e-3 * np.eye(4)
    return E.real if not np.abs(E.imag).max() else E


CASES = {"complex symmetric": (elements(0.1, 0.05), SYMMETRIC), "nonsymmetric": (elements(wind=0.5), GENERAL),
         "complex nonsymmetric": (elements(0.1, 0.05, 0.5), GENERAL), "Hermitian": (elements(phase=0.3), HERMITIAN),
         "indefinite": (elements(0.1), HERMITIAN)}


@pytest.fixture(params=CASES)
def case(request):
    element, symmetry = CASES[request.param]
    return square(6, 3, element), symmetry


def textbook(subdomains, constraints):
    """M by its definition, dense."""
    from tests.preconditioners.bddc.test_bddc import textbook as definition

    class System:
        pass

    system = System()
    system.A, system.subdomains = System(), subdomains
    system.A.to_scipy = subdomains.assemble
    return definition(system, constraints)


@pytest.mark.parametrize("interior", ["direct", "blocks"])
def test_it_is_what_its_definition_says(case, device, interior):
    """And its adjoint is the adjoint."""
    space, (subdomains, symmetry) = space_or_skip(device), case
    assert symmetry_of(subdomains) is symmetry
    A, expected = CSRMatrix.from_scipy(subdomains.assemble(), space), textbook(subdomains, "cef")
    if symmetry is not GENERAL:
        assert abs(expected - symmetry.mirror(expected)).max() < 1e-11 * abs(expected).max()
    with space.active(A.shape[0]):
        operator = swell.BDDC(subdomains=subdomains, interior=interior).build(A)
        for apply, M in ((operator.apply, expected), (operator.apply_adjoint, expected.conj().T)):
            x = RNG.standard_normal(A.shape[0]) + (1j * RNG.standard_normal(A.shape[0]) if A.dtype.kind == "c" else 0)
            y = RNG.standard_normal(A.shape[0]).astype(A.dtype)
            out = space.from_host(y.copy())
            apply(space.from_host(x), out, 2, -1)
            assert abs(space.to_host(out) - (2 * M @ x - y)).max() < 1e-10 * abs(M).sum(axis=1).max()
    positive = symmetry is HERMITIAN and np.linalg.eigvalsh(subdomains.assemble().toarray())[0] > 0
    assert operator.spd == bool(positive) and operator.self_adjoint is (False if symmetry is GENERAL else None)


@pytest.mark.parametrize("settings", [{}, {"interior": "blocks"}, {"levels": 3}, {"dense_lu": "pcm(x=8)"},
                                      {"coarse": "ilu0"}, {"averages": "basis"}])
def test_iterations(case, settings):
    """GMRES and, where A has its symmetry, COCG; far fewer iterations than without."""
    subdomains, symmetry = square(6, 6, CASES["nonsymmetric"][0]) if case[1] is GENERAL else case[0], case[1]
    if settings.get("coarse") and symmetry is HERMITIAN:
        settings = {"coarse": "smoothed_aggregation"}
        if subdomains.dtype.kind == "c" or swell.BDDC(subdomains=subdomains).build(
                CSRMatrix.from_scipy(subdomains.assemble(), space_or_skip("cpu"))).spd is False:
            pytest.skip("a coarse problem that no multigrid is for")
    A = subdomains.assemble()
    b = RNG.standard_normal(A.shape[0]).astype(A.dtype)
    for method in ("gmres(restart=100)", *(["cocg"] if symmetry is SYMMETRIC else [])):
        r = swell.solve(A, b, method=method, precond=swell.BDDC(subdomains=subdomains, **settings), maxiter=100)
        assert r.converged and r.iterations < 30, (method, r.iterations)
        assert np.linalg.norm(b - A @ r.x) <= 1e-8 * np.linalg.norm(b) * 1.01


@pytest.mark.parametrize("peclet", [1.0, 100.0])
def test_an_assembled_convective_matrix(peclet):
    """It is split into coercive subdomains; their matrices add up to it, and their symmetric parts are semidefinite."""
    A = gallery.convection_diffusion((24, 24), peclet, "upwind").tocsr()
    owner = np.arange(576) // 24 // 6 * 4 + np.arange(576) % 24 // 6
    subdomains = split(A, owner)
    assert abs(subdomains.assemble() - A).max() < 1e-12 * abs(A).max()
    least = min(np.linalg.eigvalsh((m + m.T).toarray())[0] for m in subdomains.matrices)
    assert least > -1e-12 * abs(A).max()
    b = RNG.standard_normal(576)
    for method in ("gmres", "bicgstab", "qmr"):
        r = swell.solve(A, b, method=method, precond=swell.BDDC(subdomains=subdomains), maxiter=60)
        assert r.converged and r.iterations < 25, (method, r.iterations)


def test_an_approximate_interior_of_a_nonsymmetric_matrix():
    A = gallery.convection_diffusion((24, 24), 20.0, "upwind")
    b = RNG.standard_normal(576)
    exact, found = (swell.solve(A, b, method="gmres", precond=swell.BDDC(domains=4, partition="rows", interior=one))
                    for one in ("direct", "ilu0"))
    assert found.converged and exact.iterations <= found.iterations < 4 * exact.iterations + 10


def test_single_precision_waves():
    subdomains = CASES["complex symmetric"][0]
    subdomains = square(6, 3, subdomains)
    A = subdomains.assemble().astype(np.complex64)
    r = swell.solve(A, np.ones(A.shape[0], np.complex64), method="gmres", rtol=1e-4, maxiter=40,
                    precond=swell.BDDC(subdomains=subdomains, interior="blocks"))
    assert r.converged


def resonant(distance):
    """A square whose interiors have an eigenvalue ``distance`` next to zero."""
    E, M = elements(), np.kron(np.array([[2, 1], [1, 2.0]]), np.array([[2, 1], [1, 2.0]])) / 36
    inner = square(6, 1, E).matrices[0], square(6, 1, M).matrices[0]
    own = np.flatnonzero(np.pad(np.ones((5, 5), bool), 1).ravel())
    from scipy.linalg import eigh
    K, M_II = (one.toarray()[np.ix_(own, own)] for one in inner)
    return square(6, 3, E - (eigh(K, M_II, eigvals_only=True)[0] + distance) * M)


@pytest.mark.parametrize("interior", ["direct", "blocks"])
def test_a_resonant_interior_is_refused(interior):
    """By number, with what to do; a little beside the resonance it works.

    The interior is singular to rounding, and its Cholesky factorisation may succeed by chance."""
    exact, near = resonant(0.0), resonant(1e-3)
    with pytest.raises(FactorisationError, match=r"interior of subdomain \d resonates.*smaller subdomains"):
        swell.BDDC(subdomains=exact, interior=interior).build(CSRMatrix.from_scipy(exact.assemble(),
                                                                                   space_or_skip("cpu")))
    A = near.assemble()
    r = swell.solve(A, np.ones(A.shape[0]), method="gmres", precond=swell.BDDC(subdomains=near, interior=interior),
                    maxiter=60)
    assert r.converged and any("not positive definite" in note for note in r.notes)


def chain(elements, parts, damping=0.0, held=False):
    """A chain of springs and masses at a frequency that makes all its diagonal entries zero, held at its end, and with
    ``held`` at its beginning, too."""
    E = np.array([[-1j * damping, -1], [-1, -1j * damping]])
    found = []
    for part in range(parts):
        K = np.zeros((elements + 1,) * 2, complex)
        for e in range(elements):
            K[e:e + 2, e:e + 2] += E
        free = np.arange(held and part == 0, elements + (part < parts - 1))
        K = K[np.ix_(free, free)]
        found.append((sp.csr_array(K if damping else K.real), part * elements + free - held))
    return swell.Subdomains(found)


@pytest.mark.parametrize("levels", [2, 3])
def test_copies_without_diagonal_entries_have_equal_weights(levels):
    """A division by their sum would make NaN."""
    subdomains = chain(7, 5, held=True)
    A = subdomains.assemble()
    assert not A.diagonal().any() and np.linalg.cond(A.toarray()) < 1e3
    r = swell.solve(A, np.ones(34), method="gmres", precond=swell.BDDC(subdomains=subdomains, levels=levels))
    assert r.converged and np.linalg.norm(A @ r.x - 1) < 1e-7


@pytest.mark.parametrize("interior", ["direct", "blocks"])
def test_a_singular_interior_is_no_singular_matrix(interior):
    """Seven masses between two held ones have the eigenvalue zero here; the chain as a whole has not."""
    subdomains = chain(8, 5)
    A = subdomains.assemble()
    assert np.linalg.cond(A.toarray()) < 100
    r = swell.solve(A, np.ones(40), method="gmres", precond=swell.BDDC(subdomains=subdomains, interior=interior))
    assert r.reason is swell.Reason.NOT_FACTORED and "interior" in r.notes[0], str(r)
    assert not any("and so is A" in note for note in r.notes)
    damped = chain(8, 5, 0.1)
    assert swell.solve(damped.assemble(), np.ones(40), method="gmres",
                       precond=swell.BDDC(subdomains=damped, interior=interior)).converged


def test_adaptive_constraints_are_for_real_symmetric_matrices():
    for name in ("nonsymmetric", "complex symmetric", "Hermitian"):
        subdomains = square(3, 2, CASES[name][0])
        with pytest.raises(swell.InputError, match="adaptive constraints bound energies"):
            swell.BDDC(subdomains=subdomains, adaptive=10).build(
                CSRMatrix.from_scipy(subdomains.assemble(), space_or_skip("cpu")))


def test_cg_is_refused_for_a_nonsymmetric_matrix():
    subdomains = square(3, 2, CASES["nonsymmetric"][0])
    with pytest.raises(swell.InputError, match="needs a"):
        swell.solve(subdomains.assemble(), np.ones(49), method="cg", precond=swell.BDDC(subdomains=subdomains))


@pytest.mark.parametrize("parts, words", [([], "no parts came"), (None, "None came"), (3, "3 came")])
def test_subdomains_are_a_list(parts, words):
    with pytest.raises(swell.InputError, match=f"Subdomains: {words}: expected a list of"):
        swell.Subdomains(parts)
