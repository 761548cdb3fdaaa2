"""Multigrid of nonsymmetric and complex matrices: against plain formulas, adjoints, updates, iterations, and messages."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.conftest import space_or_skip
from tests.support.interpolation import plain_extended

import swell
from swell import gallery
from swell.formats.csr import CSRMatrix
from swell.preconditioners.amg.balancing import balancing
from swell.preconditioners.amg.coarsest import GeneralInverse, HermitianInverse
from swell.preconditioners.amg.interpolation import interpolation
from swell.preconditioners.amg.pmis import coarse_numbers, pmis
from swell.preconditioners.amg.real_part import mirrored, real_part
from swell.preconditioners.amg.strength import strong_links


def turned(A, seed=3):
    """D̄ A D with random phases D: Hermitian if A is."""
    phases = np.exp(0.4j * np.random.default_rng(seed).random(A.shape[0]))
    return sp.csr_array(sp.diags_array(phases.conj()) @ A @ sp.diags_array(phases))


def waves(n, shift=0.5):
    """A shifted Helmholtz matrix, complex symmetric."""
    P = sp.csr_array(gallery.poisson2d(n))
    return sp.csr_array(P - (0.2 - 0.2j * shift) * sp.eye_array(P.shape[0]))


SYSTEMS = {
    "upwind": lambda: gallery.convection_diffusion((14, 14), 5.0, "upwind"),
    "centred": lambda: gallery.convection_diffusion((6, 6, 6), 1.0),
    "complex symmetric": lambda: waves(14),
    "hermitian": lambda: turned(gallery.poisson2d(14)),
    "general": lambda: (1 + 0.2j) * sp.csr_array(gallery.convection_diffusion((14, 14), 5.0, "upwind")),
}
EXPECTED = {"upwind": (False, False), "centred": (False, False), "complex symmetric": (False, True),
            "hermitian": (True, False), "general": (False, False)}


def moved(A, space, dtype=None):
    A = sp.csr_array(A)
    A.sort_indices()
    return CSRMatrix.from_scipy(A if dtype is None else A.astype(dtype), space)


def applied(M, x, adjoint=False, alpha=1):
    out = M.space.xp.full(M.shape[0], np.nan, M.dtype)
    (M.apply_adjoint if adjoint else M.apply)(x, out, alpha)
    return out


def vectors(space, n, dtype):
    values = np.random.default_rng(1).standard_normal((4, n))
    whole = np.dtype(dtype).kind == "c"
    return [space.from_host((a + 1j * b if whole else a).astype(dtype)) for a, b in (values[:2], values[2:])]


@pytest.mark.parametrize("options", [{}, {"restriction": "adjoint"}, {"degree": 3, "cycle": "W"}], ids=str)
@pytest.mark.parametrize("name", SYSTEMS)
def test_adjoint_and_symmetry(name, options, space):
    """(y, M x) = (Mᴴ y, x); M is as symmetric as A, and says so."""
    A = SYSTEMS[name]()
    hermitian, symmetric = EXPECTED[name]
    with space.active():
        M = swell.AMG(coarsest=15, dtype="float64", **options).build(moved(A, space))
        assert len(M.hierarchy.levels) >= 2
        x, y = vectors(space, A.shape[0], A.dtype)
        vdot, size = space.xp.vdot, abs(complex(space.xp.vdot(x, applied(M, x))))
        product = complex(vdot(y, applied(M, x)))
        assert abs(product - complex(vdot(applied(M, y, adjoint=True), x))) <= 1e-12 * size
        double = applied(M, y, True, 2) - 2 * applied(M, y, True)
        assert float(abs(double).max()) <= 1e-12 * float(abs(applied(M, y)).max())
        assert (abs(product - complex(vdot(applied(M, y), x))) <= 1e-12 * size) == hermitian
        assert (abs(complex(vdot(y.conj(), applied(M, x))) - complex(vdot(x.conj(), applied(M, y)))) <= 1e-12 * size
                ) == symmetric
        assert (M.inner.hermitian, M.inner.symmetric, M.spd) == (hermitian, symmetric, hermitian)
        assert M.self_adjoint == (hermitian or symmetric)


@pytest.mark.parametrize("options", [{}, {"restriction": "adjoint"}], ids=str)
@pytest.mark.parametrize("name", SYSTEMS)
def test_an_update_is_a_fresh_build(name, options, space):
    """Other values change the cycle and its adjoint; the first values bring every bit back."""
    A = sp.csr_array(SYSTEMS[name]())
    left = sp.diags_array(1 + 0.2 * np.random.default_rng(0).random(A.shape[0]))
    other = sp.csr_array(left @ A @ left)
    with space.active():
        M = swell.AMG(coarsest=15, **options).build(moved(A, space))
        x, _ = vectors(space, A.shape[0], A.dtype)
        before = [applied(M, x, adjoint) for adjoint in (False, True)]
        M.update(moved(other, space))
        between = [applied(M, x, adjoint) for adjoint in (False, True)]
        M.update(moved(A, space))
        for adjoint, first, changed in zip((False, True), before, between):
            assert bool((applied(M, x, adjoint) == first).all()) and not bool((changed == first).all())


def test_a_symmetry_that_comes_or_goes(space):
    """SIMPLE's first momentum matrix is symmetric, the next one is not: an update sets up anew."""
    A = sp.csr_array(gallery.convection_diffusion((14, 14), 5.0, "upwind"))
    still = sp.csr_array(gallery.convection_diffusion((14, 14), 0.0, "upwind"))
    still = sp.csr_array((still.data, still.indices, still.indptr), shape=still.shape)
    assert (still.indices == A.indices).all()
    with space.active():
        M = swell.AMG(coarsest=15).build(moved(still, space))
        x, _ = vectors(space, A.shape[0], A.dtype)
        first, revision = applied(M, x), M.revision
        assert M.spd
        M.update(moved(A, space))
        assert not M.spd and M.self_adjoint is False and M.revision > revision
        assert bool((applied(M, x) == applied(swell.AMG(coarsest=15).build(moved(A, space)), x)).all())
        M.update(moved(still, space))
        assert M.spd and bool((applied(M, x) == first).all())


