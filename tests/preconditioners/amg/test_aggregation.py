"""Smoothed aggregation: aggregates and prolongators against plain SciPy, elasticity, and what users give wrongly."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import rng

import swell
from swell import SmoothedAggregation, gallery
from swell.core.library import native_kernels
from swell.core.errors import InputError
from swell.formats.csr import CSRMatrix
from swell.preconditioners.amg.aggregates import aggregates, node_graph, of_unknowns
from swell.preconditioners.amg.aggregation import SmoothedInterpolation, blocks, rigid_motions, tentative
from swell.preconditioners.amg.nodes import like_elasticity, unknowns
from swell.preconditioners.amg.smoother import radius


def plate(m, poisson=0.3):
    """An elastic plate and the coordinates of its free nodes."""
    x, y = np.meshgrid(np.linspace(0, 1, m + 1), np.linspace(0, 1, m + 1), indexing="ij")
    return gallery.elasticity2d(m, poisson=poisson).tocsr(), np.column_stack([x.ravel(), y.ravel()])[m + 1:]


def graph_of(A, space, nodes=None, count=None, modes=None):
    moved = CSRMatrix.from_scipy(A.tocsr().astype(float), space)
    index = None if nodes is None else space.from_host(nodes.astype(moved.indices.dtype))
    modes = np.ones((A.shape[0], 1)) if modes is None else modes
    return node_graph(moved, index, count or A.shape[0], space.from_host(np.ascontiguousarray(modes)))


def roots_in_order(S):
    """The roots that a loop over the nodes takes, from the greatest key on; S: the strong links."""
    near = ((S + S @ S) > 0).tolil()
    roots, keys = np.zeros(S.shape[0], bool), np.empty(S.shape[0], np.int64)
    native_kernels("swell.preconditioners.amg", "aggregates").hashes(0, keys)
    for i in np.argsort(-keys):
        roots[i] = S[[i]].nnz and not roots[near.rows[i]].any()
    return roots


def random_graph(n, seed):
    """A symmetric matrix with a positive diagonal, entries of both signs, and a node without links."""
    G = sp.random(n, n, min(1, 4 / n), random_state=seed)
    G.data -= 0.8
    keep = sp.diags_array((np.arange(n) != n // 2).astype(float))
    return sp.csr_array(keep @ (G + G.T) @ keep + sp.diags_array(np.full(n, 5.0)))


def strong_links(A, strength):
    """The strong links of nodes without near null vectors but the constant, by the formulas of aggregates.py."""
    off = sp.csr_array(A - sp.diags_array(A.diagonal())).tocoo()
    n = A.shape[0]
    positive, negative = (np.bincount(off.row, np.maximum(sign * off.data, 0), n) for sign in (1, -1))
    largest = np.zeros(n)
    np.maximum.at(largest, off.row, -off.data)
    share = np.clip(2 * positive / np.maximum(negative, 1e-300), strength, max(strength, 0.5)) if strength else np.zeros(n)
    bound = share * largest * (1 - 1e-6)
    strong = (off.data < 0) & (-off.data >= np.sqrt(bound[off.row] * bound[off.col]))
    return sp.csr_array((np.ones(strong.sum()), (off.row[strong], off.col[strong])), A.shape)


@pytest.mark.parametrize("strength", [0.0, 0.3])
def test_aggregates_are_what_a_loop_over_the_nodes_finds(space, strength):
    for A in (gallery.poisson2d(17), gallery.poisson3d(7), *(random_graph(n, n) for n in (1, 2, 40, 300))):
        with space.active():
            found, count, crossing = aggregates(graph_of(sp.csr_array(A), space), strength)
            found, crossing = space.to_host(found), space.to_host(crossing)
        S = strong_links(sp.csr_array(A), strength)
        roots = roots_in_order(S)
        linked = np.diff(S.indptr) > 0
        assert count == roots.sum() and np.array_equal(found[roots], np.arange(count))
        assert (found[~linked] == -1).all() and (found[linked] >= 0).all()
        rows = np.repeat(np.arange(len(roots)), np.diff(S.indptr))
        beside = roots[S.indices]
        assert np.array_equal(found[rows[beside]], found[S.indices[beside]])     # a root's neighbours are its own
        others = np.bincount(rows, found[rows] != found[S.indices], len(roots)) > 0
        assert np.array_equal(crossing > 0, others | ~linked)


def test_the_graph_has_the_energies_of_the_near_null_vectors(space):
    """With the translations these are the traces of the blocks: a Laplacian, whose rows sum to zero away from x = 0."""
    A, points = plate(4)
    nodes = np.arange(A.shape[0]) // 2
    with space.active():
        G = graph_of(A, space, nodes, nodes[-1] + 1, np.tile(np.eye(2), (len(points), 1))).to_scipy().toarray()
    B = A.toarray().reshape(len(G), 2, len(G), 2)
    assert np.allclose(G, np.trace(B, axis1=1, axis2=3), rtol=1e-13, atol=1e-15)
    assert abs(G[points[:, 0] > 0.3].sum(axis=1)).max() < 1e-13


def test_no_scale_overflows(space):
    for scale in (1e-160, 1e160):
        with space.active():
            G = graph_of(sp.csr_array(gallery.poisson2d(5) * scale), space)
            assert np.isfinite(space.to_host(G.data)).all() and aggregates(G, 0.08)[1] > 1


@pytest.mark.parametrize("dimensions", [2, 3])
def test_rigid_motions_are_those_of_the_host(space, dimensions):
    points = rng().standard_normal((50, dimensions))
    with space.active():
        A = CSRMatrix.from_scipy(sp.identity(50 * dimensions, format="csr"), space)
        modes = space.to_host(rigid_motions(A, space.from_host(points.ravel()), dimensions))
    host = swell.rigid_body_modes(points)
    assert modes.shape == host.shape and np.linalg.matrix_rank(np.column_stack([modes, host])) == host.shape[1]


def test_prolongators_hold_the_modes_and_drop_dependent_ones(space):
    """T is orthonormal and T times the coarse modes are the modes; an aggregate of one node has two columns, not three."""
    A, points = plate(8)
    n = A.shape[0]
    members = np.minimum(np.arange(n) // 2 // 5, 9)
    members[-2:], members[:2] = 10, 11                             # a node alone, and one without an aggregate
    with space.active():
        moved = CSRMatrix.from_scipy(A, space)
        modes = rigid_motions(moved, space.from_host(points.ravel()), 2)
        T, below, nodes = tentative(moved, space.from_host(members.astype(moved.indices.dtype)), 11, modes)
        smoothed = SmoothedInterpolation(moved, T)
        P = smoothed.P.to_scipy()
        T, below, modes, nodes = T.to_scipy(), *(space.to_host(a) for a in (below, modes, nodes))
    assert np.array_equal(np.bincount(nodes), [3] * 10 + [2])
    assert np.allclose((T.T @ T).toarray(), np.eye(T.shape[1]), atol=1e-13)
    assert np.allclose((T @ below)[2:], modes[2:], atol=1e-13) and not T[:2].nnz
    d = np.asarray(abs(A).sum(axis=1)).ravel()
    assert abs(P - (T - sp.diags_array(4 / 3 / smoothed.radius / d) @ A @ T)).max() < 1e-14


def test_rows_that_are_not_smoothed_stay(space):
    A, points = plate(8)
    rows = np.arange(A.shape[0])
    smoothed = (rows % 4 == 0).astype(np.uint8)
    with space.active():
        moved = CSRMatrix.from_scipy(A, space)
        modes = rigid_motions(moved, space.from_host(points.ravel()), 2)
        T = tentative(moved, space.from_host((rows // 18).astype(moved.indices.dtype)), rows[-1] // 18 + 1, modes)[0]
        made = SmoothedInterpolation(moved, T, "point", space.from_host(smoothed))
        doubled = CSRMatrix.from_scipy(A + sp.diags_array(A.diagonal()), space)
        found = [made.P.to_scipy().copy()]
        made.update(doubled)
        found.append(made.P.to_scipy())
        radii, T = [radius(M, "point") for M in (moved, doubled)], T.to_scipy()
    for P, B, estimate in zip(found, (A, A + sp.diags_array(A.diagonal())), radii):
        weights = 4 / 3 / estimate * smoothed / B.diagonal()
        assert abs(P - (T - sp.diags_array(weights) @ B @ T)).max() < 1e-14
    assert found[0].nnz < (abs(A) @ abs(T)).nnz


@pytest.mark.parametrize("body", ["plate", "cube", "one row", "empty rows"])
def test_the_radius_is_near_the_largest_eigenvalue(space, body):
    """Smoothers stand an estimate that is too small by a quarter."""
    A = {"plate": lambda: plate(20)[0], "cube": lambda: gallery.elasticity3d(5), "one row": lambda: sp.csr_array([[3.0]]),
         "empty rows": lambda: sp.csr_array((4, 4))}[body]()
    with space.active():
        found = radius(CSRMatrix.from_scipy(sp.csr_array(A), space))
    d = np.asarray(abs(A).sum(axis=1)).ravel()
    root = 1 / np.sqrt(np.where(d > 0, d, 1))
    true = np.linalg.eigvalsh(root[:, None] * A.toarray() * root)[-1] or 1.0
    assert 0.95 * true < found <= min(1.0, 1.1 * true)


def test_constants_by_blocks_and_members(space):
    with space.active():
        A = CSRMatrix.from_scipy(sp.identity(6, format="csr"), space)
        nodes, modes = blocks(A, 3)
        found = of_unknowns(A, nodes, space.from_host(np.array([4, -1], A.indices.dtype)), 7)
        assert np.array_equal(space.to_host(modes), np.tile(np.eye(3), (2, 1)))
        assert np.array_equal(space.to_host(found), [4, 4, 4, 7, 7, 7])


@pytest.mark.parametrize("settings", [{}, {"cycle": "V"}, {"degree": 1}, {"degree": 4, "cycle": "V"}], ids=str)
def test_the_cycle_is_symmetric_and_positive(space, settings):
    A, points = plate(9)
    with space.active():
        M = SmoothedAggregation(coordinates=points, coarsest=10, dtype="float64", **settings).build(
            CSRMatrix.from_scipy(A, space))
        assert len(M.hierarchy.levels) >= 2
        dense = np.empty(A.shape)
        out = space.empty(A.shape[0], float)
        for k, e in enumerate(np.eye(A.shape[0])):
            M.apply(space.from_host(e), out)
            dense[:, k] = space.to_host(out)
    assert abs(dense - dense.T).max() < 1e-13 * abs(dense).max()
    assert np.linalg.eigvalsh(dense + dense.T).min() > 0
    error = np.linalg.eigvals(np.eye(len(dense)) - dense @ A.toarray())
    assert abs(error).max() < 0.9


def test_iterations_hardly_depend_on_the_mesh():
    counts = []
    for m in (20, 40, 80):
        A, points = plate(m)
        r = swell.solve(A, rng().standard_normal(A.shape[0]), method="cg", device="cpu",
                        precond=SmoothedAggregation(coordinates=points))
        assert r.converged
        counts.append(r.iterations)
    assert max(counts) <= 20 and counts[-1] <= counts[0] + 4, counts


@pytest.mark.parametrize("A, size, elastic", [
    (lambda: gallery.elasticity2d(9), 2, True), (lambda: gallery.elasticity3d(6), 3, True),
    (lambda: gallery.poisson2d(20), 1, False), (lambda: gallery.poisson3d(6), 1, False), (lambda: gallery.p1_laplacian(300), 1, False),
    (lambda: gallery.multiconductor(100, 4), 4, False), (lambda: sp.csr_array((6, 6)), 1, False)])
def test_unknowns_of_a_point(space, A, size, elastic):
    """Regular meshes of tetrahedra miss some couplings, so that blocks of 3 are filled to 0.8."""
    with space.active():
        moved = CSRMatrix.from_scipy(sp.csr_array(A()), space)
        assert unknowns(moved) == size and like_elasticity(moved) == elastic


def test_classical_multigrid_says_who_is_made_for_elasticity():
    for A, said in ((gallery.elasticity2d(12), True), (gallery.poisson2d(12), False)):
        r = swell.solve(A, rng().standard_normal(A.shape[0]), method="cg", precond="amg")
        assert any("SmoothedAggregation, best with coordinates=" in note for note in r.notes) == said


def free_body(shape):
    """A body that nothing holds: all rigid motions are in the null space. The matrix and the positions."""
    points, cells = gallery.box_mesh(shape)
    return gallery.elastic_body(points, cells, np.zeros(len(points), bool))


@pytest.mark.parametrize("shape", [(24, 12), (7, 6, 5)], ids=str)
def test_a_body_that_nothing_holds(shape, device):
    A, points = free_body(shape)
    modes = swell.rigid_body_modes(points)
    b = A @ rng().standard_normal(A.shape[0])
    r = swell.solve(A, b, method="cg", device=device, nullspace=modes,
                    precond=SmoothedAggregation(coordinates=points, coarsest=40))
    assert r.converged and r.iterations < 25, r.iterations
    assert abs(modes.T @ r.x).max() < 1e-6 * np.linalg.norm(r.x)


def test_rigid_motions_pay(device):
    A, points = plate(30)
    b = rng().standard_normal(A.shape[0])
    same = np.arange(A.shape[0]) // 2
    given = {"coordinates": {"coordinates": points}, "modes": {"near_nullspace": swell.rigid_body_modes(points)},
             "nodes": {"near_nullspace": swell.rigid_body_modes(points), "nodes": same}, "constants": {}}
    found = {name: swell.solve(A, b, method="cg", device=device, precond=SmoothedAggregation(**options))
             for name, options in given.items()}
    assert all(r.converged for r in found.values())
    counts = {name: r.iterations for name, r in found.items()}
    assert counts["coordinates"] == counts["modes"] == counts["nodes"] < 0.7 * counts["constants"], counts


def test_nodes_that_have_lost_unknowns(device):
    """Some nodes have lost an unknown: the map and the modes have a row for each unknown that is left."""
    A, points = plate(20)
    kept = np.flatnonzero(rng().random(A.shape[0]) > 0.1)
    modes, nodes = swell.rigid_body_modes(points)[kept], kept // 2
    nodes = np.unique(nodes, return_inverse=True)[1]
    r = swell.solve(A[kept][:, kept], rng().standard_normal(kept.size), method="cg", device=device,
                    precond=SmoothedAggregation(near_nullspace=modes, nodes=nodes))
    assert r.converged and r.iterations < 40


def test_an_update_is_a_fresh_build_to_the_bit(device):
    A, points = plate(15)
    B = A.copy()
    B.data *= 4                                  # T stays, and a fresh one is half as large, to the bit
    first, second = (swell.prepare(M, method="cg", device=device, precond=SmoothedAggregation(coordinates=points, coarsest=40))
                     for M in (A, B))
    first.update(B)
    b = rng().standard_normal(A.shape[0])
    assert np.array_equal(first.solve(b).x, second.solve(b).x)


@pytest.mark.parametrize("settings", [swell.AMG(coarsest=20), SmoothedAggregation(coarsest=20)], ids=["classical", "smoothed"])
def test_an_update_forgets_adjoints(space, settings):
    A = sp.csr_array(gallery.poisson2d(12))
    shift = sp.diags_array(np.linspace(0, 3, 144))
    with space.active():
        first, second = (CSRMatrix.from_scipy((A + s * shift).tocsr(), space) for s in (0, 1))
        M = settings.build(first)
        level, x = M.hierarchy.levels[0], rng().standard_normal(144)
        out = space.empty(level.P.shape[1], float)
        for _ in range(2):
            level.P.apply_adjoint(space.from_host(x), out)
            assert np.allclose(space.to_host(out), level.P.to_scipy().T @ x, rtol=1e-12, atol=1e-13)
            M.update(second)


@pytest.mark.gpu
def test_devices_agree():
    from tests.conftest import space_or_skip
    space_or_skip("cuda")
    A, points = plate(14)
    made = [swell.prepare(A, method="cg", device=device, precond=SmoothedAggregation(coordinates=points, coarsest=40)).M
            for device in ("cpu", "cuda")]
    mine, its = (M.hierarchy.levels for M in made)
    assert len(mine) == len(its) >= 2
    for one, other in zip(mine, its):
        P, Q = one.P.to_scipy(), other.P.to_scipy()
        assert np.array_equal(P.indices, Q.indices) and abs(P - Q).max() < 1e-12


BAD = {
    "coordinates of another size": ({"coordinates": np.zeros((3, 2))}, r"shape \(3, 2\): expected \(m, 2\)"),
    "a number for coordinates": ({"coordinates": 3.0}, "coordinates"),
    "coordinates of one axis": ({"coordinates": np.zeros((24, 1))}, "expected"),
    "coordinates that are not finite": ({"coordinates": np.full((12, 2), np.nan)}, "non-finite"),
    "modes of another length": ({"near_nullspace": np.ones(5)}, r"expected \(24, k\)"),
    "dependent modes": ({"near_nullspace": np.ones((24, 2))}, "2 columns of rank 1"),
    "complex modes": ({"near_nullspace": np.full(24, 1j)}, "complex"),
    "a misspelt word": ({"near_nullspace": "rigid"}, "expected 'constants'"),
    "both": ({"near_nullspace": np.ones(24), "coordinates": np.zeros((12, 2))}, "give one of them"),
    "nodes of another length": ({"nodes": np.zeros(3, int)}, r"expected integers of shape \(24,\)"),
    "nodes with a hole": ({"nodes": np.r_[np.arange(23), 24]}, "node 23 has no row"),
    "negative nodes": ({"nodes": np.r_[-1, np.arange(23)]}, "row 0 has node -1"),
    "a block that does not divide": ({"block": 7}, "do not divide the 24 rows"),
    "nodes and a block": ({"nodes": np.arange(24), "block": 2}, "give one of them"),
    "a cycle": ({"cycle": "F"}, "expected 'V' or 'W'"),
    "a strength": ({"strength": -1}, "at least 0 and at most 1"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_clear_error(what):
    options, message = BAD[what]
    A, _ = plate(3)
    with pytest.raises(InputError, match=message):
        swell.solve(A, np.ones(24), method="cg", device="cpu", precond=SmoothedAggregation(**options))


@pytest.mark.parametrize("change, words", [(np.transpose, "give the transpose, coordinates.T"),
                                           (lambda points: points[1:], "points of the nodes that A has, without fixed")])
def test_coordinates_of_another_shape(change, words):
    A, points = plate(6)
    with pytest.raises(InputError, match=words):
        swell.prepare(A, method="cg", precond=SmoothedAggregation(coordinates=change(points)))
