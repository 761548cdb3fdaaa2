"""The shifted Laplacian: what is shifted, with which sign, and what it is good for."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import rng
from tests.conftest import space_or_skip

import swell
from swell import gallery
from swell.core.registry import resolve
from swell.formats.csr import CSRMatrix


@pytest.fixture(scope="module")
def waves():
    """(K, ω²M, A) of a square with hard walls and a little damping: M is lumped."""
    K = gallery.neumann((20, 20))
    W = sp.identity(400, format="csr") * 0.3
    return K, W, sp.csr_matrix(K - W * (1 - 0.02j))


def built(settings, A, space):
    return settings.build(CSRMatrix.from_scipy(sp.csr_matrix(A), space))


def test_the_definition_with_a_mass_and_exact_inner_solves(space):
    """M = P⁻¹ with exact solves, P = A + iβ ω²M; also for a mass with fewer places than A, and for A conjugated."""
    A = gallery.helmholtz((9, 8))
    W = sp.csr_matrix(sp.diags(rng().uniform(0.1, 0.2, 72)))
    x = rng().standard_normal((72, 2)) @ [1, 1j]
    with space.active():
        for matrix, sign in ((A, 1), (A.conj(), -1)):
            M = built(swell.ShiftedLaplacian(shift=0.7, inner="direct", mass=W), matrix, space)
            out = space.empty(72, "complex128")
            M.apply(space.from_host(x), out)
            P = (matrix + sign * 0.7j * W).toarray()
            assert np.allclose(space.to_host(out), np.linalg.solve(P, x), rtol=1e-11)
            if space.name == "cpu":
                M.apply_adjoint(x, out)
                assert np.allclose(out, np.linalg.solve(P.conj().T, x), rtol=1e-11)


def test_row_sums_show_the_mass(space, waves):
    """With a lumped mass the plain matrix knows as much as one with the mass; β = 0 is the inner preconditioner."""
    K, W, A = waves
    x = rng().standard_normal(400) + 0j
    results = []
    with space.active():
        for settings in (swell.ShiftedLaplacian(), swell.ShiftedLaplacian(mass=W), swell.ShiftedLaplacian(shift=0),
                         swell.ILU()):
            out = space.empty(400, "complex128")
            built(settings, A, space).apply(space.from_host(x), out)
            results.append(space.to_host(out))
    assert np.allclose(results[0], results[1], rtol=1e-12) and np.array_equal(results[2], results[3])
    assert abs(results[0] - results[3]).max() > 1e-2 * abs(results[3]).max()


def test_a_matrix_without_mass_says_so():
    A = (gallery.poisson2d(8) + 0.1j * sp.identity(64)).tocsr()
    r = swell.solve(A, np.ones(64), method="cocg", precond="shifted_laplacian")
    assert r.converged and any("nothing was shifted" in note for note in r.notes)


def test_update_is_a_fresh_setup(space, waves):
    """New values, and a mass whose values were changed in place."""
    K, W, A = waves
    W, x = W.copy(), space.from_host(np.ones(400) + 0j)
    settings = swell.ShiftedLaplacian(mass=W)
    with space.active():
        M = built(settings, A, space)
        W.data *= 2
        other = sp.csr_matrix(K - W * (1 - 0.02j))
        M.update(CSRMatrix.from_scipy(other, space))
        ours, fresh = space.empty(400, "complex128"), space.empty(400, "complex128")
        M.apply(x, ours)
        built(settings, other, space).apply(x, fresh)
        assert bool((ours == fresh).all())


def test_symmetry_serves_cocg_and_what_lacks_it_is_refused(device, waves):
    b = np.ones(400)
    r = swell.solve(waves[2], b, method="cocg", precond="shifted_laplacian(shift=0.3)", rtol=1e-9, device=device)
    assert r.converged and "lumped from row sums" in str(r)
    with pytest.raises(swell.InputError, match="M = Mᵀ"):
        swell.solve(waves[2], b, method="cocg", precond="shifted_laplacian(inner=schwarz(domains=3))", device=device)
    sweeps = "shifted_laplacian(inner=gauss_seidel(sweeps=2))"
    assert swell.solve(waves[2], b, method="gmres(restart=200)", precond=sweeps, device=device).converged


def test_the_shift_makes_stable_what_ilu_of_A_is_not(device):
    """Four nodes a wavelength, hardly damped: ILU(0) of A serves cocg worse than that of P."""
    A = gallery.helmholtz((24, 24, 24), k2h2=2.4, damping=0.01)
    b = rng().standard_normal(A.shape[0])
    plain, shifted = (swell.solve(A, b, method="cocg", precond=p, maxiter=2500, rtol=1e-7, device=device)
                      for p in ("ilu0", "shifted_laplacian"))
    assert shifted.converged and (not plain.converged or plain.iterations > 1.2 * shifted.iterations)


def test_the_advisor_tries_it_where_ilu_failed(waves):
    """It contends; with the user's preconditioner the method is cocg where that is symmetric."""
    A = waves[2]
    choices = [(c.name("method"), c.name("precond")) for c in swell.prepare(A).choices]
    assert set(choices) == {("cocg", "ilu"), ("cocg", "jacobi"), ("cocg", "shifted_laplacian"), ("direct", "none"),
                          ("gmres", "jacobi")}
    for precond, method in (("shifted_laplacian(inner=jacobi)", "cocg"),
                            ("shifted_laplacian(inner=ilu(drop=0.001))", "bicgstab"),
                            ("schwarz(kind=weighted)", "cocg"), ("schwarz", "bicgstab")):
        choices = swell.prepare(A, precond=precond).choices
        assert choices[0].name("method") == method and "shifted_laplacian" not in [c.name("precond") for c in choices[1:-1]]