# -- each step against its formula -------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", SYSTEMS)
def test_real_part_and_mirror(name, space):
    A = sp.csr_array(SYSTEMS[name]())
    A.data[A.indptr[3]:A.indptr[4]] = 0          # stored zeros: a row without a diagonal
    alone = sp.coo_array(([2.0], ([5], [90])), shape=A.shape)                  # an entry without a mirror image
    A = sp.csr_array(A + alone)
    full = A.toarray()
    d = np.diag(full)
    expected = (full * np.where(d == 0, 0, d.conj() / np.where(d == 0, 1, abs(d)))[:, None]).real
    with space.active():
        B = real_part(moved(A, space))
        mirror = B.with_values(mirrored(B, False)).to_scipy().toarray()
        found = B.to_scipy().toarray()
    if A.dtype.kind == "c":
        assert abs(found - expected).max() <= 1e-14 * abs(full).max()
    else:
        assert (found == full).all()
    assert (mirror == np.where(full != 0, found.T, 0))[full != 0].all()
    with space.active():
        assert mirrored(B, True) is B.data


@pytest.mark.parametrize("name", ["upwind", "centred"])
def test_extended_interpolation(name, space):
    A, s = SYSTEMS[name](), swell.AMG()
    with space.active():
        A = moved(A, space)
        strong = strong_links(A, s)
        state = pmis(A, strong, space.empty(0, np.uint8))
        numbers = coarse_numbers(A, state)
        found = interpolation(A, mirrored(A, False), strong, state, numbers, s).to_scipy().toarray()
        links = A.with_values(strong.astype(float)).to_scipy().toarray() > 0
        full, state, numbers = A.to_scipy().toarray(), space.to_host(state), space.to_host(numbers)
    expected = plain_extended(full, links, state, numbers, s.pmax)
    tied = ~np.isclose(found, expected, rtol=1e-12, atol=1e-13).all(axis=1)
    assert tied.mean() < 0.2 and np.allclose(found.sum(axis=1), expected.sum(axis=1))


