"""AIR across ranks: the coarse rows, and all bits of the levels, of one device; the same iterations."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.across import gpus, on_gpus
from tests.support.cases import rng
from tests.support.during import during

import swell
from swell import distributed, gallery
from swell.core.errors import FactorisationError, InputError
from swell.distributed.amg import galerkin
from swell.distributed.launcher import launched

pytestmark = pytest.mark.usefixtures("few_rows")
two_ranks = pytest.mark.parametrize("ranks", [launched()] if launched() > 1 else [2], indirect=True)


def random_flow(n):
    """A row-dominant matrix of random links in one direction each, and a row without links."""
    G = sp.random_array((n, n), density=4 / n, rng=np.random.default_rng(3)).tocsr()
    G = sp.csr_array(sp.diags_array((np.arange(n) != n // 2).astype(float)) @ G)
    G.setdiag(0)
    G.eliminate_zeros()
    return sp.csr_array(sp.diags_array(abs(G).sum(axis=1) + 0.1) - G)


SYSTEMS = {"oblique": lambda: gallery.advection((31, 27)), "rotating": lambda: gallery.advection((30, 30), "rotating"),
           "inset": lambda: gallery.advection((10, 9, 11), "inset"), "random": lambda: random_flow(600),
           "some diffusion": lambda: gallery.advection((30, 30), "rotating", 0.01),
           "diffusion": lambda: gallery.poisson2d(31)}


def part_of(A, device="cpu"):
    return lambda communicator: distributed.scatter(communicator, A if communicator.rank == 0 else None, device=device)


def levels_of(M, communicator):
    """(state, values of R and of the next matrix: each of all ranks, in the order of rows) of the levels in parts."""
    host, found = M.space.to_host, []
    for level in M.hierarchy.levels:
        parts = [host(a) for a in (level.state, level.R.data, level.next.csr.data)]
        found.append([np.concatenate(part) for part in zip(*communicator.allgather(parts))])
    return found


def same_bits(M, found):
    """``found``: the result of `levels_of`; M: the operator of one device."""
    one, host = M.hierarchy, M.space.to_host
    assert found and len(found) <= len(one.levels)
    for k, (level, (state, R, C)) in enumerate(zip(one.levels, found)):
        assert np.array_equal(state, host(level.interpolation.state)), f"the states of level {k + 1}"
        assert np.array_equal(R, host(level.R.data)), f"R of level {k + 1}"
        assert np.array_equal(C, host(level.coarse.data)), f"the matrix of level {k + 2}"


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_levels_of_one_device(ranks, name):
    """Bit for bit, for any number of ranks; also for new values. FGMRES takes as many iterations."""
    A = SYSTEMS[name]()
    b, new = rng().standard_normal(A.shape[0]), A.copy()
    new.data *= 1 + 0.2 * np.random.default_rng(5).random(new.nnz)
    one_rank = swell.prepare(A, method="fgmres", precond="air", device="cpu")

    def on_rank(communicator):
        M, later = part_of(A)(communicator), part_of(new)(communicator)
        solver = swell.prepare(M, method="fgmres", precond="air")
        first = solver.solve(b[M.rows]), M.gather(solver.solve(b[M.rows]).x), levels_of(solver.M.operator, communicator)
        solver.update(later)
        return first, (solver.solve(b[M.rows]), M.gather(solver.solve(b[M.rows]).x),
                       levels_of(solver.M.operator, communicator))

    found = ranks.run(on_rank)
    for k, matrix in enumerate((A, new)):
        if k:
            one_rank.update(new)
        reference = one_rank.solve(b)
        for result, x, levels in [each[k] for each in found]:
            same_bits(one_rank.M.operator, levels)
            assert result.converged and np.linalg.norm(b - matrix @ x) <= 1e-8 * np.linalg.norm(b)
            assert abs(result.iterations - reference.iterations) <= 1


@two_ranks
def test_options(ranks, monkeypatch):
    """Each option takes the iterations that it takes on one device; a large A P in chunks takes those, too."""
    A = SYSTEMS["rotating"]()
    b = rng().standard_normal(A.shape[0])
    for more in ({"distance": 1}, {"drop": 0.0}, {"f_sweeps": 1}, {"strength": 0.5, "dtype": "float64"}, {"levels": 2},
                 {"chunks": True}):
        with during(more=more):
            if more.pop("chunks", False):
                monkeypatch.setattr(galerkin, "SHARE", 1e-6)
            precond = swell.AIR(**more)
            reference = swell.solve(A, b, method="bicgstab", precond=precond, device="cpu")

            def on_rank(communicator):
                M = part_of(A)(communicator)
                solver = swell.prepare(M, method="bicgstab", precond=precond)
                solver.update(M)
                return solver.solve(b[M.rows])

            for result in ranks.run(on_rank):
                assert result.converged and abs(result.iterations - reference.iterations) <= 1


@two_ranks
def test_where_coarsening_ends(ranks):
    """No links: Jacobi's steps alone, in parts. Few rows: all is gathered."""
    A, small = sp.csr_array(sp.diags_array(np.linspace(1, 2, 400))), gallery.advection((7, 7))

    def on_rank(communicator):
        M = part_of(A)(communicator)
        alone = swell.solve(M, np.ones(M.own.shape[0]), method="fgmres", precond="air")
        M = part_of(small)(communicator)
        whole = swell.prepare(M, method="fgmres", precond="air")
        return alone, whole.solve(np.ones(M.own.shape[0])), len(whole.M.operator.hierarchy.levels)

    for alone, whole, levels in ranks.run(on_rank):
        assert alone.converged and any("rows would stay" in note for note in alone.notes)
        assert whole.converged and levels == 0


