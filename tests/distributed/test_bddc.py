"""BDDC with its subdomains spread over ranks: the operator, the iterations and the solution of one device."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.across import system
from tests.support.cases import rng

import swell
from swell import distributed, gallery
from swell.core.devices import make_space
from swell.core.stopping import Reason
from swell.distributed.launcher import launched
from swell.formats.csr import CSRMatrix
from swell.pde import fvm
from swell.pde.elasticity_cube import ElasticityCube
from swell.pde.poisson_cube import PoissonCube
from swell.preconditioners.bddc.definite import is_definite
from swell.preconditioners.bddc.splitting import split

on_1_2_and_4 = pytest.mark.parametrize("ranks", [launched()] if launched() > 1 else [1, 2, 4], indirect=True)
more = pytest.mark.parametrize("ranks", [launched()] if launched() > 1 else [2, 3], indirect=True)

CASES = [
    (PoissonCube(4, 3), {}), (PoissonCube(4, 3), {"interior": "blocks", "weights": "cardinality"}),
    (PoissonCube(3, 3, coefficient="checkerboard"), {"interior": "ic0", "constraints": "ce"}),
    (PoissonCube(3, 4, levels=3), {"interior": "blocks", "dense_lu": "pcm(x=8)"}),
    (PoissonCube(4, 3, coefficient="channels"), {"adaptive": 10}),
    (PoissonCube(3, 4, levels=3, coefficient=10.0 ** np.random.default_rng(0).uniform(-2, 2, (12,) * 3)), {"weights": "deluxe"}),
    (ElasticityCube(3, 2), {}), (ElasticityCube(4, 3, axes=2, young="checkerboard"), {"constraints": "c"}),
    (ElasticityCube(2, 4, levels=3, axes=2), {"averages": "basis", "interior": "blocks"}),
]


def random(n):
    return np.random.default_rng(1).standard_normal(n)


def spread(communicator, cube):
    """(A, S): every rank makes its own subdomains alone."""
    return distributed.from_subdomains(communicator, cube.rank_subdomains(communicator.rank, communicator.size),
                                       groups=cube.groups())


@more
def test_all_ranks_probe_inexact_local_problems_together(ranks):
    """They agree whether M is definite; the mirrored M is not."""
    cube = PoissonCube(3, 3)

    class Negative:
        def __init__(self, M):
            self.M = M

        def apply(self, x, out):
            self.M.apply(x, out, -1)

    def on_rank(communicator):
        A, S = spread(communicator, cube)
        M = swell.BDDC(subdomains=S, dense_lu="icm(x=8, tolerance=1e-6)").build(A)
        return is_definite(A, M), is_definite(A, Negative(M)), any("M was indefinite" in note for note in M.notes)

    assert set(ranks.run(on_rank)) == {(True, False, False)}


@on_1_2_and_4
@pytest.mark.parametrize("cube, settings", CASES)
def test_it_is_that_of_one_device(ranks, cube, settings):
    """The operator to rounding, the same iterations, the same constraints."""
    whole, b = cube.assemble(), random(cube.n)
    modes = {"near_nullspace": cube.near_nullspace}
    one_rank = swell.BDDC(cube.levels, subdomains=whole.subdomains, **settings, **modes).build(whole.A)
    z = np.empty(cube.n)
    one_rank.apply(b, z)
    reference = whole.solve(b=b, **{"interior": "direct", **settings})

    def on_rank(communicator):
        A, S = spread(communicator, cube)
        bddc = swell.BDDC(cube.levels, subdomains=S, **settings, **modes)
        M = bddc.build(A)
        mine, twice = np.empty(b[A.rows].size), b[A.rows].copy()
        M.apply(b[A.rows], mine)
        M.apply(b[A.rows], twice, 2, -1)
        assert np.allclose(twice, 2 * mine - b[A.rows], rtol=0, atol=1e-13 * abs(z).max())
        result = swell.solve(A, b[A.rows], method="cg", precond=bddc)
        level = M.level
        counts = np.bincount(level.interface.kinds, minlength=3).tolist(), level.constraints.count
        return A.gather(mine), A.gather(result.x), result, counts, level.constraints.more

    for mine, x, result, counts, more in ranks.run(on_rank):
        level = one_rank.level
        assert abs(mine - z).max() < 1e-12 * abs(z).max()
        assert counts == (np.bincount(level.interface.kinds, minlength=3).tolist(), level.constraints.count)
        assert more == level.constraints.more and (more > 0) == ("adaptive" in settings)
        assert result.converged and abs(result.iterations - reference.result.iterations) <= 1
        assert np.linalg.norm(b - whole.A.to_scipy() @ x) <= 1e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("name", ["complex symmetric", "nonsymmetric"])
def test_other_matrices_are_those_of_one_device(ranks, name):
    """The operator and its adjoint."""
    from tests.preconditioners.bddc.test_other_matrices import CASES as ELEMENTS
    from tests.preconditioners.bddc.test_other_matrices import square
    parts = square(4, 3, ELEMENTS[name][0])
    A = parts.assemble()
    b = random(A.shape[0]).astype(A.dtype)
    one_rank = swell.BDDC(subdomains=parts, interior="blocks").build(CSRMatrix.from_scipy(A, make_space("cpu")))
    expected = np.empty((2, b.size), A.dtype)
    one_rank.apply(b, expected[0])
    one_rank.apply_adjoint(b, expected[1])

    def on_rank(communicator):
        ends = [k * len(parts) // communicator.size for k in (communicator.rank, communicator.rank + 1)]
        mine = list(zip(parts.matrices, parts.dofs, strict=True))[slice(*ends)]
        A, S = distributed.from_subdomains(communicator, mine)
        bddc = swell.BDDC(subdomains=S, interior="blocks")
        M, out = bddc.build(A), np.empty((2, b[A.rows].size), A.dtype)
        M.apply(b[A.rows], out[0])
        M.apply_adjoint(b[A.rows], out[1])
        return [A.gather(one) for one in out], swell.solve(A, b[A.rows], method="gmres", precond=bddc)

    for found, result in ranks.run(on_rank):
        assert abs(np.array(found) - expected).max() < 1e-11 * abs(expected).max()
        assert result.converged and result.iterations < 25


def test_what_does_not_fit_the_rows_is_an_error_on_every_rank(ranks):
    cube = ElasticityCube(3, 2, axes=2)

    def on_rank(communicator):
        A, S = spread(communicator, cube)
        shuffled = np.random.default_rng(1).permutation(np.arange(cube.n) // 2)
        for settings, words in (({"corners": [0]}, "row 0 is not on the interface"),
                                ({"nodes": shuffled}, "belongs to a node of 2 rows"),
                                ({"near_nullspace": np.ones(3)}, "shape")):
            with pytest.raises(swell.InputError, match=words):
                swell.BDDC(subdomains=S, **settings).build(A)
        corner = S.names(S.shared()[0])[-1]      # a row in the user's numbers
        found = swell.BDDC(subdomains=S, near_nullspace=cube.near_nullspace, corners=[corner]).build(A)
        return np.bincount(found.level.interface.kinds).tolist()

    assert all(kinds == [2, 0, 4] for kinds in ranks.run(on_rank))


def test_an_approximate_coarse_problem_is_that_of_one_device(ranks):
    cube, settings = PoissonCube(4, 3), {"coarse": swell.SmoothedAggregation(coarsest=20)}
    whole, b = cube.assemble(), random(cube.n)
    one_rank = swell.solve(whole.A, b, method="cg", precond=swell.BDDC(subdomains=whole.subdomains, **settings))

    def on_rank(communicator):
        A, S = spread(communicator, cube)
        return swell.solve(A, b[A.rows], method="cg", precond=swell.BDDC(subdomains=S, **settings))

    for result in ranks.run(on_rank):
        assert result.converged and abs(result.iterations - one_rank.iterations) <= 1


def test_three_reductions_an_application_and_none_in_setup(ranks):
    cube = PoissonCube(3, 3)

    def on_rank(communicator):
        A, S = spread(communicator, cube)
        M, r = swell.BDDC(subdomains=S).build(A), random(A.own.shape[0])
        counts = []
        for count in (1, 4):
            before = communicator.reductions
            for _ in range(count):
                M.apply(r, np.empty_like(r))
            counts.append(communicator.reductions - before)
        return counts

    assert all(counts == [3, 12] for counts in ranks.run(on_rank))


def test_an_iteration_of_cg_has_five_reductions(ranks):
    """Two of its own. Of k and of 2 k iterations: the difference is what k of them take."""
    cube, counts = PoissonCube(3, 3), []

    def on_rank(communicator, limit):
        A, S = spread(communicator, cube)
        solver = swell.prepare(A, method="cg", precond=swell.BDDC(subdomains=S),
                               stopping=swell.Stopping(rtol=1e-15, maxiter=limit))
        before = communicator.reductions
        solver.solve(random(cube.n)[A.rows])
        return communicator.reductions - before

    for limit in (2, 4):
        counts.append(ranks.run(on_rank, limit))
    assert all(long - short == 10 for short, long in zip(*counts, strict=True))


def test_single_precision(ranks):
    cube = PoissonCube(4, 3)
    b = random(cube.n).astype(np.float32)

    def on_rank(communicator):
        parts = cube.rank_subdomains(communicator.rank, communicator.size)
        A, S = distributed.from_subdomains(communicator, [(m.astype(np.float32), dofs) for m, dofs in parts])
        return swell.solve(A, b[A.rows], method="cg", rtol=1e-5, precond=swell.BDDC(subdomains=S))

    for result in ranks.run(on_rank):
        assert result.converged and result.iterations <= 6 and result.x.dtype == np.float32


@pytest.mark.parametrize("method", ["gmres", "single_reduction_cg"])
def test_other_methods(ranks, method):
    cube = PoissonCube(3, 3)

    def on_rank(communicator):
        A, S = spread(communicator, cube)
        return swell.solve(A, random(cube.n)[A.rows], method=method, precond=swell.BDDC(subdomains=S))

    for result in ranks.run(on_rank):
        assert result.converged and result.iterations <= 7


def test_a_rank_has_its_own_rows_alone(ranks):
    """Each dof on one rank; interiors on their subdomain's; what the cube shares out is what it assembles."""
    cube = PoissonCube(3, 4, coefficient="channels")
    whole = cube.assemble()
    x = random(cube.n)

    def on_rank(communicator):
        A, S = spread(communicator, cube)
        y = np.empty(x[A.rows].size)
        A.apply(x[A.rows], y)
        assert abs(len(S) - 64 / communicator.size) < 1 and len({id(m) for m in S.matrices}) <= 27
        return A.gather(y), A.rows, A.nnz, A.own.nnz + A.rest.nnz

    found = ranks.run(on_rank)
    for y, _, nnz, mine in found:
        assert np.allclose(y, whole.A.to_scipy() @ x, rtol=0, atol=1e-10) and nnz == whole.A.nnz
        assert mine < 1.3 * nnz / ranks.size      # zeros of the stencil are kept: they say what is connected
    if len(found) == ranks.size:
        assert np.array_equal(np.sort(np.concatenate([rows for _, rows, *_ in found])), np.arange(cube.n))


