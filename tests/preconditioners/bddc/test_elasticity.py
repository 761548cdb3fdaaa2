"""BDDC for systems: nodes, rigid motions, corners and a change of basis; against dense algebra and theory."""
from __future__ import annotations

import numpy as np
import pytest
from tests.conftest import space_or_skip
from tests.support.during import during

import swell
from swell import gallery
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix
from swell.pde.elasticity_cube import ElasticityCube
from swell.pde.poisson_cube import PoissonCube
from swell.preconditioners.bddc.basis import Basis
from swell.preconditioners.bddc.constraints import orthonormal
from swell.preconditioners.bddc.mechanisms import free_motions

RNG = np.random.default_rng(3)
BODIES = [((4, 4), 2), ((3, 3, 3), 3)]


def solved(cube, device="cpu", **settings):
    """A solution for a random right-hand side, whose spectrum is all there."""
    system = cube.assemble(device)
    b = np.random.default_rng(1).standard_normal(cube.n)
    with system.A.space.active(cube.n):
        b = system.A.space.from_host(b)
    r = system.solve(b=b, **settings)
    assert r.result.converged
    return r


def dense(operator):
    """The entries of an operator on the host, column by column."""
    n = operator.shape[0]
    columns, out = [], np.empty(n)
    for unit in np.eye(n):
        operator.apply(unit, out)
        columns.append(out.copy())
    return np.array(columns).T


def slabs(shape, count):
    """(parts, free nodes) of a box of triangles or tetrahedra, clamped at x = 0, in boxes of about equal size."""
    points, cells = gallery.box_mesh(shape)
    at = np.minimum((points[cells].mean(axis=1) * count).astype(int), count - 1)
    owner = np.ravel_multi_index(at.T, (count,) * len(shape))
    return gallery.elastic_subdomains(points, cells, points[:, 0] == 0, owner)


# -- the operator -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("constraints", ["c", "ce", "ef", "cef"])
@pytest.mark.parametrize("axes", [2, 3])
def test_a_change_of_basis_gives_the_same_operator(axes, constraints):
    system = ElasticityCube(3, 2, young="checkerboard", jump=50.0, axes=axes).assemble()
    modes = system.cube.near_nullspace
    one, other = (dense(swell.BDDC(subdomains=system.subdomains, constraints=constraints, near_nullspace=modes,
                                   averages=averages).build(system.A)) for averages in ("constraints", "basis"))
    assert abs(one - other).max() < 1e-11 * abs(one).max()
    eigenvalues = np.linalg.eigvals(one @ system.A.to_scipy().toarray()).real
    assert abs(eigenvalues.min() - 1) < 1e-8 and 1.01 < eigenvalues.max() < 20


def test_a_basis_splits_space_by_the_constraints():
    space, C = make_space("cpu"), np.zeros((4, 9))
    C[0, [1, 4]], C[1, [1, 4, 6]], C[2, 2], C[3, [3, 5, 8]] = (1, 1), (1, -1, 2), 1, (1, 1, 1)
    S = RNG.standard_normal((9, 9))
    basis = Basis(space, C)
    Z = basis.times(np.eye(9))
    assert np.allclose(C @ basis.plus, np.eye(4)) and np.allclose(C @ Z, 0) and np.allclose(Z.T @ Z, np.eye(5))
    assert np.allclose(basis.reduced(S), Z.T @ S @ Z) and np.allclose(basis.times_transposed(np.eye(5)), Z.T)


def test_constraints_represent_the_rigid_motions():
    """Of each class: averages and first moments, 5 on a straight edge, 6 on a face; equal subdomains are found."""
    r = solved(ElasticityCube(4, 3))
    level = r.bddc.level
    interface, constraints = level.interface, level.constraints
    counts = [len(constraints.of_class(number)) for number in range(interface.kinds.size)]
    assert [set(np.array(counts)[interface.kinds == kind]) for kind in (0, 1, 2)] == [{3}, {5}, {6}]
    assert len(level.sizes) == 27
    for number, dofs in enumerate(interface.members):
        C, modes = constraints.of_class(number), interface.modes[dofs]
        missed = modes - C.T @ np.linalg.lstsq(C.T, modes, rcond=None)[0]
        assert abs(missed).max() < 1e-8
    k = level.locals[0].members[0, 0]
    C, sizes = constraints.matrix(k)
    assert np.allclose((C ** 2).sum(axis=1), 1 / sizes) and np.linalg.matrix_rank(C) == len(C)


@pytest.mark.parametrize("modes, rank", [(np.ones((5, 2)), 1), (np.eye(4)[:, :3], 3), (np.zeros((3, 2)), 0)])
def test_dependent_vectors_are_left_out(modes, rank):
    Q = orthonormal(modes)
    assert Q.shape == (len(modes), rank) and np.allclose(Q.T @ Q, np.eye(rank))


