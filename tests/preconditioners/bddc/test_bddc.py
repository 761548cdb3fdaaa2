"""BDDC: against dense linear algebra, the laws of its theory, and input that cannot work."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from tests.conftest import space_or_skip
from tests.support.during import during

import swell
from swell import gallery
from swell.core.errors import FactorisationError
from swell.core.registry import names, resolve
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix
from swell.pde import fvm
from swell.pde.poisson_cube import PoissonCube
from swell.preconditioners.bddc.coarse import group_neighbours
from swell.preconditioners.bddc.interface import KINDS
from swell.preconditioners.bddc.inverse import invert
from swell.preconditioners.bddc.splitting import split

RNG = np.random.default_rng(3)


def matrix_of(operator):
    """Its entries, column by column."""
    n, space = operator.shape[0], operator.space
    out, columns = space.empty(n, operator.dtype), []
    with space.active(n):
        for k in range(n):
            unit = np.zeros(n, operator.dtype)
            unit[k] = 1
            operator.apply(space.from_host(unit), out)
            columns.append(space.to_host(out).copy())
    return np.array(columns).T


def eigenvalues(system, **settings):
    """Of M A, all of them."""
    M = matrix_of(swell.BDDC(subdomains=system.subdomains, **settings).build(system.A))
    assert np.allclose(M, M.T, rtol=0, atol=1e-12 * abs(M).max())
    A = system.A.to_scipy().toarray()
    L = np.linalg.cholesky(A)
    return np.linalg.eigvalsh(L.T @ M @ L)


def textbook(system, constraints):
    """M of two levels by its definition (Mandel and Dohrmann 2003): P + (I − P A) E Ã⁻¹ Eᵀ (I − A P), all dense.

    P solves in interiors, Ã is the matrix on functions whose copies agree in the constraints alone, E averages copies.
    """
    A, subs = system.A.to_scipy().toarray(), system.subdomains
    n, every = subs.n, np.concatenate(subs.dofs)
    counts = np.bincount(every, minlength=n)
    broken = np.zeros((every.size, every.size), A.dtype)
    ends = np.cumsum([d.size for d in subs.dofs])
    for matrix, d, end in zip(subs.matrices, subs.dofs, ends, strict=True):
        broken[end - d.size:end, end - d.size:end] = matrix.toarray()
    owner = np.repeat(np.arange(len(subs)), [d.size for d in subs.dofs])
    classes = {}
    for dof in np.flatnonzero(counts > 1):
        classes.setdefault(tuple(owner[every == dof]), []).append(dof)
    jumps = []                                                   # partial assembly: averages of copies agree
    for members, dofs in classes.items():
        kind = "c" if len(dofs) == 1 else "e" if len(members) > 2 else "f"
        if kind in constraints:
            averages = [(np.isin(every, dofs) & (owner == m)) / len(dofs) for m in members]
            jumps += [averages[0] - other for other in averages[1:]]
    jumps = np.array(jumps)
    basis = np.linalg.svd(jumps)[2][np.linalg.matrix_rank(jumps):].T
    partial = basis @ np.linalg.solve(basis.T @ broken @ basis, basis.T)
    diagonal = abs(np.concatenate([m.diagonal() for m in subs.matrices]))
    weight = diagonal / np.bincount(every, diagonal)[every]
    average = np.zeros((n, every.size))
    average[every, np.arange(every.size)] = weight
    inner = counts == 1
    P = np.zeros((n, n), A.dtype)
    P[np.ix_(inner, inner)] = np.linalg.inv(A[np.ix_(inner, inner)])
    return P + (np.eye(n) - P @ A) @ average @ partial @ average.T @ (np.eye(n) - A @ P)


@pytest.mark.parametrize("constraints", ["c", "ef", "cef"])
@pytest.mark.parametrize("coefficient", ["constant", "checkerboard"])
def test_it_is_what_its_definition_says(constraints, coefficient):
    system = PoissonCube(3, 2, coefficient=coefficient, jump=100.0).assemble()
    M = matrix_of(swell.BDDC(subdomains=system.subdomains, constraints=constraints).build(system.A))
    expected = textbook(system, constraints)
    assert abs(M - expected).max() < 1e-11 * abs(expected).max()


@pytest.mark.parametrize("elements, subdomains, levels", [(3, 3, 2), (2, 4, 3)])
def test_the_spectrum_begins_at_one(elements, subdomains, levels):
    found = eigenvalues(PoissonCube(elements, subdomains, levels).assemble(), levels=levels)
    assert abs(found[0] - 1) < 1e-10 and 1.01 < found[-1] < 2


def test_schur_complements_are_exact():
    """Of every subdomain, by way of the coarse basis: Σ = Ψᵀ S Ψ, C Ψ = I, C K = 0, K S K = K."""
    system = PoissonCube(4, 3).assemble()
    level = swell.BDDC(subdomains=system.subdomains).build(system.A).level
    problems = [(members[0], *of) for p in level.locals
                for members, *of in zip(p.members, p.K.matrices, p.basis, p.adjoint, p.coarse, strict=True)]
    assert len(problems) == 27 and len(level.locals) == 4        # corners, edges, faces and the inside of the cube
    for k, K, basis, adjoint, coarse in problems:
        own, A = level.interface.local[k], system.subdomains.matrices[k].toarray()
        inner = np.setdiff1d(np.arange(len(A)), own)
        harmonic = np.linalg.solve(A[np.ix_(inner, inner)], A[np.ix_(inner, own)])
        S = A[np.ix_(own, own)] - A[np.ix_(own, inner)] @ harmonic
        C, _ = level.constraints.matrix(k)
        assert np.allclose(basis.T @ S @ basis, coarse, atol=1e-12) and np.array_equal(basis.T, adjoint)
        assert np.allclose(C @ basis, np.eye(len(C)), atol=1e-12)
        assert np.allclose(C @ K, 0, atol=1e-11) and np.allclose(K @ S @ K, K, atol=1e-10)
        assert np.allclose(C.sum(axis=1), 1)


def test_the_interface_of_a_cube():
    """27 subdomains: 8 corners, 36 edges, 54 faces; an interior one has 8, 12, 6, and 26 constraints."""
    system = PoissonCube(5, 3).assemble()
    level = swell.BDDC(subdomains=system.subdomains).build(system.A).level
    assert np.bincount(level.interface.kinds).tolist() == [8, 36, 54] and KINDS == ("corner", "edge", "face")
    assert max(level.sizes) == 6**3 - 4**3 + 26 == 178           # as in section 3.2.2 of the thesis
    assert min(level.sizes) == 5**3 - 4**3 + 7                   # at a corner of the cube
    assert level.coarse.inverse.matrices.shape[1] == level.constraints.count == 98


def solved(elements, subdomains, levels=2, **settings):
    """A solution for a random right-hand side, whose spectrum is all there."""
    system = PoissonCube(elements, subdomains, levels).assemble()
    r = system.solve(b=np.random.default_rng(1).standard_normal(system.cube.n), **settings)
    assert r.result.converged
    return r


def test_iterations_do_not_grow_with_the_subdomains():
    found = [solved(4, s) for s in (2, 3, 4, 6)]
    assert [r.result.iterations for r in found] == [5, 6, 6, 6]
    assert all(abs(r.extremes[0] - 1) < 5e-4 for r in found)
    growth = np.diff([r.extremes[1] for r in found])
    assert (growth > 0).all() and growth[-1] < growth[0] / 2     # towards a bound


def test_the_condition_grows_with_the_logarithm_of_the_size():
    """κ ≤ C (1 + log H/h)²: the largest eigenvalue grows, its ratio to that does not."""
    sizes = np.array([3, 4, 6])
    found = [solved(m, 3) for m in sizes]
    largest = np.array([r.extremes[1] for r in found])
    assert (np.diff(largest) > 0).all() and largest[0] > 1.05
    assert (np.diff(largest / (1 + np.log(sizes))**2) < 0).all()
    assert (np.diff([r.result.iterations for r in found]) >= 0).all() and found[-1].result.iterations <= 7


@pytest.mark.parametrize("decomposer", [*names("decomposer"), "icm(x=8)", "pcm(x=8, form=plain)"])
def test_every_exact_decomposer_gives_the_same(decomposer):
    reference, found = solved(3, 3), solved(3, 3, dense_lu=decomposer)
    assert found.result.iterations == reference.result.iterations
    assert found.extremes == pytest.approx(reference.extremes, rel=1e-9)
    assert abs(found.result.x - reference.result.x).max() < 1e-11 * abs(reference.result.x).max()


def test_looser_tolerances_of_icm_cost_iterations():
    counts = [solved(4, 3, dense_lu=f"icm(x=8, tolerance={t})").result.iterations for t in (1e-6, 1e-2, 0.2)]
    assert counts[0] == 6 and counts[-1] > counts[0] and counts == sorted(counts)


@pytest.mark.parametrize("cube, tolerance", [((4, 4, 3), 1), ((4, 3, 2, "channels"), 1), ((4, 3, 2, "channels"), 0.03),
                                             ((3, 2), 100)])
def test_tolerances_that_are_too_loose_are_tightened(cube, tolerance):
    """Local inverses would be none, so that BDDC were indefinite, or factors would have nothing left of a problem."""
    r = PoissonCube(*cube).solve(dense_lu=f"icm(x=16, tolerance={tolerance})")
    assert r.result.converged and r.extremes[0] > 0.5
    assert any(f"ICM(x=16, tolerance={tolerance})" in note and "was taken" in note for note in r.result.notes)


def test_useless_factors_of_local_problems_are_an_error():
    """Of an exact decomposition nothing can be tightened."""
    B = np.random.default_rng(0).standard_normal((2, 60, 60))
    np.fill_diagonal(B[0], 100)
    np.fill_diagonal(B[1], 1e-14)
    with pytest.raises(FactorisationError, match="^GEM: L U misses P A .* take pivoting='full'") as caught:
        invert(make_space("cpu"), resolve("decomposer", "gem(pivoting=none)"), None, B)
    assert caught.value.index == 1 and not caught.value.singular


def test_more_levels():
    found = [solved(2, 8, levels) for levels in (2, 3, 4)]
    assert found[1].bddc.level.next.next is None and found[2].bddc.level.next.next is not None
    counts, largest = [r.result.iterations for r in found], [r.extremes[1] for r in found]
    assert counts == sorted(counts) and counts[-1] <= 10
    assert largest == sorted(largest) and largest[0] < largest[1] < largest[2] < 2      # every level multiplies
    assert all(abs(r.extremes[0] - 1) < 1e-3 for r in found)


def test_neighbours_are_put_together():
    """Without groups; each has about eight, and none is left alone."""
    system = PoissonCube(3, 4).assemble()
    level = swell.BDDC(subdomains=system.subdomains).build(system.A).level
    group = group_neighbours(level.constraints.coarse, level.constraints.count)
    assert np.bincount(group).sum() == 64 and np.bincount(group).min() >= 4 and np.bincount(group).max() <= 12
    r = swell.solve(system.A, RNG.standard_normal(system.cube.n), method="cg",
                    precond=swell.BDDC(levels=3, subdomains=system.subdomains))
    assert r.converged and r.iterations < 15


@pytest.mark.parametrize("settings", [{"interior": "ic0"}, {"interior": "blocks"}, {"weights": "cardinality"}, {"constraints": "ce"}])
def test_other_settings(settings):
    r = solved(4, 3, **settings)
    reference = sla.spsolve(r.system.A.to_scipy().tocsc(), np.random.default_rng(1).standard_normal(1331))
    assert abs(r.result.x - reference).max() < 1e-6 * abs(reference).max() and r.result.iterations < 12


def test_stiffness_weights_follow_jumps():
    cube = PoissonCube(4, 3, coefficient="checkerboard", jump=1e6)
    good, bad = (cube.solve(weights=w, maxiter=200) for w in ("stiffness", "cardinality"))
    assert good.result.converged and good.extremes[1] < 1.3 and bad.extremes[1] > 1e4


def test_adaptive_constraints():
    """Channels of 1e4 across faces: one constraint for each crossing, and the condition is as without channels."""
    system = PoissonCube(4, 3, coefficient="channels").assemble()
    b = np.random.default_rng(1).standard_normal(system.cube.n)
    plain, adaptive = (system.solve(b=b, adaptive=threshold) for threshold in (0, 10))
    assert plain.extremes[1] > 30 and adaptive.extremes[1] < 1.4 and adaptive.bddc.level.constraints.more == 18
    assert adaptive.result.iterations < plain.result.iterations / 2 and "18 adaptive" in adaptive.bddc.describe()
    assert abs(adaptive.extremes[0] - 1) < 1e-3
    assert PoissonCube(4, 2).solve(adaptive=10).bddc.level.constraints.more == 0


@pytest.mark.parametrize("jump, error, words", [
    (1e18, FactorisationError, r"BDDC\(adaptive=5\): subdomains? \d+.*leave adaptive out"),
    (1e25, FactorisationError, r"BDDC\(adaptive=5\): subdomains? \d+.*leave adaptive out"),
    (1e300, FactorisationError, "subdomain")])
def test_coefficients_too_far_apart_for_adaptive_constraints_are_an_error(jump, error, words):
    with pytest.raises(error, match=words):
        PoissonCube(4, 3, coefficient="channels", jump=jump).solve(adaptive=5)


def test_adaptive_constraints_bound_the_condition():
    """Where k jumps from element to element by up to eight orders: the lower the threshold, the lower the condition."""
    k = 10.0 ** np.random.default_rng(0).uniform(-4, 4, (8, 8, 8))
    system = PoissonCube(4, 2, coefficient=k).assemble()
    largest = [eigenvalues(system, adaptive=t)[-1] for t in (0, 10, 3, 1.5)]
    assert largest == sorted(largest, reverse=True) and largest[0] > 10 and largest[-1] < 3
    assert all(value < 4 * t for value, t in zip(largest[1:], (10, 3, 1.5), strict=True))


def crossings(elements, subdomains, jump):
    """k with ``jump`` in pieces that touch at edges along the last axis alone, from one subdomain to the one across the
    edge, and 1 elsewhere."""
    at = np.arange(elements * subdomains)
    k = np.ones((at.size,) * 3)
    for edge in range(elements, at.size, elements):
        for other in range(elements, at.size, elements):
            for side in (0, 1):
                k[edge - side, other - side, at % 3 == 1] = jump
    return k


def test_adaptive_constraints_on_edges(monkeypatch):
    """Pieces of 1e6 that cross edges: averages and faces' functions leave a large eigenvalue, edges' functions do not."""
    from swell.preconditioners.bddc import level
    system = PoissonCube(6, 2, coefficient=crossings(6, 2, 1e6)).assemble()
    b = np.random.default_rng(1).standard_normal(system.cube.n)
    both, plain = system.solve(b=b, adaptive=10), system.solve(b=b)
    found = both.bddc.level
    edges = np.isin(found.constraints.classes[-found.constraints.more:], np.flatnonzero(found.interface.kinds == 1))
    assert edges.any() and plain.extremes[1] > 100 and both.extremes[1] < 10, (plain.extremes, both.extremes)
    whole = level.adaptive_constraints
    monkeypatch.setattr(level, "adaptive_constraints", lambda *given: whole(*given[:6], "f", given[7]))
    assert system.solve(b=b, adaptive=10).extremes[1] > 100


def test_adaptive_constraints_on_more_levels():
    """Each level's bound multiplies: on three levels a threshold of 3 stays below nine."""
    k = 10.0 ** np.random.default_rng(0).uniform(-3, 3, (16,) * 3)
    b = np.random.default_rng(1).standard_normal(15 ** 3)
    two, three, plain = (PoissonCube(4, 4, levels, coefficient=k).assemble().solve(b=b, adaptive=threshold)
                         for levels, threshold in ((2, 3), (3, 3), (3, 0)))
    assert two.extremes[1] < 6 and three.extremes[1] < 9 < plain.extremes[1] and plain.extremes[1] > 20
    assert three.bddc.level.next.constraints.more > 0 and three.result.iterations <= two.result.iterations + 4