# -- assembled matrices ------------------------------------------------------------------------------------------------

@on_1_2_and_4
@pytest.mark.parametrize("scattered", ["rows", "graph"])
@pytest.mark.parametrize("domains", [0, 9])
def test_an_assembled_matrix_is_split_as_on_one_device(ranks, scattered, domains):
    """With the subdomains that the ranks have made, one device has the same operator."""
    if scattered == "graph":
        pytest.importorskip("pymetis", reason="the partition of a graph needs pymetis")
    A, b = system()
    settings = swell.BDDC(domains=domains, partition="rows")

    def on_rank(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None, partition=scattered)
        bddc, mine = settings.build(M), b[M.rows].copy()
        bddc.apply(mine, mine)
        result = swell.solve(M, b[M.rows], method="cg", precond=settings)
        owner = M.gather(bddc._owner + sum(communicator.allgather(int(bddc._owner.max()) + 1)[:communicator.rank]))
        return M.gather(mine), M.gather(result.x), result, owner

    for z, x, result, owner in ranks.run(on_rank):
        assert owner.max() + 1 == (domains or ranks.size)
        one_rank, expected = swell.BDDC(subdomains=split(A, owner)), np.empty(441)
        M = swell.prepare(A, method="cg", precond=one_rank)
        one_rank.build(M.A).apply(b, expected)
        assert abs(z - expected).max() < 1e-12 * abs(expected).max()
        assert result.converged and abs(result.iterations - M.solve(b).iterations) <= 1
        assert np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("partition", ["rows", "graph"])
