"""Near null vectors on ranks and in subdomains: whole or in parts, inside Schwarz and around it; what is refused."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from tests.support.cases import real_matrix, rng

import swell
from swell import distributed, gallery
from swell.preconditioners.near_nullspace import independent

POINTS = gallery.box_mesh((24, 2, 2), (12.0, 1.0, 1.0))
BODY, NODES = gallery.elastic_body(*POINTS, POINTS[0][:, 0] == 0)
MODES = swell.rigid_body_modes(NODES)


def schwarz(inner, outer, **more):
    """Two levels; ``inner`` and ``outer`` are the near null vectors of both."""
    aggregation = swell.SmoothedAggregation(near_nullspace=inner, coarsest=40)
    return swell.Schwarz(kind="additive", inner=aggregation, coarse="nicolaides", near_nullspace=outer, **more)


def solved(communicator, A, b, precond, partition="rows"):
    """(x, iterations) of cg; ``precond`` takes the matrix."""
    M = distributed.scatter(communicator, A if communicator.rank == 0 else None, partition=partition, block=3)
    result = swell.solve(M, b[M.rows], method="cg", precond=precond(M))
    assert result.converged, str(result)
    return M.gather(result.x), result.iterations


@pytest.mark.parametrize("partition", ["rows", "graph"])
def test_whole_or_in_parts(ranks, partition):
    """Both give the same iterations, in aggregates inside the subdomains and in the level around them."""
    if partition == "graph":
        pytest.importorskip("pymetis", reason="the partition of a graph needs pymetis")
    b, counts = rng().standard_normal(BODY.shape[0]), []
    for precond in (lambda M: schwarz(MODES, MODES), lambda M: schwarz(MODES[M.rows], MODES[M.rows])):
        for x, count in ranks.run(solved, BODY, b, precond, partition):
            assert np.linalg.norm(b - BODY @ x) <= 1e-8 * np.linalg.norm(b)
            counts.append(count)
    assert len(set(counts)) == 1


def test_rigid_motions_in_the_subdomains_take_fewer_iterations():
    """On ranks and on one device, for arrays and for coordinates."""
    b, counts = rng().standard_normal(BODY.shape[0]), []
    for precond in (swell.Schwarz(kind="additive", inner="smoothed_aggregation(coarsest=40)"), schwarz(MODES, MODES)):
        counts.append(distributed.run(3, solved, BODY, b, lambda M: precond)[0][1])
    assert counts[1] < 0.6 * counts[0], counts
    one = swell.solve(BODY, b, method="cg", block=3, device="cpu", precond=schwarz(MODES, MODES, domains=3))
    assert one.converged and abs(one.iterations - counts[1]) <= 3              # its subdomains are others
    inner = swell.SmoothedAggregation(coordinates=NODES, coarsest=40)
    coordinates = swell.Schwarz(domains=3, kind="additive", inner=inner)
    assert swell.solve(BODY, b, method="cg", device="cpu", precond=coordinates).iterations < counts[0]


def test_aggregates_of_all_ranks(ranks):
    """Without Schwarz: one multigrid, alone and inside deflation."""
    b = rng().standard_normal(BODY.shape[0])
    for precond in (lambda M: swell.SmoothedAggregation(near_nullspace=MODES),
                    lambda M: swell.Deflation(vectors=2, inner=swell.SmoothedAggregation(near_nullspace=MODES[M.rows])),
                    lambda M: swell.SmoothedAggregation(coordinates=NODES)):
        for x, _ in ranks.run(solved, BODY, b, precond):
            assert np.linalg.norm(b - BODY @ x) <= 1e-8 * np.linalg.norm(b)


def test_a_part_may_have_dependent_vectors():
    """Four rows of a node and a bit: rigid motions have rank 4 there."""
    part = independent(MODES[:4])
    assert part.shape == (4, 4) and np.allclose(part.T @ part, np.eye(4))
    assert np.allclose(independent(np.ones((5, 2))) @ np.ones(1) * np.sign(independent(np.ones((5, 2)))[0]), 5**-0.5)


def wrong(what):
    """A function of the matrix on ranks that returns wrong near null vectors; the last rank's are wrong in parts."""
    def given(M):
        last = M.space.ranks.communicator.rank == M.space.ranks.communicator.size - 1
        own = MODES[M.rows].copy()
        if what == "n rows":
            return MODES[:-3]
        if what == "rows of another rank":
            return own[:-3] if last else own
        if what == "NaN":
            own[-1] = np.nan if last else 1
        elif what == "complex":
            return own * 1j if last else own
        elif what == "dependent":
            return np.hstack([own, own[:, :1] - 2 * own[:, 4:5]])
        elif what == "dependent, whole":
            return np.hstack([MODES, MODES[:, :1] - 2 * MODES[:, 4:5]])
        elif what == "columns":
            return own[:, :-1] if last else own
        elif what == "too many":
            return np.ones((own.shape[0], 40))
        elif what == "three axes":
            return own[None]
        elif what == "whole on one":
            return MODES if last else own
        return own
    return given