@pytest.mark.parametrize("interior", ["direct", "blocks", "ic0"])
@pytest.mark.parametrize("settings", [{}, {"dense_lu": "pcm(x=8)"}, {"dense_lu": "icm(x=8)"}, {"adaptive": 5}])
def test_on_every_device(device, interior, settings):
    """The same iterations and spectrum as on the host, to rounding."""
    cube = PoissonCube(4, 2, coefficient="channels", jump=100.0)
    found = [cube.solve(interior=interior, device=where, **settings) for where in ("cpu", device)]
    assert all(r.result.converged for r in found) and found[0].result.iterations == found[1].result.iterations
    assert found[1].extremes == pytest.approx(found[0].extremes, rel=1e-8)
    assert abs(found[1].u - found[0].u).max() < 1e-10 * found[0].u.max()


@pytest.mark.parametrize("interior", ["direct", "blocks", "ic0"])
def test_levels_on_every_device(device, interior):
    cube = PoissonCube(2, 4, 3)
    counts = [cube.solve(interior=interior, device=where).result.iterations for where in ("cpu", device)]
    assert counts[0] == counts[1] < 15


def test_corners_alone_lose_the_logarithm():
    """In three dimensions: the largest eigenvalue then grows like H/h; with edges it does not."""
    sizes = np.array([4, 6])
    corners, edges = (np.array([solved(m, 3, constraints=kinds).extremes[1] for m in sizes]) / (1 + np.log(sizes))**2
                      for kinds in ("c", "ce"))
    assert corners[1] > 1.2 * corners[0] and edges[1] < edges[0]