# -- theory -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("axes, sizes", [(2, (4, 8, 16)), (3, (3, 4, 6))])
def test_the_condition_grows_with_the_logarithm_of_the_size(axes, sizes):
    found = [solved(ElasticityCube(m, 2, axes=axes)) for m in sizes]
    largest = np.array([r.extremes[1] for r in found])
    assert all(abs(r.extremes[0] - 1) < 1e-3 for r in found)
    assert (np.diff(largest) > 0).all() and (np.diff(largest / (1 + np.log(sizes)) ** 2) < 0).all()


def test_iterations_do_not_grow_with_the_subdomains():
    found = [solved(ElasticityCube(4, s, axes=2)) for s in (2, 4, 8)]
    assert [r.result.iterations for r in found] == [6, 7, 6] and found[-1].extremes[1] < 1.3


@pytest.mark.parametrize("axes", [2, 3])
def test_jumps_between_subdomains_cost_nothing(axes):
    r = solved(ElasticityCube(3, 3, young="checkerboard", jump=1e6, axes=axes))
    assert r.extremes[1] < 1.6 and abs(r.extremes[0] - 1) < 1e-3
    E = 10.0 ** RNG.uniform(-3, 3, (3,) * axes)
    assert solved(ElasticityCube(3, 3, young=E, axes=axes)).extremes[1] < 5


def test_adaptive_constraints():
    """Channels of 1e4 across faces: functions of several components are added to moments."""
    system = ElasticityCube(3, 3, young="channels").assemble()
    b = np.random.default_rng(1).standard_normal(system.cube.n)
    plain, adaptive = (system.solve(b=b, adaptive=threshold) for threshold in (0, 10))
    assert plain.extremes[1] > 100 and adaptive.extremes[1] < 15 and adaptive.bddc.level.constraints.more > 0
    assert abs(adaptive.extremes[0] - 1) < 1e-3 and adaptive.result.iterations < plain.result.iterations / 2


def test_moments_pay():
    """Averages alone hold the subdomains, by four edges or more each; moments make better coarse functions."""
    cube = ElasticityCube(4, 3)
    averages, moments = solved(cube, near_nullspace="constants"), solved(cube)
    assert averages.result.iterations > 1.4 * moments.result.iterations
    assert averages.extremes[1] > 1.8 * moments.extremes[1] and abs(averages.extremes[0] - 1) < 1e-3


@pytest.mark.parametrize("axes, elements", [(2, 6), (3, 4)])
def test_nearly_incompressible_material(axes, elements):
    """A stable pair of displacements and pressures: faces preserve the volume of subdomains, so that the condition is
    bounded as ν tends to ½; without them it is not, nor with elements that lock."""
    def largest(poisson, **settings):
        pressure = settings.pop("pressure", "patches")
        cube = ElasticityCube(elements, 3, poisson=poisson, axes=axes, pressure=pressure)
        return solved(cube, **settings).extremes[1]

    assert largest(0.49999) < 1.3 * largest(0.3)
    assert largest(0.499, constraints="ce") > 20 * largest(0.3, constraints="ce")
    assert largest(0.49999, pressure="none") > 3 * largest(0.3, pressure="none")


@pytest.mark.parametrize("axes, subdomains", [(2, 8), (3, 4)])
def test_more_levels(axes, subdomains):
    """The next level's near null vectors are the values of this level's constraints."""
    found = [solved(ElasticityCube(2, subdomains, levels, axes=axes)) for levels in (2, 3)]
    assert found[0].extremes[1] < found[1].extremes[1] < 1.7 and abs(found[1].extremes[0] - 1) < 1e-3
    assert found[1].result.iterations <= found[0].result.iterations + 3
    above = found[1].bddc.level.next
    if axes == 3:
        assert (np.bincount(above.interface.kinds) > 0).all()    # a class of this level is one node there
    plain = solved(ElasticityCube(2, subdomains, 3, axes=axes), near_nullspace="constants")
    assert plain.extremes[1] > found[1].extremes[1]


# -- corners ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("axes, count", [(2, 8 + 4), (3, 46)])
def test_corners_leave_no_mechanism(axes, count):
    """A square of 3² subdomains: 4 crosspoints, and one more node on each of 8 faces that end at a side."""
    r = solved(ElasticityCube(4, 3, axes=axes), constraints="c")
    level = r.bddc.level
    assert np.bincount(level.interface.kinds)[0] == count and abs(r.extremes[0] - 1) < 1e-3
    pairs = {}
    for number, subdomains in enumerate(level.interface.sharing):
        if level.interface.kinds[number] == 0:
            for pair in ((int(i), int(j)) for i in subdomains for j in subdomains if i < j):
                pairs.setdefault(pair, []).append(level.interface.members[number])
    for number, subdomains in enumerate(level.interface.sharing):
        if level.interface.kinds[number] == 2:
            held = level.interface.modes[np.concatenate(pairs[tuple(map(int, subdomains))])]
            assert np.linalg.svd(held)[1][-1] > 1e-2 * abs(held).max()         # no common motion is free


