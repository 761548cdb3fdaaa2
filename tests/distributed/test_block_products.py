"""Products and preconditioners in blocks across ranks: the off-diagonal part is BSR, and no rank cuts a cell."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import mmread
from tests.support.cases import rng

import swell
from swell import distributed, gallery
from swell.core.registry import resolve
from swell.distributed.partition import consecutive

RANKS = 3


def grid(n=7, size=3, dtype="float64"):
    """Dense blocks on a grid of n × n points; even shares of the rows among 2 to 4 ranks would cut blocks of 3."""
    point = rng().random((size, size)) + size * np.eye(size)
    A = sp.csr_array(sp.kron(gallery.poisson2d(n), point)).astype(dtype)
    return A * (1 + 0.5j) if A.dtype.kind == "c" else A


def hollow(n=7):
    """Blocks of 3 that are not full, in the diagonal block as in the rest: each unknown is coupled to one other."""
    turn = np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])
    return sp.csr_array(sp.kron(gallery.poisson2d(n), np.eye(3)) + sp.kron(gallery.poisson2d(n), turn))


def scattered(communicator, A, **settings):
    return distributed.scatter(communicator, A if communicator.rank == 0 else None, **settings)


@pytest.mark.parametrize("A, format, overlap", [
    (grid(), "bsr", True), (grid(), "block_sell", False), (hollow(), "bsr", True),
    (grid(dtype="complex128"), "block_sell", True)])
def test_products(ranks, A, format, overlap):
    """A x, Aᴴ x, (w, A x), and all of it again after an update; every ghost and boundary row comes with its block."""
    x, w = rng().standard_normal((2, 147)).astype(A.dtype)

    def multiplied(communicator):
        given = scattered(communicator, A, block=3, overlap=overlap)
        M = given.stored_as(resolve("format", format))
        assert (M.local.name, M.local.block, M.remote.name, M.remote.block) == (format, 3, "bsr", 3)
        for numbers in (M.halo.ghosts, M.space.to_host(M.boundary)):
            assert (numbers.reshape(-1, 3) == numbers[::3, None] + np.arange(3)).all() and (numbers[::3] % 3 == 0).all()
        found = []
        for factor in (1, 2):
            y, z, dots = np.empty_like(x[M.rows]), x[M.rows].copy(), np.zeros(2, A.dtype)
            M.apply_adjoint(x[M.rows], z, 3, 2)
            M.apply_dot(x[M.rows], y, w[M.rows], dots)
            M.space.ranks.allreduce(dots)
            found.append((M.gather(y), M.gather(z), dots[0]))
            M.update(given.scaled(np.full(y.size, 2.0), np.ones(y.size)))
        return found

    exact = A.toarray()
    for found in ranks.run(multiplied):
        for factor, (y, z, dot) in zip((1, 2), found, strict=True):
            assert np.allclose(y, factor * exact @ x, rtol=1e-12, atol=1e-12)
            assert np.allclose(z, 3 * factor * exact.conj().T @ x + 2 * x, rtol=1e-12, atol=1e-11)
            assert dot == pytest.approx(np.vdot(w, factor * exact @ x), rel=1e-11)


def test_several_vectors_have_the_bits_of_one(ranks):
    A, B = grid(), rng().standard_normal((147, 3))

    def solved(communicator):
        M = scattered(communicator, A)
        solver = swell.prepare(M, method="gmres", precond="ilu(block=None)", format="bsr")
        assert any("off-diagonal part in blocks of 3" in line for line in solver.describe()) == (communicator.size > 1)
        together = solver.solve(B[M.rows], together=True)
        alone = [solver.solve(np.ascontiguousarray(B[M.rows][:, j])) for j in range(3)]
        return M.gather(together.x), np.column_stack([M.gather(r.x) for r in alone])

    for together, alone in ranks.run(solved):
        assert np.array_equal(together, alone) and np.linalg.norm(A @ alone - B) <= 1e-7 * np.linalg.norm(B)


def test_bytes_of_the_off_diagonal_part(ranks):
    """8 + 4/9 bytes an entry instead of 12, and a third of the row pointers."""
    def stored(communicator):
        M = scattered(communicator, grid(16)).stored_as(swell.BSR())
        assert M.remote.data.size == M.rest.nnz
        assert communicator.size == 1 or M.remote.matrix_bytes < 0.72 * M.rest.nbytes
        assert M.nbytes == M.local.nbytes + M.remote.nbytes + M.boundary.nbytes + M.halo.nbytes

    ranks.run(stored)


@pytest.mark.parametrize("sizes, block", [((6, 3, 3), 3), ((3, 0, 3), 1), ((6, 6, 6), 6), ((2, 2, 2), 2),
                                          ((4, 4, 4), 2)])
def test_the_size_is_one_for_all_ranks(sizes, block):
    """Formats may differ between ranks; 0: CSR. A has blocks of 6."""
    A, x = grid(6, 6), rng().standard_normal(216)

    def stored(communicator):
        M = scattered(communicator, A, block=6)
        size = sizes[communicator.rank]
        M = M.stored_as(swell.BSR(size) if size else swell.CSR())
        assert M.block_size == 6 and M.remote.block == block and M.remote.name == ("csr" if block == 1 else "bsr")
        return M.gather(M.times(x[M.rows]))

    for y in distributed.run(RANKS, stored):
        assert np.allclose(y, A @ x, rtol=1e-12)


def test_a_format_that_one_rank_refuses_is_every_ranks_error():
    def stored(communicator):
        M = scattered(communicator, grid(), block=3)
        with pytest.raises(swell.InputError, match=r"BSR\(block=7\) cannot divide a matrix of 48 rows"):
            M.stored_as(swell.BSR(7 if communicator.rank == 1 else 3))
        return M.shape

    assert distributed.run(RANKS, stored) == [(147, 147)] * RANKS


@pytest.mark.parametrize("precond", ["amg", "bddc"])
def test_ghosts_without_entries_change_nothing(precond):
    """Ghosts are whole blocks of 3, of which one unknown is coupled to no other rank; with blocks of 1 it is none."""
    point = np.diag([0.3, 0.3, 4.3]) - 0.05
    A = sp.csr_array(sp.kron(gallery.poisson2d(12), np.diag([1.0, 1, 0])) + sp.kron(sp.eye_array(144), point))
    A.eliminate_zeros()
    b, found = A @ np.ones(432), []
    for block in (1, 3):
        def solved(communicator):
            M = scattered(communicator, A, block=block)
            unused = np.bincount(M.rest.indices, minlength=M.halo.ghosts.size) == 0
            r = swell.solve(M, b[M.rows], method="cg", precond=precond)
            return unused.sum(), r.iterations, M.gather(r.x)
        found.append(distributed.run(RANKS, solved)[1])
    (none, *plain), (some, *blocks) = found
    assert (none, some) == (0, 24) and plain[0] == blocks[0] and np.allclose(plain[1], blocks[1], rtol=1e-6)
    assert np.linalg.norm(b - A @ blocks[1]) <= 1e-7 * np.linalg.norm(b)


# -- real systems on three ranks: whole blocks against even shares of the rows, which cut them ------------------------

def iterations(A, block, precond):
    """Of GMRES(60) on three ranks, until ‖b − A x‖₂ first meets 1e-8; the solve goes on for the small rows. The residual
    is checked with A itself."""
    b = A @ np.ones(A.shape[0])

    def solved(communicator):
        M = scattered(communicator, A, block=block)
        r = swell.solve(M, b[M.rows], method="gmres(restart=60)", precond=precond, maxiter=2000)
        assert r.converged
        return int(np.argmax(r.history <= 1e-8)), M.gather(r.x)

    (count, x), *others = distributed.run(RANKS, solved)
    assert np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b) and all(other[0] == count for other in others)
    return count


SYSTEMS = {"coupled_transport": (gallery.coupled_transport((5, 5, 7), 4), 4),
           "multiconductor": (gallery.get("multiconductor2", 1000), 2)}


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("precond", ["ilu(block=None)", "block_jacobi",
                                     "schwarz(inner=ilu(block=None), overlap=0)",
                                     "schwarz(inner=ilu(block=None), overlap=1)"])
def test_preconditioners_take_the_size_of_the_matrix(name, precond):
    """Detected or given, and named in the preconditioner: the same solve."""
    A, block = SYSTEMS[name]
    assert (consecutive(A.shape[0], RANKS) % block).any()        # even shares of the rows would cut a block
    named = precond.replace("block=None", f"block={block}") if "ilu" in precond else f"{precond}(block={block})"
    assert len({iterations(A, size, each) for size in (None, block) for each in (precond, named)}) == 1


@pytest.mark.data
@pytest.mark.parametrize("precond, cut, most", [
    ("ilu(block=None)", "ilu(block=3, pad=True)", 0.8), ("block_jacobi", "block_jacobi(block=3)", 0.1),
    *((f"schwarz(inner=ilu(block=None), overlap={k})", f"schwarz(inner=ilu(block=3, pad=True), overlap={k})", most)
      for k, most in enumerate((0.6, 0.6, 0.2)))])
def test_cut_cells_cost_iterations(data, precond, cut, most):
    """A reservoir of 302 cells with 3 unknowns each. Even shares of its 906 rows cut two cells."""
    A = sp.csr_array(mmread(data / "matrices" / "fasp_spe01_bsr3.mtx.gz"))
    assert iterations(A, 3, precond) <= most * iterations(A, 1, cut)


@pytest.mark.data
@pytest.mark.parametrize("name", ["hypre_beam_tet_dof2475", "ml_elasticity"])
def test_overlaps_of_whole_nodes(data, name):
    """Elastic bodies, whose nodes have three displacements: every layer of nodes saves iterations."""
    A = sp.csr_array(mmread(data / "matrices" / f"{name}.mtx.gz"))
    counts = [iterations(A, 3, f"schwarz(inner=ilu(block=None), overlap={k})") for k in range(3)]
    assert counts[0] > 1.5 * counts[1] and counts[1] > counts[2]