@pytest.mark.parametrize("options", [{}, {"restriction": "adjoint"}], ids=str)
@pytest.mark.parametrize("name", SYSTEMS)
def test_galerkin_products(name, options, space):
    """Coarse matrices are R A P with a real P; the adjoint restriction interpolates Aᴴ."""
    with space.active():
        A = moved(SYSTEMS[name](), space)
        H = swell.AMG(coarsest=15, **options).build(A).hierarchy
        matrices = [M.to_scipy() for M in H.matrices]
        pairs = [(level.R.to_scipy(), level.P.to_scipy()) for level in H.levels]
        of_adjoint = swell.AMG(coarsest=15, **options).build(A.transpose(conjugate=True)).hierarchy
        other = of_adjoint.levels[0].P.to_scipy()
        assert all((scale > 0).all() for scale in map(space.to_host, balancing(H, 1.5)))
    for fine, coarse, (R, P) in zip(matrices, matrices[1:], pairs):
        assert P.dtype == R.dtype == np.float64
        assert abs(coarse - R @ fine @ P).max() <= 1e-12 * abs(fine).max()
    own = bool(options) and not any(EXPECTED[name])
    assert (abs(pairs[0][0] - pairs[0][1].T).max() > 0) == own
    assert not own or other.shape[0] == pairs[0][0].shape[1]


@pytest.mark.gpu
@pytest.mark.parametrize("name", SYSTEMS)
def test_devices_agree(name):
    """To the bit in coarse rows, P and all matrices."""
    found = []
    for device in ("cpu", "cuda"):
        space = space_or_skip(device)
        with space.active():
            H = swell.AMG(coarsest=15, restriction="adjoint").build(moved(SYSTEMS[name](), space)).hierarchy
            found.append([M.to_scipy() for level in H.levels for M in (level.A, level.P, level.R)])
    assert len(found[0]) == len(found[1])
    for a, b in zip(*found):
        assert (a.indices == b.indices).all() and (a.data == b.data).all()


# -- the coarsest level ------------------------------------------------------------------------------------------------

def solved(kind, A, space, dtype):
    with space.active():
        inverse = kind(moved(A, space), space.from_host(np.ones(A.shape[0])), np.dtype(dtype))
        return space.to_host(inverse.inverse).reshape(A.shape)


@pytest.mark.parametrize("kind, name", [(GeneralInverse, "upwind"), (GeneralInverse, "complex symmetric"),
                                        (GeneralInverse, "general"), (HermitianInverse, "hermitian")])
def test_dense_inverses(kind, name, space):
    A = SYSTEMS[name]()
    G = solved(kind, A, space, np.result_type(A.dtype))
    assert abs(G @ A.toarray() - np.eye(A.shape[0])).max() <= 1e-11


@pytest.mark.parametrize("whole", [False, True])
def test_singular_coarsest_levels(whole, space):
    """A pseudo-inverse, also with an exact zero pivot."""
    random = np.random.default_rng(2)
    A = -random.random((30, 30)) * (1 + 0.1j * whole)
    np.fill_diagonal(A, 0)
    np.fill_diagonal(A, -A.sum(axis=1))
    for case in (A, np.diag(np.r_[0.0, np.arange(1, 30)]) * (1 + 0j * whole), np.zeros((4, 4))):
        G = solved(GeneralInverse, sp.csr_array(case), space, case.dtype)
        assert abs(case @ G @ case - case).max() <= 1e-11 * max(abs(case).max(), 1) and np.isfinite(G).all()


# -- what it promises --------------------------------------------------------------------------------------------------

def run(A, b=None, **named):
    b = A @ np.random.default_rng(0).standard_normal(A.shape[0]) if b is None else b
    r = swell.solve(A, b, device="cpu", **{"rtol": 1e-8, "maxiter": 200, **named})
    assert np.linalg.norm(A @ r.x - b) <= 1.01 * named.get("rtol", 1e-8) * np.linalg.norm(b) or not r.converged
    return r