def test_the_users_corners():
    system = ElasticityCube(4, 2, axes=2).assemble()
    modes, points = system.cube.near_nullspace, system.cube.points
    ends = np.flatnonzero((abs(points[:, 0] - 0.5) < 1e-9) & (abs(points[:, 1] - 0.25) < 1e-9))
    build = lambda **s: swell.BDDC(subdomains=system.subdomains, near_nullspace=modes, **s).build(system.A).level  # noqa
    plain, chosen = build(), build(corners=2 * ends + 1)
    assert plain.interface.describe() == "1 corners, 0 edges, 4 faces"
    assert chosen.interface.describe() == "2 corners, 0 edges, 4 faces"
    more = chosen.interface.dofs[np.concatenate(chosen.interface.members[-1:])]
    assert set(more) == {2 * ends[0], 2 * ends[0] + 1} or chosen.constraints.count == plain.constraints.count + 2


# -- meshes and nodes -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("shape, axes", [((8, 8), 2), ((4, 4, 4), 3)])
def test_a_mesh_in_subdomains(shape, axes):
    parts, nodes = slabs(shape, 2)
    subdomains, points = swell.Subdomains(parts), gallery.box_mesh(shape)
    A, _ = gallery.elastic_body(*points, points[0][:, 0] == 0)
    assert len(parts) == 2 ** axes and abs(subdomains.assemble() - A).max() < 1e-13
    bddc = swell.BDDC(subdomains=subdomains, near_nullspace=swell.rigid_body_modes(nodes))
    b = RNG.standard_normal(A.shape[0])
    r = swell.solve(A, b, method="cg", precond=bddc)
    assert r.converged and r.iterations < 13 and abs(r.spectrum.extremes[0] - 1) < 2e-3
    assert np.linalg.norm(b - A @ r.x) <= 1e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("constraints", ["c", "cef"])
def test_a_partition_of_a_mesh(constraints):
    """METIS makes ragged subdomains without corners; those that hang together by an edge only are cut there."""
    pytest.importorskip("pymetis", reason="needs pymetis: pip install 'swell[partition]'")
    points, cells = gallery.box_mesh((6, 6, 6))
    points = points + 0.02 * np.random.default_rng(2).standard_normal(points.shape)
    clamped = points[:, 0] < 0.1
    parts, nodes = gallery.elastic_subdomains(points, cells, clamped, 9, young=10.0 ** RNG.uniform(0, 1, len(cells)))
    subdomains = swell.Subdomains(parts)
    bddc = swell.BDDC(subdomains=subdomains, near_nullspace=swell.rigid_body_modes(nodes), constraints=constraints)
    r = swell.solve(subdomains.assemble(), RNG.standard_normal(3 * len(nodes)), method="cg", precond=bddc)
    assert len(parts) >= 9 and r.converged and r.iterations < 45 and abs(r.spectrum.extremes[0] - 1) < 5e-3


def test_nodes_that_have_lost_unknowns():
    """A body on rollers: nodes at y = 0 keep one of two unknowns, so that rows are no blocks."""
    system = ElasticityCube(4, 2, axes=2).assemble()
    keep = np.flatnonzero(~((system.cube.points[:, 1] == 0)[:, None] & [False, True]).ravel())
    number = np.full(system.cube.n, -1)
    number[keep] = np.arange(keep.size)
    parts = []
    for matrix, dofs in zip(system.subdomains.matrices, system.subdomains.dofs, strict=True):
        there = number[dofs] >= 0
        parts.append((matrix[there][:, there], number[dofs][there]))
    subdomains, modes = swell.Subdomains(parts), system.cube.near_nullspace[keep]
    A, nodes = subdomains.assemble(), np.unique(keep // 2, return_inverse=True)[1]
    r = swell.solve(A, np.ones(keep.size), method="cg",
                    precond=swell.BDDC(subdomains=subdomains, near_nullspace=modes, nodes=nodes))
    assert r.converged and r.iterations < 10
    shuffled = np.random.default_rng(0).permutation(keep.size)
    with pytest.raises(swell.InputError, match=r"BDDC\(nodes=...\): row \d+ belongs to a node of \d rows, and not all"):
        swell.solve(A, np.ones(keep.size), method="cg",
                    precond=swell.BDDC(subdomains=subdomains, near_nullspace=modes, nodes=nodes[shuffled]))


def test_blocks_that_subdomains_cut_are_said():
    """Detected blocks are a guess; rows then are their own nodes."""
    parts = [(np.ones((3, 3)) + np.eye(3), [0, 1, 2]), (np.ones((3, 3)) + np.eye(3), [1, 2, 3])]
    A = swell.Subdomains(parts).assemble()
    r = swell.solve(A, np.ones(4), method="cg", precond=swell.BDDC(subdomains=swell.Subdomains(parts)))
    assert r.converged and any("BDDC takes each row as a node" in note for note in r.notes), r.notes


# -- singular local problems ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("axes, settings, words", [
    (2, {"constraints": "c", "near_nullspace": "constants"},
     r"1 motion without energy remains \(a rotation\)\. .*near_nullspace=swell\.rigid_body_modes"),
    (3, {"constraints": "c", "near_nullspace": "constants"},
     r"1 motion without energy remains \(a rotation about axis 0\)\. "),
    (2, {"constraints": "e", "near_nullspace": "constants"}, r"3 motions .*a translation.*add corners or faces"),
    (3, {"constraints": "f", "near_nullspace": "constants"},
     r"can move against each other .*: add corners or edges, constraints='cef'; or for an elastic body"),
    (3, {"constraints": "f", "near_nullspace": "constants", "levels": 3}, "can move against each other"),
])
def test_motions_that_nothing_holds_are_named(axes, settings, words):
    system = ElasticityCube(3, 3, axes=axes).assemble()
    with pytest.raises(swell.InputError, match=words):
        swell.BDDC(subdomains=system.subdomains, **settings).build(system.A)


