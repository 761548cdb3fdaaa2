"""Decomposed cases of OpenFOAM, of which each rank reads a part: the matrix and the solution of the whole mesh."""
from __future__ import annotations

import shutil

import numpy as np
import pytest
from tests.support.cases import rng
from tests.support.polymeshes import skewed

import swell
from swell import distributed
from swell.pde import fvm
from swell.pde.fvm.across_ranks import RankSystem


def scattered(mesh, ranks, kind):
    """The rank of every cell: slabs, blocks of a checkerboard, or wherever chance puts it."""
    x = mesh.centres
    return {"slabs": np.minimum((x[:, 0] * ranks).astype(int), ranks - 1),
            "checkerboard": (x * 3).astype(int).sum(axis=1) % ranks,
            "chance": rng().permutation(np.arange(mesh.n_cells) % ranks)}[kind]


def problem(mesh, **settings):
    sides = {name: fvm.Neumann(0.5) for name in ("ymin", "ymax", "zmin", "zmax")}
    conditions = {**sides, "xmin": fvm.Dirichlet(lambda x: x[:, 1]), "xmax": fvm.Robin(1.0, 2.0, 3.0)}
    settings = {"diffusivity": lambda x: 1 + x[:, 2], "source": lambda x: np.sin(x[:, 0]), **settings}
    return fvm.Poisson(mesh, conditions, **settings)


@pytest.mark.parametrize("gradient", ["least_squares", "gauss"])
@pytest.mark.parametrize("kind", ["slabs", "checkerboard", "chance"])
def test_rows_are_those_of_the_whole_mesh(ranks, tmp_path, kind, gradient):
    mesh = skewed()
    cells = fvm.decompose(mesh, scattered(mesh, ranks.size, kind), tmp_path)
    serial = problem(mesh, gradient=gradient).assemble()
    A, x = serial.A.to_scipy(), rng().standard_normal(mesh.n_cells)
    flux = serial.flux_at(x)
    explicit, fluxes = serial.rhs(flux), flux.of(serial.metrics, x)

    def parts(communicator):
        own = fvm.read_part(tmp_path, communicator)
        part = RankSystem(communicator, problem(own, gradient=gradient), "cpu", "float64")
        here = x[cells[communicator.rank]]
        y = np.empty(here.size)
        part.A.apply(here, y)
        flux = part.flux_at(here)
        return cells[communicator.rank], y, part.rhs(flux), part.on_mesh(here, flux, part.source)[1], own

    for of_rank, product, b, through, own in ranks.run(parts):
        assert np.allclose(product, (A @ x)[of_rank], rtol=1e-12, atol=1e-12)
        assert np.allclose(b, explicit[of_rank], rtol=1e-12, atol=1e-12)
        total = np.zeros(own.n_cells)                            # what leaves each cell, through all of its faces
        np.add.at(total, own.owner, through)
        np.subtract.at(total, own.neighbour, through[:own.n_internal])
        whole = np.zeros(mesh.n_cells)
        np.add.at(whole, mesh.owner, fluxes)
        np.subtract.at(whole, mesh.neighbour, fluxes[:mesh.n_internal])
        assert np.allclose(total, whole[of_rank], rtol=1e-10, atol=1e-12)