@pytest.mark.parametrize("interior", ["direct", "blocks", "ic0"])
def test_single_precision(device, interior):
    space = space_or_skip(device)
    system = PoissonCube(4, 3).assemble()
    A = CSRMatrix.from_scipy(system.A.to_scipy().astype(np.float32), space)
    b = RNG.standard_normal(A.shape[0]).astype(np.float32)
    r = swell.solve(A, b, method="cg", rtol=1e-5,
                    precond=swell.BDDC(subdomains=system.subdomains, interior=interior))
    assert r.converged and r.iterations <= 6


# -- matrices that are split ------------------------------------------------------------------------------------------

def boxes(shape, parts):
    """The owner of each point of a grid cut into boxes."""
    owner = np.zeros(shape, int)
    for axis, (size, count) in enumerate(zip(shape, parts, strict=True)):
        others = [a for a in range(len(shape)) if a != axis]
        owner = owner * count + np.expand_dims(np.arange(size) * count // size, others)
    return owner.ravel()


def test_a_matrix_split_adds_up():
    A = gallery.poisson3d(8).tocsr()
    subdomains = split(A, boxes((8, 8, 8), (2, 2, 2)))
    assert len(subdomains) == 8 and abs(subdomains.assemble() - A).max() < 1e-12
    assert all(np.linalg.eigvalsh(m.toarray())[0] > -1e-12 for m in subdomains.matrices)


@pytest.mark.parametrize("make, parts", [(lambda m: gallery.poisson3d(m), 3), (lambda m: gallery.poisson2d(m), 2)])
def test_finite_volumes_by_boxes(make, parts):
    counts = []
    for s in (2, 4):
        m = 5 * s
        A = make(m).tocsr()
        bddc = swell.BDDC(subdomains=split(A, boxes((m,) * parts, (s,) * parts)))
        r = swell.solve(A, np.random.default_rng(1).standard_normal(m**parts), method="cg", precond=bddc)
        assert r.converged and abs(r.spectrum.extremes[0] - 1) < 2e-3
        counts.append(r.iterations)
    assert counts[1] <= counts[0] + 3 and counts[1] < 15


@pytest.mark.parametrize("partition", ["rows", "graph"])
def test_a_mesh_of_finite_volumes(partition):
    """Cells at the interface are duplicated, whatever cuts the mesh; what is in the way is named."""
    if partition == "graph":
        pytest.importorskip("pymetis", reason="needs pymetis: pip install 'swell[partition]'")
    walls = {name: fvm.Neumann() for name in ("xmax", "ymin", "ymax", "zmin", "zmax")} | {"xmin": fvm.Dirichlet(0.0)}
    problem = fvm.Poisson(fvm.box((10, 10, 10)), walls, source=1.0)
    bddc = f"bddc(domains=8, partition={partition})"
    found, reference = problem.solve(precond=bddc), problem.solve()
    assert found.converged and found.result.iterations < reference.result.iterations
    assert abs(found.p - reference.p).max() < 1e-6 * abs(reference.p).max()
    assert abs(found.result.spectrum.extremes[0] - 1) < 2e-3
    with pytest.raises(swell.InputError, match="bddc acts on the system .* leave out scaling"):
        problem.solve(precond=bddc, scaling="jacobi")
    floating = fvm.Poisson(fvm.box((6, 6, 6)), walls | {"xmin": fvm.Neumann()})
    with pytest.raises(swell.InputError, match="leave out nullspace"):
        floating.solve(precond=bddc)


@pytest.mark.parametrize("partition", ["rows", "graph"])
def test_any_m_matrix(partition):
    if partition == "graph":
        pytest.importorskip("pymetis", reason="needs pymetis: pip install 'swell[partition]'")
    A = gallery.poisson2d(40)
    settings = resolve("precond", f"bddc(domains=9, partition={partition})")
    r = swell.solve(A, np.ones(1600), method="cg", precond=settings)
    assert r.converged and r.iterations < 25
    assert abs(A @ r.x - 1).max() < 1e-7
    if partition == "rows":
        assert any("no corners: averages alone" in note for note in r.notes)
    assert swell.solve(A, np.ones(1600), method="cg").iterations > 2 * r.iterations


def test_new_values():
    A = gallery.poisson2d(20)
    solver = swell.prepare(A, method="cg", precond="bddc(domains=4, partition=rows)")
    B = A.copy() * 3.0
    assert solver.solve(np.ones(400)).iterations == solver.update(B).solve(np.ones(400)).iterations
    system = PoissonCube(3, 2).assemble()
    solver = swell.prepare(system.A.to_scipy(), method="cg", precond=swell.BDDC(subdomains=system.subdomains))
    with pytest.raises(swell.InputError, match="do not add up to A: row"):
        solver.update(system.A.to_scipy() * 2)


def test_one_subdomain_is_a_direct_solve():
    A = gallery.poisson2d(10)
    bddc = swell.BDDC(subdomains=swell.Subdomains([(A, np.arange(100))]))
    r = swell.solve(A, np.ones(100), method="cg", precond=bddc)
    assert r.converged and r.iterations == 1


# -- input that cannot work -------------------------------------------------------------------------------------------

def test_pieces_become_subdomains():
    """Two strips that a partitioner called one subdomain, another between them."""
    A = gallery.poisson2d(12).tocsr()
    subdomains = split(A, np.repeat([0, 1, 0], 48))
    assert len(subdomains) == 3 and "of 2 subdomains number 0 came in pieces" in subdomains.notes[0]
    r = swell.solve(A, np.ones(144), method="cg", precond=swell.BDDC(subdomains=subdomains))
    assert r.converged and any("pieces" in note for note in r.notes)


def test_too_few_constraints():
    """Slabs have no edges: none holds the middle one; with faces they are held, or with a corner a face."""
    A = gallery.neumann((9, 9)).tocsr() + sp.diags_array(np.r_[np.ones(9), np.zeros(72)])
    subdomains = split(sp.csr_array(A), np.arange(81) // 27)
    words = r"local problem of subdomain [12] is singular with its 0 constraints.*add faces, constraints='ef'"
    with pytest.raises(swell.InputError, match=words):
        swell.solve(A, np.ones(81), method="cg", precond=swell.BDDC(subdomains=subdomains, constraints="e"))
    r = swell.solve(A, np.ones(81), method="cg", precond=swell.BDDC(subdomains=subdomains))
    assert r.converged and any("no corners" in note for note in r.notes)
    found = swell.BDDC(subdomains=subdomains, constraints="c").build(CSRMatrix.from_scipy(A, make_space("cpu")))
    assert found.level.interface.describe() == "2 corners, 0 edges, 2 faces"


@pytest.mark.parametrize("levels", [2, 3])
def test_a_singular_matrix_is_called_so(levels):
    A = gallery.neumann((12, 12)).tocsr()
    r = swell.solve(A, A @ RNG.standard_normal(144), method="cg",
                    precond=f"bddc(domains=4, partition=rows, levels={levels})")
    assert r.reason is swell.Reason.SINGULAR and any("coarse problem is singular" in note for note in r.notes)


def test_a_matrix_that_is_not_positive_definite():
    """Its interiors say so, in a note. One dof on the interface: M is the inverse."""
    B = np.array([[1, 2, -0.1], [2, 1, -0.1], [-0.1, -0.1, 1]])
    indefinite = swell.Subdomains([(B, [0, 1, 2]), (np.array([[1, -0.5], [-0.5, 1]]), [2, 3])])
    r = swell.solve(indefinite.assemble(), np.ones(4), method="cg", precond=swell.BDDC(subdomains=indefinite))
    assert r.converged and r.iterations == 1 and any("not positive definite" in note for note in r.notes)


def test_subdomains_that_share_nothing():
    A = gallery.poisson2d(4).tocsr()
    parts = [(A[:12, :12], np.arange(12)), (sp.eye_array(4), np.arange(12, 16)), (A, np.arange(16, 32)),
             (A, np.arange(28, 44))]
    for levels in (2, 3):
        subdomains = swell.Subdomains(parts)
        b = RNG.standard_normal(44)
        r = swell.solve(subdomains.assemble(), b, method="cg", precond=swell.BDDC(levels, subdomains=subdomains))
        assert r.converged and abs(subdomains.times(r.x) - b).max() < 1e-7


def test_memory(monkeypatch):
    system = PoissonCube(3, 2).assemble()
    monkeypatch.setattr(type(system.A.space), "memory", lambda self: (40_000, 10**9))
    with pytest.raises(swell.OutOfMemory, match="8 different local problems with up to 19 dofs"):
        swell.BDDC(subdomains=system.subdomains).build(system.A)
    with pytest.raises(swell.OutOfMemory, match="and the factors of 1 different interiors, needs .* interior='ic0'"):
        swell.BDDC(subdomains=system.subdomains, interior="blocks").build(system.A)


@pytest.mark.parametrize("parts, words", [
    ([], "no parts"), ([np.eye(2)], "subdomain 0 is of type ndarray: expected a pair"),
    ([(np.eye(2), [0, 1], [0])], "expected a pair"),
    ([(np.eye(2), [0, 1]), (np.zeros((0, 0)), [])], "subdomain 1 is empty"),
    ([(np.eye(2), [0, 1, 2])], "has 3 dofs and a matrix of shape"),
    ([(np.eye(2), [0, 0])], "names a dof twice"),
    ([(np.eye(2), [0.0, 1.0])], "expected a list of rows"),
    ([(np.eye(2) * np.nan, [0, 1])], "not finite"),
    ([(np.eye(2, dtype=bool), [0, 1])], "real or complex numbers"),
    ([(np.eye(2), [0, 2])], "row 1 is in no subdomain"),
])
def test_bad_subdomains(parts, words):
    with pytest.raises(swell.InputError, match=words):
        swell.Subdomains(parts)


def test_bad_groups():
    with pytest.raises(swell.InputError, match="groups.0. has shape"):
        swell.Subdomains([(np.eye(2), [0, 1]), (np.eye(2), [1, 2])], groups=[[0, 2]])


@pytest.mark.parametrize("settings, words", [
    ({"levels": 1}, "levels"), ({"constraints": "x"}, "expected some of the letters"), ({"constraints": ""}, "letters"),
    ({"weights": "dirichlet"}, "weights"), ({"dense_lu": "lu"}, "unknown decomposer"), ({"interior": "none"}, "interior"), ({"coarse": "none"}, "coarse='none'"),
    ({"coarse": "amgg"}, "expected 'exact'.*did you mean"),
    ({"subdomains": [1]}, "expected swell.Subdomains"), ({"partition": "box"}, "partition"),
    ({"domains": -1}, "domains"), ({"subdomains": swell.Subdomains([(np.eye(2), [0, 1])]), "domains": 8}, "leave domains out"),
    ({"adaptive": 0.5}, "above 1"),
    ({"adaptive": 10, "constraints": "c"}, "belong to edges"), ({"adaptive": 10, "weights": "deluxe"}, "scalar weights"),
])
def test_bad_settings(settings, words):
    with pytest.raises(swell.InputError, match=words):
        swell.BDDC(**settings)


@pytest.mark.parametrize("A, words", [
    (gallery.helmholtz((6, 6), 3.0), "sums to -"),
    (sp.csr_array(np.array([[4.0, 1, 0], [1, 4, -1], [0, -1, 4]])), "positive off the diagonal.*subdomain matrices"),
    (sp.csr_array(np.array([[4.0, -3, -3], [-3, 9, 0], [-3, 0, 9]])), "row 0 sums to -2"),
    (sp.csr_array(np.array([[1.0, 0, 0], [-4, 4, -1], [0, -1, 4]])), r"row 0 of its symmetric part, .* sums to -1"),
    (sp.csr_array(np.array([[4.0, 2, 0], [-1, 4, -1], [0, -1, 4]])), r"symmetric part.* at \(0, 1\) is 0.5, positive"),
])
def test_matrices_that_cannot_be_split(A, words):
    with pytest.raises(swell.InputError, match=words):
        swell.solve(A, np.ones(A.shape[0], A.dtype), method="gmres", precond="bddc(domains=2, partition=rows)")


def test_subdomains_of_another_matrix():
    A = gallery.poisson2d(6).tocsr()
    bddc = swell.BDDC(subdomains=split(A, np.arange(36) // 18))
    with pytest.raises(swell.InputError, match="36 dofs, and A has 49 rows"):
        swell.solve(gallery.poisson2d(7), np.ones(49), method="cg", precond=bddc)
    with pytest.raises(swell.InputError, match="without ordering and scaling"):
        swell.solve(A, np.ones(36), method="cg", scaling="ruiz", precond=bddc)


@pytest.mark.parametrize("coarse", [swell.SmoothedAggregation(coarsest=20), swell.AMG(coarsest=20), "ic0"], ids=str)
def test_an_approximate_coarse_problem(coarse):
    """It costs iterations in proportion to the square root of its own condition number."""
    A = gallery.poisson2d(40)
    b = RNG.standard_normal(A.shape[0])
    exact, found = (swell.solve(A, b, method="cg", precond=swell.BDDC(domains=64, coarse=c)) for c in ("exact", coarse))
    assert found.converged and exact.iterations <= found.iterations < 2.2 * exact.iterations, found.iterations


def test_interiors_by_multigrid():
    """The better the cycle, the nearer the iterations to those of exact interiors."""
    A = gallery.poisson2d(48)
    b = RNG.standard_normal(A.shape[0])
    exact, good, poor = (swell.solve(A, b, method="cg", precond=swell.BDDC(domains=9, interior=interior)).iterations
                         for interior in ("direct", "amg(degree=4, cycle=W)", "ic0"))
    assert exact < good < 1.6 * exact and poor > 4 * exact, (exact, good, poor)


def test_near_null_vectors_of_an_interior_solver():
    """They are for all rows of A; the solver gets the interior rows."""
    A, b = gallery.poisson2d(24), RNG.standard_normal(576)
    given = swell.SmoothedAggregation(near_nullspace=np.ones(576))
    of_given, plain = (swell.solve(A, b, method="cg", precond=swell.BDDC(domains=4, interior=interior)) for interior in
                       (given, "smoothed_aggregation"))
    assert of_given.converged and of_given.iterations == plain.iterations


@pytest.mark.parametrize("interior", ["ic0", "smoothed_aggregation", "jacobi"])
def test_inexact_interiors_extend_near_null_vectors_exactly(device, interior):
    """M is symmetric and positive definite, and the extension of a constant from a floating subdomain is constant."""
    space = space_or_skip(device)
    system = PoissonCube(4, 3).assemble(device)
    with space.active(system.cube.n):
        level = swell.BDDC(subdomains=system.subdomains, interior=interior).build(system.A).level
        interiors = level.interiors
        zero, out = (space.from_host(np.zeros(system.cube.n)) for _ in range(2))
        interiors.reduce(zero, level._g, False)
        ones = space.from_host(np.ones(level.interface.dofs.size))
        interiors.extend(ones, out, 1, 0, False)
    inside = np.setdiff1d(system.subdomains.dofs[13], level.interface.dofs)      # the cube in the middle
    assert abs(space.to_host(out)[inside] - 1).max() < 1e-12
    if device == "cpu":
        small = PoissonCube(3, 2).assemble()
        M = matrix_of(swell.BDDC(subdomains=small.subdomains, interior=interior).build(small.A))
        assert abs(M - M.T).max() < 1e-7 * abs(M).max() and np.linalg.eigvalsh(M)[0] > 0     # cycles are in single


def test_a_coarse_solver_that_is_not_its_own_adjoint():
    with pytest.raises(swell.InputError, match="its own adjoint"):
        swell.solve(gallery.poisson2d(30), np.ones(900), method="cg",
                    precond=swell.BDDC(domains=16, coarse=swell.Schwarz(domains=2, inner="ic0")))


def test_an_interior_solver_that_is_not_its_own_adjoint():
    system = PoissonCube(3, 2).assemble()
    with pytest.raises(swell.InputError, match="its own adjoint"):
        bddc = swell.BDDC(subdomains=system.subdomains, interior=swell.Schwarz(domains=2, inner="ic0"))
        swell.solve(system.A, np.ones(125), method="cg", precond=bddc)


def test_several_right_hand_sides():
    """CG applies M alone; GMRES adds M V y to x."""
    A = gallery.poisson2d(12)
    B = np.random.default_rng(5).standard_normal((144, 3))
    for method in ("cg", "gmres(restart=4)", "block_cg", "block_gmres(restart=4)"):
        with during(method=method):
            s = swell.prepare(A, method=method, precond="bddc(domains=4)")
            together, alone = s.solve(B, together=True), s.solve(B, together=False)
            assert together.converged and alone.converged
            assert np.linalg.norm(B - A @ together.x) <= 1e-8 * np.linalg.norm(B)


# -- dense solvers inside ------------------------------------------------------------------------------------------------

SOLVERS_INSIDE = [("getrf", "trsm"), ("getrf", "getrs"), ("gem", "ss"), ("pcm(x=8)", "is(x=8)"), ("icm(x=8)", "trsm")]


@pytest.mark.parametrize("dense_lu, solver", SOLVERS_INSIDE)
def test_any_dense_solver_in_place_of_inverses(dense_lu, solver):
    """M is the same to rounding, with the local and the coarse problems by factors."""
    system = PoissonCube(3, 2).assemble()
    inverses = matrix_of(swell.BDDC(subdomains=system.subdomains).build(system.A))
    made = swell.BDDC(subdomains=system.subdomains, dense_lu=dense_lu, dense_solver=solver).build(system.A)
    assert abs(matrix_of(made) - inverses).max() < 1e-10 * abs(inverses).max()
    assert not made.notes and not made.variable and type(resolve("dense_solver", solver)).__name__ in made.describe()


def test_dense_solvers_on_more_levels_in_single_precision_and_for_columns():
    for levels in (2, 3):
        counts = [solved(2, 8, levels, dense_solver=solver).result.iterations for solver in ("inverse", "trsm")]
        assert counts[0] == counts[1]
    system = PoissonCube(3, 3).assemble()
    A, B = system.A.to_scipy(), RNG.standard_normal((system.cube.n, 3))
    precond = swell.BDDC(subdomains=system.subdomains, dense_solver="trsm")
    together = swell.solve(A, B, method="cg", precond=precond)
    alone = swell.solve(A, B[:, 1], method="cg", precond=precond)
    assert together.converged and np.allclose(together.x[:, 1], alone.x, rtol=1e-7, atol=1e-9 * abs(alone.x).max())
    assert swell.solve(A.astype(np.float32), B[:, 0].astype(np.float32), method="cg", precond=precond, rtol=1e-4).converged


def test_asymmetric_solves_are_averaged_and_it_is_said():
    """With a loose tolerance L U is not symmetric; M must be, or CG fails."""
    system = PoissonCube(3, 3).assemble()
    made = swell.BDDC(subdomains=system.subdomains, dense_lu="icm(x=8, tolerance=1e-2)", dense_solver="trsm").build(system.A)
    M = matrix_of(made)
    assert abs(M - M.T).max() < 1e-12 * abs(M).max()
    assert any("asymmetry" in note and "the mean with the transposed solve" in note for note in made.notes)
    found = solved(4, 3, dense_lu="icm(x=8, tolerance=1e-2)", dense_solver="trsm")
    assert found.result.converged and found.extremes[0] > 0.5
    assert found.result.iterations <= solved(4, 3, dense_lu="icm(x=8, tolerance=1e-2)").result.iterations + 1


@pytest.mark.parametrize("settings", [{"dense_lu": "icm(x=16, tolerance=1)", "dense_solver": "trsm"},
                                      {"dense_lu": "pcm", "dense_solver": "is(x=8, tolerance=10)", "method": "fgmres"}])
def test_tolerances_that_are_too_loose_for_a_solver_are_tightened(settings):
    r = PoissonCube(4, 3, 2, "channels").solve(**settings)
    assert r.result.converged
    assert any("is too loose" in note and "was taken" in note for note in r.result.notes)


def test_an_inexact_iterative_solver_makes_the_preconditioner_variable():
    system = PoissonCube(3, 3).assemble()
    b = RNG.standard_normal(system.cube.n)
    precond = swell.BDDC(subdomains=system.subdomains, dense_lu="pcm", dense_solver="is(tolerance=1e-4)")
    assert precond.build(system.A).variable
    assert swell.solve(system.A.to_scipy(), b, method="fgmres", precond=precond).converged


def test_icm_goes_on_from_the_factors_of_the_last_values():
    system = PoissonCube(3, 3).assemble()
    A, subdomains = system.A.to_scipy(), system.subdomains
    for tolerance, least, most in ((1e-6, 0.0, 0.6), (0, 0.0, 1.0)):
        settings = swell.BDDC(domains=8, partition="rows", dense_lu=f"icm(x=8, tolerance={tolerance})", dense_solver="trsm")
        made = settings.build(CSRMatrix.from_scipy(A, make_space("cpu")))
        cold = made.iterations
        assert cold > 0
        near = A.copy()
        near.data = near.data * (1 + 1e-8)
        made.update(CSRMatrix.from_scipy(near, make_space("cpu")))
        assert least * cold < made.iterations < most * cold
        fresh = settings.build(CSRMatrix.from_scipy(near, make_space("cpu")))
        assert abs(matrix_of(made) - matrix_of(fresh)).max() < 1e-4 * abs(matrix_of(fresh)).max()
    assert swell.BDDC(subdomains=subdomains).build(system.A).iterations == 0


@pytest.mark.parametrize("wrong, words", [
    ({"dense_solver": "getrs", "dense_lu": "pcm"}, r"dense_solver=Getrs\(\)\): this solver takes factors with the unit "
     "diagonal in L, and the decomposer leaves it in U: take 'trsm' or 'is'"),
    ({"dense_solver": None}, "expected 'inverse', or a solver such as 'trsm'"),
    ({"dense_solver": "lu_solve"}, "unknown dense_solver 'lu_solve'"), ({"dense_solver": 3}, "dense_solver=3")])
def test_dense_solvers_that_do_not_fit(wrong, words):
    with pytest.raises(swell.InputError, match=words):
        swell.BDDC(**wrong)


@pytest.mark.gpu
@pytest.mark.parametrize("dense_lu, solver", [("getrf", "trsm"), ("getrf", "getrs"), ("icm(x=8, tolerance=1e-2)", "is(x=8)")])
def test_dense_solvers_inside_on_a_gpu(dense_lu, solver):
    space_or_skip("cuda")
    system = PoissonCube(2, 2).assemble()
    A, b = system.A.to_scipy(), RNG.standard_normal(system.cube.n)
    precond = swell.BDDC(subdomains=system.subdomains, dense_lu=dense_lu, dense_solver=solver)
    on_gpu, on_cpu = (swell.solve(A, b, method="cg", precond=precond, device=device) for device in ("cuda", "cpu"))
    assert on_gpu.converged and on_gpu.iterations == on_cpu.iterations
