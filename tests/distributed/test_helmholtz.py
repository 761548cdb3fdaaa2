"""Helmholtz across ranks: rows are those of one device, and so are the responses."""
from __future__ import annotations

import math

import numpy as np
import pytest

import swell

pytest.importorskip("skfem", reason="finite elements need scikit-fem: pip install 'swell[pde]'")
pytest.importorskip("pymetis", reason="cells are shared out by pymetis: pip install 'swell[partition]'")

from swell.pde import helmholtz
from swell.pde.helmholtz.across_ranks import Part, PartOfSystem

BAND = [90.0, 100.0, 110.0, 120.0]


def duct(degree=1, shape=(12, 5, 4), **boundary):
    mesh = helmholtz.box(shape, upper=(1.0, 0.4, 0.3))
    given = boundary or {"xmax": helmholtz.Absorbing(), "ymin": helmholtz.Impedance(800 + 200j)}
    return helmholtz.Helmholtz(mesh, helmholtz.Medium(damping=0.02), given, degree=degree)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("walls", [{}, {"xmin": helmholtz.Pressure(1.0), "xmax": helmholtz.Absorbing()}])
def test_rows_are_those_of_one_device(ranks, degree, walls):
    source = None if walls else "xmin"
    A, _, _ = duct(degree, **walls).system(100.0, source)
    x = np.random.default_rng(1).standard_normal((A.shape[0], 2)) @ [1, 1j]

    def product(communicator):
        problem = duct(degree, **walls)
        part = Part(communicator, problem)
        free = problem._free()
        (K, M, B), varying = problem._system(free, part)
        part.take_free(free)
        system = PartOfSystem(part, K, M, B, "cpu", "complex128", varying)
        system.form(2 * math.pi * 100.0)
        rows = system.A.global_rows()
        y = np.empty(system.A.own.shape[0], complex)
        system.A.apply(x[system.A.rows], y)
        return system.A.gather(y), system.A.rows, rows.nnz, abs(rows.data).max()

    parts = ranks.run(product)
    assert all(np.allclose(y, A @ x, rtol=1e-13, atol=1e-13 * abs(A @ x).max()) for y, *_ in parts)
    if len(parts) == ranks.size:                                 # ranks of one process
        assert sum(entries for *_, entries, _ in parts) == A.nnz
        assert max(most for *_, most in parts) == pytest.approx(abs(A.data).max(), rel=1e-13)
        assert sorted(np.concatenate([rows for _, rows, *_ in parts])) == list(range(A.shape[0]))


@pytest.mark.parametrize("settings", [{"method": "gmres", "precond": "ilu0"}, {"method": "cocg", "precond": "jacobi"},
                                      {"method": "bicgstab", "precond": "ilu0", "remember": 0},
                                      {"method": "cocg", "scaling": "jacobi", "reuse": False}, {},
                                      {"method": "gmres", "precond": swell.ShiftedLaplacian(inner="ilu0")}])
@pytest.mark.parametrize("walls", [{}, {"xmin": helmholtz.Pressure(1.0), "xmax": helmholtz.Absorbing()}])
def test_responses_are_those_of_one_device(ranks, settings, walls):
    source, ears = None if walls else "xmin", [(0.9, 0.2, 0.1), (0.3, 0.1, 0.2)]
    one_rank = duct(**walls).response(source, ears, BAND, rtol=1e-10, fields=[110.0])

    def response(communicator):
        return duct(**walls).response(source, ears, BAND, rtol=1e-10, fields=[110.0], ranks=communicator, **settings)

    for found in ranks.run(response):
        assert found.converged and len(found.points) == len(BAND)
        assert np.allclose(found.pressure, one_rank.pressure, rtol=1e-7)
        assert np.allclose(found.fields[110.0].p, one_rank.fields[110.0].p, rtol=1e-6,
                           atol=1e-7 * abs(one_rank.fields[110.0].p).max())


def test_tables_and_layers_are_those_of_one_device(ranks):
    """Walls and media by tables, and a perfectly matched layer, beside a wall of given pressure."""
    def problem():
        mesh = helmholtz.box((14, 5, 4), upper=(1.4, 0.4, 0.3))
        wall = helmholtz.Impedance(helmholtz.Table([50, 200], [800 + 200j, 500]))
        air = helmholtz.Medium(helmholtz.Table([50, 200], [340.0, 345.0]), damping=0.02)
        return helmholtz.Helmholtz(mesh, air, {"ymin": wall, "xmin": helmholtz.Pressure(1.0)},
                                   pml=helmholtz.PML((0.0, 0.0, 0.0), (1.0, 0.4, 0.3)))
    settings = {"method": "cocg", "precond": "jacobi", "rtol": 1e-10, "fields": [110.0]}
    one_rank = problem().response(None, [(0.9, 0.2, 0.1)], BAND, **settings)
    for found in ranks.run(lambda communicator: problem().response(None, [(0.9, 0.2, 0.1)], BAND, ranks=communicator,
                                                                   **settings)):
        assert found.converged and np.allclose(found.pressure, one_rank.pressure, rtol=1e-6)
        assert np.allclose(found.fields[110.0].p, one_rank.fields[110.0].p, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("walls", [{}, {"xmin": helmholtz.Pressure(1.0), "xmax": helmholtz.Absorbing()}])
def test_several_sources(ranks, walls):
    sources, ears = ["ymax", (0.5, 0.2, 0.1), "zmin"], [(0.9, 0.2, 0.1), (0.3, 0.1, 0.2)]
    settings = {"method": "cocg", "precond": "jacobi", "rtol": 1e-10, "fields": [110.0]}
    one_rank = duct(**walls).response(sources=sources, ear=ears, frequencies=BAND, **settings)

    def response(communicator):
        return duct(**walls).response(sources=sources, ear=ears, frequencies=BAND, ranks=communicator, **settings)

    for found in ranks.run(response):
        assert found.converged and found.pressure.shape == (4, 3, 2) and found.sources == one_rank.sources
        assert np.allclose(found.pressure, one_rank.pressure, rtol=1e-7)
        for mine, theirs in zip(found.fields[110.0], one_rank.fields[110.0], strict=True):
            assert np.allclose(mine.p, theirs.p, rtol=1e-6, atol=1e-7 * abs(theirs.p).max())


def test_waves_without_damping_are_for_cocg(ranks):
    """Across ranks: after cg, before what is made for any matrix. On one device few unknowns are factored."""
    def response(communicator):
        room = helmholtz.Helmholtz(helmholtz.box((12, 5, 4), upper=(1.0, 0.4, 0.3)))
        return room.response("xmin", (0.9, 0.2, 0.1), [300.0, 310.0], ranks=communicator)

    expected = "cocg" if ranks.size > 1 else "direct"
    for found in ranks.run(response):
        assert found.converged and [point.result.method for point in found.points] == [expected, expected]


def test_the_watch_of_one_rank_ends_the_sweep_of_all(ranks):
    def response(communicator):
        last = communicator.rank == communicator.size - 1
        return duct().response("xmin", (0.9, 0.2, 0.1), BAND, ranks=communicator,
                               watch=lambda point: last and point.frequency > 95)

    assert all(len(found.points) == 2 for found in ranks.run(response))


def test_meshes_that_differ(ranks):
    if ranks.size == 1:
        pytest.skip("one rank agrees with itself")
    with pytest.raises(swell.InputError, match="disagree on the mesh"):
        ranks.run(lambda c: duct(shape=(10, 4, 3 + c.rank)).response("xmin", (0.9, 0.2, 0.1), BAND, ranks=c))