def test_a_rank_has_its_part_and_the_ghosts_alone(ranks, tmp_path):
    mesh = fvm.box((24, 4, 4))
    fvm.decompose(mesh, scattered(mesh, ranks.size, "slabs"), tmp_path)

    def sizes(communicator):
        own = fvm.read_part(tmp_path, communicator)
        coupled = own.coupled
        assert np.allclose(coupled.centres, own.with_ghosts(own.centres))
        return communicator.rank, own.n_cells, coupled.n_cells, coupled.owner.size, mesh.centres, coupled.centres

    for rank, own, around, faces, centres, here in ranks.run(sizes):
        neighbours = (rank > 0) + (rank < ranks.size - 1)
        assert own == 16 * 24 // ranks.size and around == own + 16 * neighbours
        assert faces == 16 * (own // 16 + 1) + 40 * (own // 16)             # across x, and across y and z
        assert set(map(tuple, here.round(9))) <= set(map(tuple, centres.round(9)))


def test_the_solution_is_that_of_the_whole_mesh(ranks, tmp_path):
    meshio = pytest.importorskip("meshio", reason="reads what is written: pip install meshio")
    mesh = skewed()
    cells = fvm.decompose(mesh, scattered(mesh, ranks.size, "checkerboard"), tmp_path)
    values = 1 + rng().random(mesh.n_cells)
    serial = problem(mesh, diffusivity=values).solve(rtol=1e-9)

    def solved(communicator):
        own = fvm.read_mesh(tmp_path, communicator) if communicator.size > 1 else fvm.read_part(tmp_path, communicator)
        facts, found = own.facts(), problem(own, diffusivity=values[cells[communicator.rank]]).solve(rtol=1e-9)
        found.write(tmp_path / "p.pvtu")
        written = meshio.read(tmp_path / f"p_{communicator.rank}.vtu").cell_data["p"][0]
        assert np.array_equal(written, found.p)
        if communicator.rank == 0:
            assert (tmp_path / "p.pvtu").read_text().count("<Piece Source=") == communicator.size
        return cells[communicator.rank], facts, found

    for of_rank, facts, found in ranks.run(solved):
        assert found.converged and found.corrections == serial.corrections and found.cells == mesh.n_cells
        assert np.linalg.norm(found.p - serial.p[of_rank]) <= 1e-7 * np.linalg.norm(serial.p)
        assert np.allclose(found.sources, serial.sources[of_rank])
        ours, theirs = found.conservation(), serial.conservation()
        assert ours["patches"] == pytest.approx(theirs["patches"], rel=1e-6, abs=1e-9)
        assert ours["source"] == pytest.approx(theirs["source"]) and ours["relative"] < 1e-8
        assert found.span() == pytest.approx(serial.span(), rel=1e-6)
        assert str(found).splitlines()[0].startswith(f"converged: {mesh.n_cells} cells")
        for name, value in mesh.facts().items():
            if name not in ("points", "patches", "cell_volume", "non_orthogonality", "aspect_ratio"):
                assert facts[name] == pytest.approx(value), name
        for ours, theirs in zip(facts["patches"], mesh.facts()["patches"], strict=True):
            assert ours == pytest.approx(theirs)
        assert facts["non_orthogonality"]["max"] <= mesh.facts()["non_orthogonality"]["max"] + 1e-9


def test_a_floating_pressure(ranks, tmp_path):
    mesh = skewed()
    cells = fvm.decompose(mesh, scattered(mesh, ranks.size, "slabs"), tmp_path)
    walls = {name: fvm.Neumann(0.0) for name in ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax")}

    def solved(communicator, **settings):
        own = fvm.read_part(tmp_path, communicator)
        return cells[communicator.rank], fvm.Poisson(own, walls, source=lambda x: x[:, 0]).solve(**settings)

    with pytest.raises(swell.InputError, match="no patch fixes a value"):
        ranks.run(solved)
    serial = fvm.Poisson(mesh, walls, source=lambda x: x[:, 0]).solve(balance=True, mean=2.0)
    for of_rank, found in ranks.run(lambda c: solved(c, balance=True, mean=2.0)):
        assert np.linalg.norm(found.p - serial.p[of_rank]) <= 1e-6 * np.linalg.norm(serial.p)


def two_boxes():
    """A box, and two of them as one mesh, with the patches "first" and "second"."""
    one = fvm.box((4, 4, 4))
    n, f = one.n_points, one.n_internal
    faces = np.split(one.face_points, one.face_ptr[1:-1])
    both = [*faces[:f], *(face + n for face in faces[:f]), *faces[f:], *(face + n for face in faces[f:])]
    half, owners = one.n_faces - f, (one.owner, one.owner + one.n_cells)
    owner = np.concatenate([owner[:f] for owner in owners] + [owner[f:] for owner in owners])
    return one, fvm.Mesh.from_faces(np.concatenate([one.points, one.points + 3]), np.cumsum([0, *map(len, both)]),
                                    np.concatenate(both), owner,
                                    np.concatenate([one.neighbour, one.neighbour + one.n_cells]),
                                    [fvm.Patch("first", 2 * f, half), fvm.Patch("second", 2 * f + half, half)])


def test_parts_that_share_no_face(ranks, tmp_path):
    """Two boxes, of which one has no patch that fixes a value; each lies on every rank."""
    pytest.importorskip("pymetis", reason="the partition of a mesh needs pymetis")
    one, mesh = two_boxes()
    of_cell = np.concatenate([scattered(one, ranks.size, "slabs")] * 2)
    fvm.decompose(mesh, of_cell, tmp_path)

    def solved(communicator, **conditions):
        return fvm.Poisson(fvm.read_part(tmp_path, communicator), conditions, source=1.0).solve()

    with pytest.raises(swell.InputError, match="2 parts that share no face, and in 1 of them no patch fixes"):
        ranks.run(lambda c: solved(c, first=fvm.Dirichlet(0.0), second=fvm.Neumann(0.0)))
    assert all(found.converged for found in ranks.run(
        lambda c: solved(c, first=fvm.Dirichlet(0.0), second=fvm.Dirichlet(0.0))))
    with pytest.raises(swell.InputError, match="2 parts that share no face, and no patch fixes a value in the part of"):
        ranks.run(lambda c: fvm.Poisson(mesh, {"first": fvm.Dirichlet(0.0), "second": fvm.Neumann(0.0)}).solve(ranks=c))


def test_a_case_with_the_whole_mesh_too(ranks, tmp_path):
    """Parts are read where there are as many as ranks; else the mesh, whole."""
    mesh = skewed((4, 4, 4))
    fvm.write_polymesh(mesh, tmp_path)
    fvm.decompose(mesh, scattered(mesh, 2, "slabs"), tmp_path)
    for found in ranks.run(lambda communicator: fvm.read_mesh(tmp_path, communicator)):
        assert isinstance(found, fvm.PartMesh) == (ranks.size == 2)
        assert found.n_cells == (32 if ranks.size == 2 else 64)
    found = fvm.read_mesh(tmp_path)
    assert found.n_cells == 64 and not isinstance(found, fvm.PartMesh)


def faces_of(facts):
    return {patch["name"]: patch["faces"] for patch in facts["patches"]}


def test_cyclic_patches(ranks, tmp_path):
    """Parts that meet through cyclic patches, also with themselves and more than once: values and fluxes of the whole,
    for conditions with one value a face."""
    mesh = fvm.box((6, 5, 4), perturb=0.2, periodic="xz")
    part = scattered(mesh, ranks.size, "chance")
    cells = fvm.decompose(mesh, part, tmp_path)

    def given(mesh, wall, k):
        return fvm.Poisson(mesh, {"ymin": fvm.Dirichlet(wall), "ymax": fvm.Dirichlet(1.0)}, k,
                           lambda x: np.sin(2 * np.pi * x[:, 0]))

    wall, k = rng().random(mesh.patch("ymin").size), 1 + rng().random(mesh.n_cells)
    serial, facts = given(mesh, wall, k).solve(rtol=1e-9), mesh.facts()
    of_face = part[mesh.owner[mesh.patch("ymin").faces]]

    def solved(communicator):
        own, rank = fvm.read_part(tmp_path, communicator), communicator.rank
        assert faces_of(own.facts()) == faces_of(facts)
        return cells[rank], given(own, wall[of_face == rank], k[cells[rank]]).solve(rtol=1e-9), own

    for of_rank, found, own in ranks.run(solved):
        assert found.converged and found.corrections == serial.corrections
        assert np.linalg.norm(found.p - serial.p[of_rank]) <= 1e-7 * np.linalg.norm(serial.p)
        out = np.bincount(own.owner, found.fluxes, own.n_cells)
        out -= np.bincount(own.neighbour, found.fluxes[:own.n_internal], own.n_cells)
        assert np.allclose(out, found.sources, atol=1e-7)
    wrong = tmp_path / "processor0" / "constant" / "polyMesh" / "boundary"
    if ranks.size > 1:
        wrong.write_text(wrong.read_text().replace("referPatch xmin", "referPatch zmax"))
        with pytest.raises(swell.InputError, match="decompose the case again|more than once"):
            ranks.run(lambda communicator: fvm.read_part(tmp_path, communicator))


def test_what_parts_do_not_take(ranks, tmp_path):
    mesh = skewed((4, 4, 4))
    fvm.decompose(mesh, scattered(mesh, ranks.size, "slabs"), tmp_path)
    sides = {name: fvm.Neumann(0.0) for name in ("ymin", "ymax", "zmin", "zmax", "xmax")}

    def solved(communicator, value=0.0, call="solve", **settings):
        own = fvm.read_part(tmp_path, communicator)
        given = fvm.ScalarTransport(own, {**sides, "xmin": fvm.Dirichlet(value(own) if callable(value) else value)},
                                    **settings)
        return given.solve() if call == "solve" else given.advance(0.0, 0.1, 1)

    with pytest.raises(swell.InputError, match="one value a cell"):
        ranks.run(lambda c: solved(c, diffusivity=np.ones(7)))
    with pytest.raises(swell.InputError, match="this mesh is a rank's part"):
        ranks.run(lambda c: solved(c, call="advance"))
    with pytest.raises(swell.InputError, match=f"decomposed into {ranks.size} parts, and there are {ranks.size + 1}"):
        distributed.run(ranks.size + 1, lambda c: fvm.read_part(tmp_path, c))


def test_parts_that_do_not_meet(tmp_path):
    mesh = fvm.box((4, 4, 4))
    fvm.decompose(mesh, scattered(mesh, 2, "slabs"), tmp_path)
    (tmp_path / "processor1_old").mkdir()                        # none of the parts
    path = tmp_path / "processor1" / "constant" / "polyMesh" / "points"
    whole, (before, after) = path.read_bytes(), np.array([[0.5, 0.5, 0.5], [0.5, 0.45, 0.5]])
    path.write_bytes(whole.replace(before.tobytes(), after.tobytes()))
    with pytest.raises(swell.InputError, match="is not where part . has it"):
        distributed.run(2, lambda c: fvm.read_part(tmp_path, c))
    path.write_bytes(whole)
    path = path.with_name("boundary")
    right = path.read_text()
    for rank in (1, 7):
        path.write_text(right.replace("neighbProcNo 0;", f"neighbProcNo {rank};"))
        with pytest.raises(swell.InputError, match=f"leads to part {rank}: expected one of the other 1"):
            distributed.run(2, lambda c: fvm.read_part(tmp_path, c))
    path.write_text(right)
    path.write_text(path.read_text().replace("neighbProcNo 0;", ""))
    with pytest.raises(swell.InputError, match="neighbProcNo = nothing"):
        distributed.run(2, lambda c: fvm.read_part(tmp_path, c))


@pytest.fixture
def halves(tmp_path):
    """A case of two parts."""
    mesh = fvm.box((4, 4, 4))
    fvm.decompose(mesh, scattered(mesh, 2, "slabs"), tmp_path)
    return tmp_path


def change(case, rank, old, new):
    path = case / f"processor{rank}" / "constant" / "polyMesh" / "boundary"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize("rank, old, new, words", [
    (1, "    ymin\n", "    floor\n", "the ranks disagree on the patches other than processor patches.*'ymin'.*'floor'"),
    (1, "nFaces 16;", "nFaces sixteen;", "has nFaces = sixteen, expected a number")])
def test_parts_of_different_cases(halves, rank, old, new, words):
    change(halves, rank, old, new)
    with pytest.raises(swell.InputError, match=words):
        distributed.run(2, lambda c: fvm.read_part(halves, c))


def test_a_part_of_another_decomposition(halves):
    fvm.decompose(other := fvm.box((4, 4, 5)), scattered(other, 2, "slabs"), halves / "other")
    shutil.rmtree(halves / "processor1")
    (halves / "other" / "processor1").rename(halves / "processor1")
    with pytest.raises(swell.InputError, match="patch 'procBoundary0to1' has 16 faces, and part 1 has 20 there"):
        distributed.run(2, lambda c: fvm.read_part(halves, c))


def test_a_part_that_meets_another_one_twice(halves):
    """As older versions of decomposePar could write it."""
    path = halves / "processor0" / "constant" / "polyMesh" / "boundary"
    before, _, last = path.read_text().partition("    procBoundary0to1\n")
    start = int(last.partition("startFace ")[2].partition(";")[0])
    half = last.partition("}")[0].replace("nFaces 16;", "nFaces 8;") + "}\n"
    second = half.replace(f"startFace {start};", f"startFace {start + 8};")
    path.write_text(f"{before.replace('7' + chr(10) + '(', '8' + chr(10) + '(')}    procBoundary0to1\n{half}"
                    f"    again\n{second}{last.partition('}')[2]}")
    with pytest.raises(swell.InputError, match="meets another part more than once, which is not supported"):
        distributed.run(2, lambda c: fvm.read_part(halves, c))


def test_parts_that_are_not_numbered_from_zero(halves):
    (halves / "processor1").rename(halves / "processor2")
    with pytest.raises(swell.InputError, match="processor1 is no folder; name an OpenFOAM case"):
        distributed.run(2, lambda c: fvm.read_mesh(halves, c))


def test_one_rank_for_two_parts(halves):
    with pytest.raises(swell.InputError, match="start as many ranks as it has parts, or put the mesh together first"):
        fvm.read_mesh(halves)
    with pytest.raises(swell.InputError, match="decomposed into 2 parts, and there are 3 ranks: start mpiexec -n 2"):
        distributed.run(3, lambda c: fvm.read_mesh(halves, c))


def test_a_case_that_ranks_see_differently(tmp_path):
    """Two machines, of which one has the parts, and the other the whole mesh too."""
    mesh = fvm.box((4, 4, 4))
    for folder in ("parts", "both"):
        fvm.decompose(mesh, scattered(mesh, 2, "slabs"), tmp_path / folder)
    fvm.write_polymesh(mesh, tmp_path / "both")
    with pytest.raises(swell.InputError, match=r"disagree on whether the mesh is there, and in how many parts: "
                                               r"\(False, 2\) on rank 0, \(True, 2\) on rank 1"):
        distributed.run(2, lambda c: fvm.read_mesh(tmp_path / ("both" if c.rank else "parts"), c))


def test_parts_without_fields(halves):
    """decomposePar -constant divides the mesh alone."""
    for name in ("U", "p"):
        (halves / "0").mkdir(exist_ok=True)
        (halves / "0" / name).write_text("")
    with pytest.raises(swell.InputError, match=r"processor0 has no folder of a time.*decompose the fields, too"):
        distributed.run(2, lambda c: fvm.read_case(halves, ranks=c))


def test_parts_are_written_as_pvtu(halves):
    def written(communicator):
        sides = {"xmin": fvm.Dirichlet(0.0), "*": fvm.Neumann(1.0)}
        fvm.Poisson(fvm.read_part(halves, communicator), sides).solve().write(halves / "p.vtu")

    with pytest.raises(swell.InputError, match="the extension is .vtu, expected .pvtu, for each rank writes a file"):
        distributed.run(2, written)
    assert not list(halves.glob("*.vtu"))
