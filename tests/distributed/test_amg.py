"""Multigrid across ranks: the coarse rows, and all bits of the levels, of one device; the same iterations."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.across import gpus, on_gpus
from tests.support.cases import flat_bilinear, rng
from tests.support.during import during

import swell
from swell import distributed, gallery
from swell.advisor import choose
from swell.core.errors import FactorisationError, InputError
from swell.distributed.amg import galerkin, operator
from swell.distributed.launcher import launched

some_ranks = pytest.mark.parametrize("ranks", [launched()] if launched() > 1 else [2, 3], indirect=True)
two_ranks = pytest.mark.parametrize("ranks", [launched()] if launched() > 1 else [2], indirect=True)

pytestmark = pytest.mark.usefixtures("few_rows")


def flat_triangles(n=30):
    """Poisson with some large positive couplings, whose rows stay on every level."""
    A = gallery.poisson2d(n).tolil()
    for k in (37, 400, 611):
        A[k, k + 2] = A[k + 2, k] = 0.8
        A[k, k] += 0.8
        A[k + 2, k + 2] += 0.8
    return A.tocsr()


SYSTEMS = {"poisson2d": lambda: gallery.poisson2d(31), "poisson3d": lambda: gallery.poisson3d(11),
           "jumps": lambda: gallery.jumping_diffusion((10, 11, 9), block=3), "flat triangles": flat_triangles,
           "random": lambda: scattered(900), "convection": lambda: gallery.get("convection_diffusion2d", 900),
           "flat bilinear": lambda: flat_bilinear(30, 31, 10)}


def scattered(n):
    """A graph Laplacian whose rows are numbered at random: every rank has links to every other one."""
    A, order = gallery.poisson2d(30), rng().permutation(n)
    return sp.csr_array(A[order][:, order])


def on_rank_of(A, device="cpu", **scattering):
    return lambda communicator: distributed.scatter(communicator, A if communicator.rank == 0 else None, device=device,
                                                    **scattering)


def levels_of(M, communicator):
    """(state, numbers of P and of the next matrix: each of all ranks, in the order of rows) of the levels in parts."""
    space = M.space
    found = []
    for level in M.hierarchy.levels:
        parts = [space.to_host(a) for a in (level._state[level.window.own], level.P.csr.data, level.next.csr.data)]
        found.append([np.concatenate(part) for part in zip(*communicator.allgather(parts))])
    return found


def same_bits(A, M, found):
    one = M.hierarchy
    assert found and len(found) <= len(one.levels)
    for k, (level, (state, P, C)) in enumerate(zip(one.levels, found)):
        host = M.space.to_host
        assert np.array_equal(state, host(level.interpolation.right.state)), f"the states of level {k + 1}"
        assert np.array_equal(P, host(level.P.data)), f"P of level {k + 1}"
        assert np.array_equal(C, host(level.RAP.C.data)), f"the matrix of level {k + 2}"


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_levels_of_one_device(ranks, name):
    """Bit for bit, for any number of ranks; the cycle to rounding, CG in as many iterations."""
    A, method = SYSTEMS[name](), "gmres" if name == "convection" else "cg"
    b = rng().standard_normal(A.shape[0])
    one_rank = swell.prepare(A, method=method, precond="amg")
    reference = one_rank.solve(b)

    def on_rank(communicator):
        M = on_rank_of(A)(communicator)
        solver = swell.prepare(M, method=method, precond="amg")
        result = solver.solve(b[M.rows])
        return levels_of(solver.M.operator, communicator), M.gather(result.x), result

    for found, x, result in ranks.run(on_rank):
        same_bits(A, one_rank.M.operator, found)
        assert result.converged and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)
        assert abs(result.iterations - reference.iterations) <= 1


@some_ranks
def test_options(ranks):
    """Each option takes the iterations that it takes on one device; single and double precision of A."""
    A = SYSTEMS["poisson2d"]()
    b = rng().standard_normal(A.shape[0])
    for settings, kind in ((swell.AMG(degree=2), "float64"), (swell.AMG(cycle="W"), "float64"),
                           (swell.AMG(interpolation="direct", pmax=2), "float64"),
                           (swell.AMG(smoother="l1_jacobi", degree=2, dtype="float64"), "float64"),
                           (swell.AMG(strength=0.5, positive=0), "float32")):
        with during(settings=settings):
            matrix, rtol = A.astype(kind), 1e-8 if kind == "float64" else 1e-5
            reference = swell.solve(matrix, b.astype(kind), method="cg", precond=settings, rtol=rtol)

            def on_rank(communicator):
                M = on_rank_of(matrix)(communicator)
                return swell.solve(M, b[M.rows].astype(kind), method="cg", precond=settings, rtol=rtol)

            for result in ranks.run(on_rank):
                assert result.converged and abs(result.iterations - reference.iterations) <= 1


@some_ranks
def test_new_values(ranks):
    """An update gives the bits of a fresh setup on the same coarse rows; in chunks, too."""
    A = SYSTEMS["jumps"]()
    change = sp.diags_array(1 + 0.1 * rng().random(A.shape[0]))
    new = sp.csr_array(change @ A @ change)
    one_rank = swell.prepare(A, method="cg", precond="amg")
    one_rank.update(new)

    def on_rank(communicator):
        M, later = on_rank_of(A)(communicator), on_rank_of(new)(communicator)
        solver = swell.prepare(M, method="cg", precond="amg")
        solver.update(later)
        x = np.ones(M.own.shape[0])
        assert solver.solve(x).converged
        return levels_of(solver.M.operator, communicator)

    for found in ranks.run(on_rank):
        same_bits(A, one_rank.M.operator, found)


@two_ranks
def test_chunks_change_no_bit(ranks, monkeypatch):
    A = SYSTEMS["poisson3d"]()
    one_rank = swell.prepare(A, method="cg", precond="amg")
    monkeypatch.setattr(galerkin, "SHARE", 1e-6)

    def on_rank(communicator):
        M = swell.AMG().build(on_rank_of(A)(communicator))
        assert all(level._product.chunks > 3 for level in M.hierarchy.levels)
        M.update(on_rank_of(A)(communicator))
        return levels_of(M, communicator)

    for found in ranks.run(on_rank):
        same_bits(A, one_rank.M.operator, found)


@two_ranks
def test_short_of_memory(ranks, monkeypatch):
    """Levels are dropped one after the other; an update builds them anew, and a note says so."""
    A = SYSTEMS["poisson2d"]()
    b = rng().standard_normal(A.shape[0])
    monkeypatch.setattr(operator, "KEPT", np.inf)

    def on_rank(communicator):
        M, scaled = on_rank_of(A)(communicator), on_rank_of(3 * A)(communicator)
        solver = swell.prepare(M, method="cg", precond="amg")
        first = solver.solve(b[M.rows])
        kept = [level.nbytes for level in solver.M.hierarchy.levels]
        solver.update(scaled)
        return first, solver.solve(b[M.rows]), kept

    for first, second, kept in ranks.run(on_rank):
        assert first.converged and second.converged and second.iterations == first.iterations
        assert not any(kept) and any("build multigrid anew" in note for note in second.notes)


@two_ranks
def test_singular_systems(ranks):
    """Constants span the null space: the gathered levels hold a singular matrix."""
    G = gallery.poisson2d(25)
    A = sp.csr_array(G - sp.diags_array(np.asarray(G.sum(axis=1)).ravel()))
    b = rng().standard_normal(625)
    b -= b.mean()
    reference = swell.solve(A, b, method="cg", precond="amg", nullspace="constants")

    def on_rank(communicator):
        M = on_rank_of(A)(communicator)
        result = swell.solve(M, b[M.rows], method="cg", precond="amg", nullspace="constants")
        return M.gather(result.x), result

    for x, result in ranks.run(on_rank):
        assert result.converged and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)
        assert abs(result.iterations - reference.iterations) <= 1


@two_ranks
def test_where_coarsening_ends(ranks):
    """No row has a strong link: the smoother works alone, in parts. Few rows: all is gathered."""
    A = sp.csr_array(gallery.poisson2d(20) + 40 * sp.eye_array(400))

    def on_rank(communicator):
        M = on_rank_of(A)(communicator)
        alone = swell.solve(M, np.ones(M.own.shape[0]), method="cg", precond="amg")
        small = on_rank_of(gallery.poisson2d(8))(communicator)
        whole = swell.prepare(small, method="cg", precond="amg")
        return alone, whole.solve(np.ones(small.own.shape[0])), len(whole.M.hierarchy.levels)

    for alone, whole, levels in ranks.run(on_rank):
        assert alone.converged and any("rows would stay" in note for note in alone.notes)
        assert whole.converged and levels == 0


@two_ranks
def test_the_choice(ranks, monkeypatch):
    """With nothing named, large symmetric systems get multigrid; elastic ones get the one of aggregates."""
    monkeypatch.setattr(choose, "MULTIGRID_FROM", 300)

    def on_rank(communicator):
        found = []
        for A in (gallery.poisson2d(20), gallery.elasticity2d(13)):
            M = on_rank_of(A)(communicator)
            found.append(swell.solve(M, np.ones(M.own.shape[0])))
        return found

    for diffusion, elasticity in ranks.run(on_rank):
        assert diffusion.converged and any("AMG()" in line for line in diffusion.configuration)
        assert elasticity.converged and any("SmoothedAggregation()" in line for line in elasticity.configuration)


@two_ranks
def test_bad_input(ranks):
    """The errors of one device, and of what works there alone, on every rank, wherever the fault lies."""
    A = gallery.poisson2d(20)
    one_sided = A.tolil()
    one_sided[390, 399] = -0.5
    negative = sp.csr_array(gallery.poisson2d(20) - sp.diags_array(np.r_[np.zeros(399), 9.0]))

    def on_rank(communicator):
        for matrix, settings, text in ((one_sided.tocsr(), swell.AMG(), "none at"),
                                       (A * (1 + 0.1j), swell.AMG(), "matrix of complex128: expected a real one"),
                                       (A, swell.AMG(restriction="adjoint"), "works on one device")):
            with pytest.raises(InputError, match=text):
                settings.build(on_rank_of(matrix)(communicator))
        with pytest.raises(FactorisationError, match="least diagonal entry is -5"):
            swell.AMG().build(on_rank_of(negative)(communicator))
        return True

    assert all(ranks.run(on_rank))


@pytest.mark.gpu
@pytest.mark.parametrize("messages", ["peer", "nccl"])
def test_the_levels_of_one_gpu(count, messages):
    """Bits of one CPU's levels on GPUs; captured cycles, new values, solves again."""
    for name in ("poisson3d", "flat triangles", "random"):
        with during(name=name):
            A = SYSTEMS[name]()
            b = rng().standard_normal(A.shape[0])
            one_rank = swell.prepare(A, method="cg", precond="amg")
            reference = one_rank.solve(b)

            def on_rank(communicator):
                M = on_rank_of(A, "cuda")(communicator)
                solver = swell.prepare(M, method="cg", precond="amg")
                solver.solve(b[M.rows])
                solver.update(M)
                result = solver.solve(b[M.rows])
                return levels_of(solver.M.operator, communicator), M.gather(result.x), result

            for found, x, result in on_gpus(count, on_rank, messages=messages):
                same_bits(A, one_rank.M.operator, found)
                assert result.converged and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)
                assert abs(result.iterations - reference.iterations) <= 1


@pytest.mark.gpu
def test_all_gpus_of_a_machine():
    if not gpus():
        pytest.skip("a GPU is needed")
    A = gallery.poisson3d(20)
    s = swell.prepare(A, method="cg", precond="amg", device="cuda:all")
    b = rng().standard_normal(8000)
    for matrix in (A, 2 * A):
        s.update(matrix)
        r = s.solve(b)
        assert r.converged and np.linalg.norm(b - matrix @ r.x) <= 1e-8 * np.linalg.norm(b)