def test_finite_volumes_assembled_in_parts(ranks, partition):
    pytest.importorskip("pymetis", reason="the partition of a mesh needs pymetis")
    walls = {name: fvm.Neumann() for name in ("xmax", "ymin", "ymax", "zmin", "zmax")} | {"xmin": fvm.Dirichlet(0.0)}
    problem = fvm.Poisson(fvm.box((10, 10, 10)), walls, source=1.0)
    one_rank, bddc = problem.solve(), f"bddc(domains=9, partition={partition})"
    for found in ranks.run(lambda c: problem.solve(ranks=c, precond=bddc, scaling=None)):
        assert found.converged and found.result.iterations < one_rank.result.iterations
        assert abs(found.p - one_rank.p).max() < 1e-6 * abs(one_rank.p).max()


def test_new_values_of_a_matrix_that_is_split(ranks):
    A, b = system()
    changed = sp.csr_array(2 * A + sp.diags_array(rng().random(441)))

    def on_rank(communicator):
        first, second = (distributed.scatter(communicator, B if communicator.rank == 0 else None) for B in (A, changed))
        settings = {"method": "cg", "precond": "bddc(domains=6, partition=rows)"}
        solver = swell.prepare(first, **settings)
        solver.solve(b[first.rows])
        again, fresh = solver.update(second).solve(b[first.rows]), swell.solve(second, b[first.rows], **settings)
        assert np.array_equal(again.x, fresh.x)
        return first.gather(again.x)

    for x in ranks.run(on_rank):
        assert np.linalg.norm(b - changed @ x) <= 1e-8 * np.linalg.norm(b)