def test_the_advisor_gets_through_where_ilu_fails():
    """Six nodes a wavelength, undamped inside: ILU(0) of A stays where it is."""
    A = gallery.helmholtz((40, 40), k2h2=1.0, damping=0.01)
    b = A @ rng().standard_normal(1600)
    assert swell.solve(A, b, maxiter=400).converged
    assert not swell.solve(A, b, method="cocg", precond="ilu0", maxiter=400).converged
    shifted = swell.ShiftedLaplacian(inner=swell.ILU(level=1))
    assert swell.solve(A, b, method="cocg", precond=shifted, maxiter=400).converged


@pytest.mark.data
def test_the_real_cabin(data):
    """300 Hz, 18 nodes a wavelength: with ILU(0) the shift neither helps nor harms; ILU(1) of it takes two thirds."""
    from tests.support.cases import real_matrix
    A = real_matrix(data, "car_cabin")
    b = np.zeros(A.shape[0], complex)
    b[1234] = 1
    plain, shifted, more = (swell.solve(A, b, method="cocg", precond=p, rtol=1e-9) for p in (
        "ilu0", "shifted_laplacian", "shifted_laplacian(inner=ilu(level=1))"))
    assert plain.converged and shifted.converged and more.converged
    assert shifted.products < 300 and 0.9 < shifted.iterations / plain.iterations < 1.1
    assert more.iterations < 0.75 * plain.iterations


@pytest.mark.parametrize("settings, words", [({"shift": -0.5}, "at least 0"), ({"shift": "much"}, "at least 0"),
                                             ({"inner": None}, "inner=None"), ({"inner": "ilu9"}, "unknown precond"),
                                             ({"mass": 3.0}, "sparse matrix, or None")])
def test_settings_that_mean_nothing(settings, words):
    with pytest.raises(swell.InputError, match=words):
        swell.ShiftedLaplacian(**settings)


def test_masses_that_do_not_belong(waves):
    A, space = waves[2], space_or_skip("cpu")
    far = sp.csr_matrix(([1.0], ([3], [300])), A.shape)
    for mass, words in ((sp.identity(5, format="csr"), r"shape \(5, 5\)"), (far, r"entry \(3, 300\)"),
                        (sp.identity(400, format="coo"), "CSR")):
        with pytest.raises(swell.InputError, match=words):
            built(swell.ShiftedLaplacian(mass=mass), A, space)
    for more in ({"scaling": "jacobi"}, {"ordering": "rcm"}):
        with pytest.raises(swell.InputError, match="without ordering and scaling"):
            swell.solve(A, np.ones(400), method="gmres", precond="shifted_laplacian", **more)
    with pytest.raises(swell.InputError, match="is complex, and the system is float64"):
        swell.solve(A.real, np.ones(400), method="gmres", precond="shifted_laplacian")


def test_registered():
    assert resolve("precond", "shifted_laplacian(shift=0.2, inner=jacobi)") == swell.ShiftedLaplacian(0.2, "jacobi")
