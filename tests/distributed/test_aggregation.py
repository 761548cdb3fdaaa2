"""Smoothed aggregation across ranks: the aggregates, and but for rounding the levels, of one device."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from tests.support.across import gpus, on_gpus
from tests.support.cases import rng
from tests.support.during import during

import swell
from swell import distributed, gallery
from swell.core.devices import make_space
from swell.core.errors import FactorisationError, InputError
from swell.distributed.amg import operator
from swell.distributed.launcher import launched
from swell.formats.csr import CSRMatrix
from swell.preconditioners.amg.smoother import radius

some_ranks = pytest.mark.parametrize("ranks", [launched()] if launched() > 1 else [2, 3], indirect=True)
two_ranks = pytest.mark.parametrize("ranks", [launched()] if launched() > 1 else [2], indirect=True)

pytestmark = pytest.mark.usefixtures("few_rows")


def body(shape, size):
    """(matrix, coordinates) of an elastic body held at x = 0."""
    points, cells = gallery.box_mesh(shape, size)
    return gallery.elastic_body(points, cells, points[:, 0] == 0)


def scattered():
    """A Laplacian whose rows are numbered at random: every rank has links to every other one."""
    A, order = gallery.poisson2d(30), rng().permutation(900)
    return sp.csr_array(A[order][:, order])


BEAM = body((20, 3, 3), (7.0, 1.0, 1.0))
ODD = body((5, 2, 2), (5.0, 2.0, 2.0))             # 45 nodes
PLATE = body((12, 12, 1), (12.0, 12.0, 0.1))
SYSTEMS = {"beam": BEAM, "plate": PLATE, "triangles": body((20, 18), (1.0, 1.0)),
           "elasticity2d": (gallery.elasticity2d(20), None), "poisson2d": (gallery.poisson2d(31), None),
           "poisson3d": (gallery.poisson3d(11), None), "random": (scattered(), None)}


def settings(points, **more):
    return swell.SmoothedAggregation(coordinates=points, **more)


def part_of(A, points=None, device="cpu", **more):
    """A function of the communicator: the DistributedMatrix of A."""
    block = points.shape[1] if points is not None else more.pop("block", None)
    return lambda communicator: distributed.scatter(communicator, A if communicator.rank == 0 else None, device=device,
                                                    block=block, **more)


def same_solution(A, b, x):
    assert np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)


def close(count, reference):
    """True for about as many iterations as on one device."""
    return abs(count - reference) <= 2


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_levels_of_one_device(ranks, name):
    """T of the finest level bit for bit; all levels in parts to rounding; CG takes as many iterations."""
    A, points = SYSTEMS[name]
    b = A @ rng().standard_normal(A.shape[0])
    one_device = swell.prepare(A, method="cg", precond=settings(points), device="cpu")
    reference, one = one_device.solve(b), one_device.M.operator.hierarchy

    def on_rank(communicator):
        M = part_of(A, points)(communicator)
        solver = swell.prepare(M, method="cg", precond=settings(points))
        found = [(prolongator(level, communicator), whole(level.P), whole(level.next))
                 for level in solver.M.operator.hierarchy.levels]
        return M.gather(solver.solve(b[M.rows]).x), solver.solve(b[M.rows]), found

    for x, result, found in ranks.run(on_rank):
        same_solution(A, b, x)
        assert result.converged and abs(result.iterations - reference.iterations) <= 1
        assert found and len(found) <= len(one.levels)
        for k, (level, (T, P, C)) in enumerate(zip(one.levels, found)):
            for what, mine, its in (("T", T, level.interpolation.T), ("P", P, level.P), ("next", C, level.RAP.C)):
                with during(level=k + 1, what=what):
                    assert np.array_equal(mine.indptr, its.indptr) and np.array_equal(mine.indices, its.indices)
                    assert np.allclose(mine.data, its.data, rtol=0, atol=1e-8 * abs(its.data).max())
                    assert what != "T" or k or np.array_equal(mine.data, its.data)


def prolongator(level, communicator):
    """T of an AggregationLevel, a SciPy matrix, on every rank."""
    T, window = level.interpolation.T, level.window
    entries = T.data, level._rows_of_P.window.numbers(T.indices), T.indptr
    own = sp.csr_array(tuple(map(T.space.to_host, entries)), shape=(T.shape[0], level.P.shape[1]))[window.own]
    return sp.csr_array(sp.vstack(communicator.allgather(own)))


def whole(rows):
    """The whole SciPy matrix of some RankRows, on every rank."""
    csr, window = rows.csr, rows.window
    entries = csr.space.to_host(csr.data), csr.space.to_host(window.numbers(csr.indices)), csr.space.to_host(csr.indptr)
    parts = [sp.csr_array(part, shape=(part[2].size - 1, rows.shape[1]))
             for part in rows.space.ranks.allgather(entries)]
    return sp.csr_array(sp.vstack(parts))


@some_ranks
@pytest.mark.parametrize("update", [False, True])
def test_prolongators_and_products(ranks, update):
    """T holds the near null vectors, P = (I − ω D⁻¹ A) T and C = Pᵀ A P on every level, also for new values."""
    A, points = BEAM
    change = sp.diags_array(1 + 0.1 * rng().random(A.shape[0]))
    new, modes = sp.csr_array(change @ A @ change) if update else A, swell.rigid_body_modes(points)

    def on_rank(communicator):
        M = part_of(A, points)(communicator)
        made = swell.SmoothedAggregation(near_nullspace=modes).build(M)
        if update:
            made.update(part_of(new, points)(communicator))
        fine, vectors, levels = new, modes, made.hierarchy.levels
        for level in levels:
            P, C, T = whole(level.P), whole(level.next), prolongator(level, communicator)
            smoothed = level.interpolation._smoothed
            smoothed = np.ones(level.P.csr.shape[0]) if smoothed is None else smoothed
            smoothed = np.concatenate(communicator.allgather(smoothed))
            D = fine.diagonal()
            assert np.isclose(level.radius, radius_of(fine))
            smooth = T - sp.diags_array(4 / 3 / level.radius / D * smoothed) @ fine @ T
            assert abs(smooth - P).max() <= 1e-12 * abs(P).max()
            product = P.T @ fine @ P
            assert abs(product - C).max() <= 1e-12 * abs(product).max()
            below = spla.lsqr(T, vectors[:, 4], atol=1e-14, btol=1e-14)[0]
            assert np.abs(T @ below - vectors[:, 4]).max() <= 1e-9 * np.abs(vectors).max()
            fine, vectors = C, np.tile(below[:, None], 6)
        return len(levels)

    assert min(ranks.run(on_rank)) >= 2


def radius_of(A):
    """The estimate of one device."""
    return radius(CSRMatrix.from_scipy(sp.csr_array(A), make_space("cpu")), "point")


@some_ranks
def test_near_null_vectors_in_every_form(ranks):
    """Coordinates and vectors, whole or of this rank; named nodes; a partition that reorders: as many iterations."""
    A, points = BEAM
    b, modes = A @ rng().standard_normal(A.shape[0]), swell.rigid_body_modes(points)
    reference = swell.solve(A, b, method="cg", precond=settings(points), device="cpu").iterations
    nodes = np.arange(A.shape[0]) // 3
    forms = {"coordinates": lambda rows: settings(points),
             "own coordinates": lambda rows: settings(points[rows[::3] // 3]),
             "vectors": lambda rows: swell.SmoothedAggregation(near_nullspace=modes),
             "own vectors": lambda rows: swell.SmoothedAggregation(near_nullspace=modes[rows]),
             "nodes": lambda rows: swell.SmoothedAggregation(near_nullspace=modes, nodes=nodes)}

    def on_rank(communicator, form, partition):
        M = part_of(A, points, partition=partition)(communicator)
        rows = np.arange(A.shape[0])[M.rows]
        result = swell.solve(M, b[M.rows], method="cg", precond=forms[form](rows))
        return M.gather(result.x), result.iterations

    for form in forms:
        for partition in ("rows", "graph") if form != "nodes" else ("rows",):
            if partition == "graph":
                pytest.importorskip("pymetis", reason="the partition of a graph needs pymetis")
            with during(form=form, partition=partition):
                for x, count in ranks.run(on_rank, form, partition):
                    same_solution(A, b, x)             # a partition renumbers nodes, so their hashes differ
                    assert abs(count - reference) <= (1 if partition == "rows" else 3), (count, reference)


@two_ranks
def test_nodes_that_have_lost_unknowns(ranks):
    """Held unknowns are taken out: nodes have one to three of them, and one node has rows on two ranks."""
    A, points = BEAM
    kept = np.flatnonzero(rng().random(A.shape[0]) < 0.97)
    A, modes, nodes = sp.csr_array(A[kept][:, kept]), swell.rigid_body_modes(points)[kept], kept // 3
    nodes = np.unique(nodes, return_inverse=True)[1]
    b = A @ rng().standard_normal(A.shape[0])
    precond = swell.SmoothedAggregation(near_nullspace=modes, nodes=nodes)
    reference = swell.solve(A, b, method="cg", precond=precond, device="cpu").iterations

    def on_rank(communicator):
        M = part_of(A)(communicator)
        result = swell.solve(M, b[M.rows], method="cg", precond=precond)
        return M.gather(result.x), result.iterations

    for x, count in ranks.run(on_rank):
        same_solution(A, b, x)
        assert close(count, reference), (count, reference)


@two_ranks
def test_options(ranks):
    """Each option takes the iterations that it takes on one device; single and double precision of A."""
    A, points = BEAM
    b = A @ rng().standard_normal(A.shape[0])
    for more, kind in (({"degree": 3}, "float64"), ({"cycle": "V"}, "float64"), ({"degree": 1}, "float64"),
                       ({"smoother": "l1_jacobi"}, "float64"), ({"strength": 0.0, "dtype": "float64"}, "float64"),
                       ({"levels": 2}, "float64"), ({}, "float32")):
        with during(more=more, kind=kind):
            rtol, precond = 1e-8 if kind == "float64" else 1e-4, settings(points, **more)
            matrix = A.astype(kind)
            reference = swell.solve(matrix, b.astype(kind), method="cg", precond=precond, rtol=rtol, device="cpu")

            def on_rank(communicator):
                M = part_of(matrix, points)(communicator)
                return swell.solve(M, b[M.rows].astype(kind), method="cg", precond=precond, rtol=rtol)

            for result in ranks.run(on_rank):
                assert result.converged and close(result.iterations, reference.iterations)


@two_ranks
def test_new_values(ranks):
    """An update keeps the aggregates and takes the iterations of a fresh setup; so does a setup that was dropped."""
    A, points = BEAM
    change = sp.diags_array(1 + 0.1 * rng().random(A.shape[0]))
    new = sp.csr_array(change @ A @ change)
    b = new @ rng().standard_normal(A.shape[0])

    def on_rank(communicator):
        M, later = part_of(A, points)(communicator), part_of(new, points)(communicator)
        solver = swell.prepare(M, method="cg", precond=settings(points))
        solver.update(later)
        return solver.solve(b[M.rows]), swell.solve(later, b[M.rows], method="cg", precond=settings(points))

    for updated, fresh in ranks.run(on_rank):
        assert updated.converged and abs(updated.iterations - fresh.iterations) <= 2


@two_ranks
def test_short_of_memory(ranks, monkeypatch):
    A, points = BEAM
    b = A @ rng().standard_normal(A.shape[0])
    monkeypatch.setattr(operator, "KEPT", np.inf)

    def on_rank(communicator):
        M, scaled = part_of(A, points)(communicator), part_of(3 * A, points)(communicator)
        solver = swell.prepare(M, method="cg", precond=settings(points))
        first, kept = solver.solve(b[M.rows]), [level.nbytes for level in solver.M.hierarchy.levels]
        solver.update(scaled)
        return first, solver.solve(b[M.rows]), kept

    for first, second, kept in ranks.run(on_rank):
        assert first.converged and second.converged and abs(second.iterations - first.iterations) <= 1
        assert not any(kept) and any("SmoothedAggregation: the levels' setup" in note for note in second.notes)


@two_ranks
def test_double_precision_where_single_cannot_hold(ranks):
    """A very thin plate: the same decision as on one device, with its note, on every rank."""
    A, points = body((16, 16, 1), (16.0, 16.0, 5e-5))
    b = A @ rng().standard_normal(A.shape[0])
    reference = swell.solve(A, b, method="cg", precond=settings(points), device="cpu")
    assert any("so the cycle is in double precision" in note for note in reference.notes)

    def on_rank(communicator):
        M = part_of(A, points)(communicator)
        solver = swell.prepare(M, method="cg", precond=settings(points))
        double = swell.prepare(M, method="cg", precond=settings(points, dtype="float64"))
        return solver.solve(b[M.rows]), double.solve(b[M.rows])

    for result, double in ranks.run(on_rank):
        assert any("so the cycle is in double precision" in note for note in result.notes), result.notes
        assert result.iterations == double.iterations and close(result.iterations, reference.iterations)


@two_ranks
def test_a_free_body(ranks):
    """All rigid motions are a null space."""
    points, cells = gallery.box_mesh((10, 3, 3), (3.0, 1.0, 1.0))
    A, points = gallery.elastic_body(points, cells, np.zeros(len(points), bool))
    modes = swell.rigid_body_modes(points)
    b = A @ rng().standard_normal(A.shape[0])
    reference = swell.solve(A, b, method="cg", precond=settings(points), nullspace=modes, device="cpu")

    def on_rank(communicator):
        M = part_of(A, points)(communicator)
        result = swell.solve(M, b[M.rows], method="cg", precond=settings(points), nullspace=modes[M.rows])
        return M.gather(result.x), result

    for x, result in ranks.run(on_rank):
        same_solution(A, b, x)
        assert close(result.iterations, reference.iterations)


@pytest.mark.skipif(launched() > 1, reason="it takes three ranks")
def test_few_rows():
    """Three nodes on three ranks."""
    A = sp.csr_array(sp.kron(gallery.poisson1d(3), sp.eye_array(2)))

    def on_rank(communicator):
        M = part_of(A, block=2)(communicator)
        return swell.solve(M, np.ones(2), method="cg", precond="smoothed_aggregation(block=2)")

    assert all(result.converged for result in distributed.run(3, on_rank))


@two_ranks
def test_where_coarsening_ends(ranks):
    """No strong link: the smoother alone, in parts."""
    A = sp.csr_array(sp.diags_array(np.linspace(1, 2, 400)))

    def on_rank(communicator):
        M = part_of(A)(communicator)
        return swell.solve(M, np.ones(M.own.shape[0]), method="cg", precond="smoothed_aggregation")

    for result in ranks.run(on_rank):
        assert result.converged and any("rows would stay" in note for note in result.notes)


@two_ranks
def test_bad_input(ranks):
    """One error on every rank, wherever the fault lies."""
    A, points = BEAM
    one_sided = A.tolil()
    one_sided[30, 3] = -0.5
    negative = sp.csr_array(A - sp.diags_array(np.r_[np.zeros(A.shape[0] - 1), 1e3]))

    def on_rank(communicator):
        last, M = communicator.rank == communicator.size - 1, part_of(A, points)(communicator)
        own = points[np.arange(A.shape[0])[M.rows][::3] // 3]
        for given, text in ((settings(points[:-1] if last else points), "as many as this rank has"),
                            (settings(own[:-1] if last else own), "as many as this rank has"),
                            (settings(own[:, :2] if last else own), "expected equal|number of columns|as many"),
                            (settings(np.where(last, np.nan, points)), "non-finite"),
                            (settings(None if last else points), "kind of near null vectors"),
                            (swell.SmoothedAggregation(nodes=np.arange(4)), "nodes.* has shape"),
                            (swell.SmoothedAggregation(block=7), "nodes of 7 unknowns do not divide")):
            with pytest.raises(InputError, match=text):
                given.build(M)
        with pytest.raises(InputError, match="distribute A with block=3"):
            settings(ODD[1]).build(part_of(ODD[0], block=1)(communicator))
        with pytest.raises(InputError, match="needs a Hermitian matrix"):
            settings(points).build(part_of(one_sided.tocsr(), points)(communicator))
        with pytest.raises(InputError, match="complex128"):
            settings(points).build(part_of(A * (1 + 0.1j), points)(communicator))
        with pytest.raises(FactorisationError, match="least diagonal entry"):
            settings(points).build(part_of(negative, points)(communicator))
        return True

    assert all(ranks.run(on_rank))


@pytest.mark.gpu
@pytest.mark.parametrize("messages", ["peer", "nccl"])
def test_on_gpus(count, messages):
    """The iterations of the same ranks on CPUs; captured cycles, new values, solves again."""
    for name in ("beam", "poisson2d"):
        with during(name=name):
            A, points = SYSTEMS[name]
            b = A @ rng().standard_normal(A.shape[0])

            def on_rank(communicator, device="cuda"):
                M = part_of(A, points, device)(communicator)
                solver = swell.prepare(M, method="cg", precond=settings(points))
                solver.solve(b[M.rows])
                solver.update(M)
                result = solver.solve(b[M.rows])
                return M.gather(result.x), result

            reference = distributed.run(count, on_rank, "cpu")[0][1] if launched() <= 1 else None
            for x, result in on_gpus(count, on_rank, messages=messages):
                same_solution(A, b, x)
                assert result.converged and (not reference or abs(result.iterations - reference.iterations) <= 1)


@pytest.mark.gpu
def test_all_gpus_of_a_machine():
    if not gpus():
        pytest.skip("a GPU is needed")
    A, points = BEAM
    s = swell.prepare(A, method="cg", precond=settings(points), device="cuda:all", block=3)
    b = A @ rng().standard_normal(A.shape[0])
    for matrix in (A, 2 * A):
        s.update(matrix)
        r = s.solve(b)
        assert r.converged
        same_solution(matrix, b, r.x)