def test_new_values_want_new_subdomains(ranks):
    cube = PoissonCube(3, 3)

    def on_rank(communicator):
        A, S = spread(communicator, cube)
        solver = swell.prepare(A, method="cg", precond=swell.BDDC(subdomains=S))
        twice = [(2 * matrix, dofs) for matrix, dofs in cube.rank_subdomains(communicator.rank, communicator.size)]
        solver.update(distributed.from_subdomains(communicator, twice)[0])

    with pytest.raises(swell.InputError, match="do not add up to A: row .* new subdomain matrices"):
        ranks.run(on_rank)


# -- what cannot work --------------------------------------------------------------------------------------------------

def bar(communicator, change=lambda k, K, dofs: (K, dofs)):
    """Floating pieces of a bar, two on each rank, the first held at its end."""
    parts = []
    for k in range(2 * communicator.rank, 2 * communicator.rank + 2):
        K = 2 * np.eye(5) - np.eye(5, k=1) - np.eye(5, k=-1)
        K[0, 0], K[-1, -1] = (2 if k == 0 else 1), 1
        parts.append(change(k, K, np.arange(4 * k, 4 * k + 5)))
    return parts


def solved(communicator, parts, **settings):
    A, S = distributed.from_subdomains(communicator, parts)
    return swell.solve(A, np.ones(A.own.shape[0]), method="cg", precond=swell.BDDC(subdomains=S, **settings))


def test_a_bar(ranks):
    assert all(result.converged and result.iterations <= 4 for result in ranks.run(lambda c: solved(c, bar(c))))


@more
@pytest.mark.parametrize("change, words", [
    (lambda k, K, dofs: (K[:4], dofs), "on rank 1: subdomain 0 has 5 dofs and a matrix of shape"),
    (lambda k, K, dofs: (K * np.nan, dofs), "on rank 1: .* not finite"),
    (lambda k, K, dofs: (K, dofs[[0, 0, 1, 2, 3]]), "on rank 1: .* names a dof twice"),
    (lambda k, K, dofs: (K, dofs + 100), "row 9 is in no subdomain of any rank"),
])
def test_a_bad_subdomain_on_one_rank_is_told_to_all(ranks, change, words):
    def on_rank(communicator):
        return solved(communicator, bar(communicator, lambda k, K, d: change(k, K, d) if k == 2 else (K, d)))

    with pytest.raises(swell.InputError, match=words):
        ranks.run(on_rank)


@more
def test_slabs_without_corners_get_some(ranks):
    """Nothing else holds the slabs in the middle: a node of each face becomes a corner."""
    def on_rank(communicator):
        A = gallery.neumann((9, 9 * communicator.size)).tocsr()
        A = sp.csr_array(A + sp.diags_array(1.0 * (np.arange(A.shape[0]) == 0)))
        M = distributed.scatter(communicator, A)
        return swell.solve(M, np.ones(M.own.shape[0]), method="cg", precond=settings)

    settings = swell.BDDC(domains=2 * ranks.size, partition="rows", constraints="c")
    assert all(result.converged for result in ranks.run(on_rank))