REFUSED = {"n rows": "expected .*, k", "rows of another rank": "this rank's", "NaN": "non-finite", "complex": "complex",
           "dependent": "7 columns of rank 6", "dependent, whole": "7 columns of rank 6",
           "columns": "number of vectors", "too many": "k from 1 to 32", "three axes": "shape"}


@pytest.mark.parametrize("where", ["inside", "around", "alone"])
@pytest.mark.parametrize("what", [*REFUSED, "whole on one"])
def test_wrong_vectors_are_an_error_on_every_rank(what, where):
    vectors = wrong(what)
    precond = {"inside": lambda M: schwarz(vectors(M), MODES), "around": lambda M: schwarz(MODES, vectors(M)),
               "alone": lambda M: swell.SmoothedAggregation(near_nullspace=vectors(M))}[where]

    def on_rank(communicator):
        with pytest.raises(swell.InputError) as error:
            solved(communicator, BODY, np.ones(BODY.shape[0]), precond)
        return str(error.value)

    name = "Schwarz" if where == "around" else "SmoothedAggregation"
    for message in distributed.run(3, on_rank):
        assert f"{name}(near_nullspace)" in message
        with pytest.raises(AssertionError, match=REFUSED.get(what, "this rank's")):
            raise AssertionError(message)


@pytest.mark.parametrize("what", ["n rows", "NaN", "complex", "dependent", "too many", "three axes"])
@pytest.mark.parametrize("inside", [True, False])
def test_wrong_vectors_on_one_device(what, inside):
    def on_rank(communicator):
        M = distributed.scatter(communicator, BODY, block=3)
        return wrong(what)(M)

    vectors = distributed.run(1, on_rank)[0]
    precond = schwarz(*((vectors, MODES) if inside else (MODES, vectors)), domains=3)
    with pytest.raises(swell.InputError, match=REFUSED[what]):
        swell.solve(BODY, np.ones(BODY.shape[0]), method="cg", precond=precond, device="cpu")


def test_named_nodes_need_the_whole_matrix():
    aggregation = swell.SmoothedAggregation(near_nullspace=MODES, nodes=np.arange(BODY.shape[0]) // 3)
    with pytest.raises(swell.InputError, match=r"SmoothedAggregation\(nodes\) needs the whole matrix"):
        swell.solve(BODY, np.ones(BODY.shape[0]), method="cg", device="cpu",
                    precond=swell.Schwarz(domains=2, kind="additive", inner=aggregation))


@pytest.mark.data
def test_the_real_beam_on_three_ranks(data):
    """GMRES(30) with block ILU(0) hardly moves; a coarse space, or subdomains solved exactly, solve it."""
    A = sp.csr_array(real_matrix(data, "hypre_beam_tet_dof2475")).astype(float)
    b = rng().standard_normal(A.shape[0])
    modes = spla.eigsh(A, 6, sigma=0, v0=np.ones(A.shape[0]))[1]

    def plain(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None, block=3)
        return swell.solve(M, b[M.rows], method="gmres(restart=30, lengthen=False)", precond="ilu(block=None)",
                           maxiter=300)

    assert all(result.residual > 1e-4 for result in distributed.run(3, plain))
    for precond, most in ((schwarz(modes, modes), 80), (swell.Schwarz(kind="additive", overlap=2, inner="direct"), 30)):
        for x, count in distributed.run(3, solved, A, b, lambda M: precond):
            assert np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b) and count <= most, count