@pytest.mark.parametrize("peclet", [0.1, 1.0, 100.0])
def test_iterations_do_not_grow_with_n(peclet):
    found = [run(gallery.convection_diffusion((n, n), peclet, "upwind"), method="gmres", precond="amg")
             for n in (30, 60, 120, 180)]
    assert all(r.converged for r in found)
    assert max(r.iterations for r in found) <= 22


@pytest.mark.parametrize("method", ["gmres", "fgmres", "bicgstab", "idrs", "bicgstabl", "tfqmr", "qmr"])
@pytest.mark.parametrize("name", ["upwind", "general", "complex symmetric"])
@pytest.mark.parametrize("single", [False, True])
def test_methods(method, name, single):
    A = SYSTEMS[name]()
    A = sp.csr_array(A).astype({"f": np.float32, "c": np.complex64}[A.dtype.kind]) if single else A
    r = run(A, method=method, precond="amg(coarsest=20)", rtol=1e-4 if single else 1e-8)
    assert r.converged and r.iterations <= 30


@pytest.mark.parametrize("method, name, most", [("cocg", "complex symmetric", 16), ("cocr", "complex symmetric", 16),
                                                ("cg", "hermitian", 14), ("minres", "hermitian", 20)])
def test_short_recurrences(method, name, most):
    """COCR updates z = M r by a recurrence: a cycle in single precision would end it at 1e-7."""
    dtype = "float64" if method == "cocr" else "float32"
    r = run(SYSTEMS[name](), method=method, precond=f"amg(coarsest=20,dtype={dtype})")
    assert r.converged and r.iterations <= most


def test_methods_that_need_symmetry_refuse():
    with pytest.raises(swell.InputError, match="minres|Hermitian"):
        run(SYSTEMS["upwind"](), method="minres", precond="amg")


def test_a_singular_system():
    """Convection and diffusion without boundary values: constants are the right null space."""
    A = gallery.convection_diffusion((40, 40), 3.0, "upwind").tolil()
    A.setdiag(0)
    A = sp.csr_array(A)
    A = sp.csr_array(sp.diags_array(-A.sum(axis=1)) + A)
    r = run(A, method="gmres", precond="amg(coarsest=50)", rtol=1e-7)
    assert r.converged and r.iterations <= 90          # the count moves with rounding


def test_shifted_laplacian_with_multigrid():
    A = waves(60, 0.0) + 0.02j * sp.eye_array(3600)
    M = swell.ShiftedLaplacian(inner="amg", shift=0.5)
    r = run(sp.csr_array(A), method="cocg", precond=M)
    assert r.converged


def test_single_precision_costs_few_iterations():
    A = gallery.convection_diffusion((80, 80), 3.0, "upwind")
    counts = [run(A, method="gmres", precond=swell.AMG(dtype=dtype)).iterations for dtype in ("float32", "float64")]
    assert abs(counts[0] - counts[1]) <= 2


@pytest.mark.parametrize("A, words", [
    (lambda: -gallery.convection_diffusion((9, 9)), "positive diagonal, and the least .*negate A and b"),
    (lambda: -1j * sp.csr_array(gallery.poisson2d(9)), "positive real parts.*conjugate of a diagonal entry"),
    (lambda: turned(sp.csr_array(gallery.poisson2d(20)) - 2 * sp.eye_array(400)),
     "positive definite Hermitian matrix, and its coarsest level has an eigenvalue"),
])
def test_matrices_that_cannot_work(A, words):
    import re
    A = sp.csr_array(A())
    r = run(A, np.ones(A.shape[0]), method="gmres", precond="amg(coarsest=400)")
    assert not r.converged and r.reason is swell.Reason.NOT_FACTORED
    assert any(re.search(words, note) for note in r.notes), r.notes


def test_an_unknown_restriction():
    with pytest.raises(swell.InputError, match="restriction"):
        swell.AMG(restriction="left")