@more
def test_a_rank_without_subdomains(ranks):
    words = f"rank {ranks.size - 1} of {ranks.size} brings no subdomain, all together bring"
    with pytest.raises(swell.InputError, match=words):
        ranks.run(lambda c: solved(c, bar(c) if c.rank < c.size - 1 else []))
    with pytest.raises(swell.InputError, match=r"BDDC\(domains=1\) on . ranks: each needs a subdomain"):
        ranks.run(lambda c: swell.solve(distributed.scatter(c, gallery.poisson2d(9)), np.ones(
            distributed.scatter(c, gallery.poisson2d(9)).own.shape[0]), method="cg", precond="bddc(domains=1)"))


@more
def test_a_rank_all_of_whose_dofs_are_lower_ranks(ranks):
    with pytest.raises(swell.InputError, match="all dofs of rank 1's subdomains are lower ranks'"):
        ranks.run(lambda c: solved(c, [(np.eye(3), np.arange(3) + 3 * max(c.rank - 1, 0))]))


@more
def test_groups_are_the_same_on_all_ranks(ranks):
    def on_rank(communicator, groups):
        return distributed.from_subdomains(communicator, bar(communicator), groups=groups(communicator))

    with pytest.raises(swell.InputError, match="the ranks disagree on groups"):
        ranks.run(on_rank, lambda c: [np.arange(2 * c.size) // (1 + c.rank)])
    with pytest.raises(swell.InputError, match=r"groups.0. has shape \(2,\): expected, for each of"):
        ranks.run(on_rank, lambda c: [[0, 1]])


def test_subdomains_and_matrix_of_one_kind(ranks):
    cube = PoissonCube(3, 3)
    whole = cube.assemble()

    def on_rank(communicator):
        A, S = spread(communicator, cube)
        with pytest.raises(swell.InputError, match="A, S = swell.distributed.from_subdomains"):
            swell.BDDC(subdomains=whole.subdomains).build(A)
        with pytest.raises(swell.InputError, match="spread over ranks in another way than A"):
            swell.BDDC(subdomains=S).build(whole.A)
        if communicator.size > 1:
            with pytest.raises(swell.InputError, match="spread over ranks in another way than A"):
                swell.BDDC(subdomains=S).build(distributed.scatter(communicator, whole.A.to_scipy()))

    ranks.run(on_rank)


def test_a_singular_matrix_is_called_so(ranks):
    A = gallery.neumann((12, 12)).tocsr()
    b = A @ rng().standard_normal(144)

    def on_rank(communicator):
        M = distributed.scatter(communicator, A)
        return swell.solve(M, b[M.rows], method="cg", precond="bddc(domains=6, partition=rows)")

    for result in ranks.run(on_rank):
        assert result.reason is Reason.SINGULAR and any("coarse problem is singular" in note for note in result.notes)


def test_a_matrix_that_is_not_positive_definite_on_one_rank(ranks):
    """Every rank says so. The bar has one dof between two pieces: M is the inverse."""
    def on_rank(communicator):
        last = 2 * communicator.size - 1
        less = 1.5 * np.diag([0, 1, 1, 1, 0])
        return solved(communicator, bar(communicator, lambda k, K, d: (K - less if k == last else K, d)))

    for result in ranks.run(on_rank):
        assert result.converged and result.iterations == 1
        assert any("not positive definite" in note for note in result.notes), result.notes


@pytest.mark.parametrize("change, words", [
    (lambda A: A + sp.diags_array(np.ones(440), offsets=1), "positive off the diagonal"),
    (lambda A: sp.csr_array(abs(A)), r"its entry \(.*positive off the diagonal"),
    (lambda A: sp.csr_array(A - 2 * sp.eye_array(441)), "row .* sums to"),
])
def test_matrices_that_cannot_be_split(ranks, change, words):
    A = change(system()[0])

    def on_rank(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        return swell.solve(M, np.ones(M.own.shape[0], M.dtype), method="gmres", precond="bddc(partition=rows)")

    with pytest.raises(swell.InputError, match=words):
        ranks.run(on_rank)


@more
def test_all_ranks_refuse_deluxe_weights_without_energy(ranks):
    def on_rank(communicator):
        cube = PoissonCube(3, 3)
        parts = [(-matrix, dofs) for matrix, dofs in cube.rank_subdomains(communicator.rank, communicator.size)]
        A, S = distributed.from_subdomains(communicator, parts)
        with pytest.raises(swell.core.errors.FactorisationError, match="weights='stiffness'") as caught:
            swell.BDDC(subdomains=S, weights="deluxe").build(A)
        return str(caught.value).partition("BDDC")[2]            # without the rank

    assert len(set(ranks.run(on_rank))) == 1