def test_free_motions():
    """Of a square in the plane: three without constraints, one with a node held, none with two."""
    system = ElasticityCube(2, 2, axes=2).assemble()
    S = system.subdomains.matrices[3].toarray()
    rows = np.eye(len(S))
    assert [free_motions(S, rows[:k]).shape[1] for k in (0, 2, 4)] == [3, 1, 0]


# -- devices ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("settings", [{}, {"averages": "basis"}, {"constraints": "c"}, {"interior": "direct"}])
def test_on_every_device(device, settings):
    """The same iterations and spectrum as on the host, to rounding."""
    space_or_skip(device)
    cube = ElasticityCube(3, 2, young="checkerboard", jump=10.0)
    found = [solved(cube, where, **settings) for where in ("cpu", device)]
    assert found[0].result.iterations == found[1].result.iterations
    assert found[1].extremes == pytest.approx(found[0].extremes, rel=1e-8)
    assert abs(found[1].u - found[0].u).max() < 1e-10 * abs(found[0].u).max()


def test_single_precision(device):
    space = space_or_skip(device)
    system = ElasticityCube(3, 2).assemble()
    A = CSRMatrix.from_scipy(system.A.to_scipy().astype(np.float32), space)
    bddc = swell.BDDC(subdomains=system.subdomains, near_nullspace=system.cube.near_nullspace)
    r = swell.solve(A, RNG.standard_normal(A.shape[0]).astype(np.float32), method="cg", rtol=1e-5, precond=bddc)
    assert r.converged and r.iterations <= 7


# -- input that cannot work -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("settings, words", [
    ({"near_nullspace": "rigid"}, "near_nullspace='rigid'.*rigid_body_modes"),
    ({"near_nullspace": np.ones(7)}, r"shape \(7, 1\): expected \(\d+, k\)"),
    ({"near_nullspace": np.ones((60, 2))}, "2 columns of rank 1"),
    ({"nodes": np.arange(7)}, "nodes"), ({"nodes": np.arange(60) + 1}, "without holes"),
    ({"corners": [0]}, r"row 0 is not on the interface: expected"), ({"corners": [0, 1]}, ", and 1 more are not: "),
    ({"corners": [99999]}, r"numbers from 0 to 59"),
    ({"corners": [1.5]}, "list of rows"), ({"corners": [3], "constraints": "ef"}, "add c to the letters"),
    ({"averages": "explicit"}, "averages='explicit'.*'constraints' or 'basis'"),
])
def test_bad_settings(settings, words):
    system = ElasticityCube(2, 2, axes=2).assemble()
    n = system.cube.n
    if isinstance(settings.get("near_nullspace"), np.ndarray) and settings["near_nullspace"].ndim == 2:
        settings = {"near_nullspace": np.ones((n, 2))}
    if settings.get("nodes") is not None and len(settings["nodes"]) == 60:
        settings = {"nodes": np.arange(n) + 1}
    words = words.replace("59", str(n - 1))
    with during(settings=settings), pytest.raises(swell.InputError, match=words):
        swell.BDDC(subdomains=system.subdomains, **settings).build(system.A)


def test_a_scalar_problem_is_as_before():
    """One unknown a node: averages, and a corner only where a face has none."""
    level = swell.BDDC(subdomains=PoissonCube(4, 3).assemble().subdomains).build(PoissonCube(4, 3).assemble().A).level
    assert np.bincount(level.interface.kinds).tolist() == [8, 36, 54] and level.constraints.count == 98