@two_ranks
def test_bad_input(ranks):
    """One error on every rank, wherever the fault lies."""
    A = SYSTEMS["oblique"]()
    hole = A.tolil()
    hole[A.shape[0] - 1, A.shape[0] - 1] = 0

    def on_rank(communicator):
        with pytest.raises(FactorisationError, match="non-zero diagonal"):
            swell.AIR().build(part_of(hole.tocsr())(communicator))
        with pytest.raises(InputError, match="complex128"):
            swell.AIR().build(part_of(A * (1 + 0.1j))(communicator))
        M = swell.AIR().build(part_of(A)(communicator))
        with pytest.raises(InputError, match="no adjoint"):
            M.apply_adjoint(np.ones(3), np.ones(3))
        return True

    assert all(ranks.run(on_rank))


@pytest.mark.gpu
@pytest.mark.parametrize("messages", ["peer", "nccl"])
def test_on_gpus(count, messages):
    """Captured cycles, new values, solves again: the iterations of one CPU."""
    for name in ("oblique", "random"):
        with during(name=name):
            A = SYSTEMS[name]()
            b = rng().standard_normal(A.shape[0])
            reference = swell.solve(A, b, method="bicgstab", precond="air", device="cpu")

            def on_rank(communicator):
                M = part_of(A, "cuda")(communicator)
                solver = swell.prepare(M, method="bicgstab", precond="air")
                solver.solve(b[M.rows])
                solver.update(M)
                result = solver.solve(b[M.rows])
                return M.gather(result.x), result

            for x, result in on_gpus(count, on_rank, messages=messages):
                assert result.converged and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)
                assert abs(result.iterations - reference.iterations) <= 2


@pytest.mark.gpu
def test_all_gpus_of_a_machine():
    if not gpus():
        pytest.skip("a GPU is needed")
    A = SYSTEMS["rotating"]()
    s = swell.prepare(A, method="fgmres", precond="air", device="cuda:all")
    b = rng().standard_normal(A.shape[0])
    for matrix in (A, 2 * A):
        s.update(matrix)
        r = s.solve(b)
        assert r.converged and np.linalg.norm(b - matrix @ r.x) <= 1e-8 * np.linalg.norm(b)
