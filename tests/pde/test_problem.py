"""The front door: conditions, singular problems, conservation, settings, errors."""
from __future__ import annotations

import dataclasses
import signal

import numpy as np
import pytest
from tests.support.fields import metrics_of, mixed, on_all_patches, wave, wave_laplacian

import swell
from swell.core.errors import InputError
from swell.pde import fvm
from swell.pde.fvm.boundary import lines


def cosine(x):
    return np.cos(np.pi * x[:, 0])


def test_conservation(device):
    """Each cell to the tolerance, all together to rounding beside it, whatever the conditions are."""
    mesh = fvm.box((10, 9, 8), perturb=0.25)
    problem = fvm.Poisson(mesh, mixed(mesh), lambda x: 1 + x[:, 0], lambda x: -wave_laplacian(x))
    solution = problem.solve(rtol=1e-12, device=device)
    assert solution.converged
    balance = solution.conservation()
    assert balance["relative"] < 1e-12 and set(balance["patches"]) == {p.name for p in mesh.patches}
    metrics = metrics_of(mesh)
    lost = metrics.divergence(solution.fluxes)
    assert np.linalg.norm(solution.sources - lost) <= 1.01e-12 * np.linalg.norm(solution.sources) * 10
    rounding = 1e-13 * np.abs(solution.fluxes).sum()
    assert balance["imbalance"] == pytest.approx((solution.sources - lost).sum(), abs=rounding)


def test_all_neumann(device):
    """Known up to a constant, which is the mean asked for; checked by its null space, with no luck involved."""
    mesh = fvm.box((16, 12, 8))
    walls = on_all_patches(mesh, fvm.Neumann(0.0))
    for mean in (0.0, 3.5):
        solution = fvm.Poisson(mesh, walls, source=cosine).solve(mean=mean, device=device)
        assert solution.converged
        assert (solution.p * mesh.volumes).sum() / mesh.volumes.sum() == pytest.approx(mean, abs=1e-12)
        assert abs(solution.p - mean - cosine(mesh.centres) / np.pi**2).max() < 1e-3


def test_all_neumann_incompatible():
    mesh = fvm.box((6, 6, 6))
    walls = {**on_all_patches(mesh, fvm.Neumann(0.0)), "xmax": fvm.Neumann(-0.25)}
    problem = fvm.Poisson(mesh, walls, source=1.0)
    with pytest.raises(InputError, match=r"differ by 0.75: subtract 0.75 from the source"):
        problem.solve()
    solution = problem.solve(balance=True)
    assert solution.converged and "0.75 was subtracted" in solution.notes[0]
    assert solution.conservation()["source"] == pytest.approx(0.25)
    assert fvm.Poisson(mesh, walls, source=0.25).solve().converged


def test_all_neumann_on_a_perturbed_mesh_keeps_its_balance():
    """The correction is the same number for both cells, so that a compatible system stays so."""
    mesh = fvm.box((8, 8, 8), perturb=0.25)
    solution = fvm.Poisson(mesh, on_all_patches(mesh, fvm.Neumann(0.0)), source=cosine).solve(balance=True)
    assert solution.converged and solution.corrections > 1


@pytest.mark.parametrize("settings", [dict(precond="jacobi", scaling=None), dict(ordering="rcm"), dict(format="csr"),
                                      dict(method="direct"), dict(method="gmres(restart=60)")], ids=str)
def test_swells_settings_reach_the_solver(settings):
    mesh = fvm.box((9, 8))
    problem = fvm.Poisson(mesh, on_all_patches(mesh, fvm.Dirichlet(wave)), source=lambda x: -wave_laplacian(x))
    solution = problem.solve(**settings)
    assert solution.converged and np.allclose(solution.p, problem.solve().p, rtol=1e-5, atol=1e-6)
    for name in ("ordering", "format"):
        if name in settings:
            assert getattr(solution.result, name) == settings[name]


def test_single_precision():
    mesh = fvm.box((12, 12), perturb=0.2)
    problem = fvm.Poisson(mesh, on_all_patches(mesh, fvm.Dirichlet(wave)), source=lambda x: -wave_laplacian(x))
    single = problem.solve(dtype="float32", rtol=1e-4)
    assert single.converged and single.p.dtype == np.float32 and single.result.dtype == "float32"
    assert np.allclose(single.p, problem.solve().p, atol=1e-3)


def test_one_and_two_dimensions_need_no_condition_on_empty_patches():
    for cells in ((20,), (20, 3)):
        mesh = fvm.box(cells)
        walls = {**on_all_patches(mesh, fvm.Neumann()), "xmin": fvm.Dirichlet(1.0), "xmax": fvm.Dirichlet(3.0)}
        solution = fvm.Poisson(mesh, walls).solve(rtol=1e-12)
        assert np.allclose(solution.p, 1 + 2 * mesh.centres[:, 0])
        assert solution.conservation()["patches"]["xmax"] == pytest.approx(-2.0)


def test_robin_is_dirichlet_and_neumann_at_its_ends():
    mesh = fvm.box((10,))
    for robin, plain in ((fvm.Robin(1.0, 0.0, 4.0), fvm.Dirichlet(4.0)), (fvm.Robin(0.0, 2.0, 3.0), fvm.Neumann(1.5))):
        runs = [fvm.Poisson(mesh, {"xmin": fvm.Dirichlet(1.0), "xmax": c}, source=1.0).solve().p
                for c in (robin, plain)]
        assert np.allclose(*runs)


def test_a_robin_patch_alone_fixes_the_level():
    """p'' = −1 with p + ∂p/∂n = 0 at x = 1 and ∂p/∂n = 0 at 0: p = 3/2 − x²/2."""
    mesh = fvm.box((200,))
    solution = fvm.Poisson(mesh, {"xmin": fvm.Neumann(), "xmax": fvm.Robin(1.0, 1.0)}, source=1.0).solve()
    assert abs(solution.p - (1.5 - mesh.centres[:, 0] ** 2 / 2)).max() < 1e-4


def test_values_by_face_by_function_and_by_vector():
    mesh = fvm.box((3, 4, 5))
    patch = mesh.patch("ymax")
    centres = mesh.face_centres[patch.faces]
    rest = {n: fvm.Neumann() for n in ("xmin", "xmax", "ymin", "zmin", "zmax")}
    by_array = lines(mesh, {**rest, "ymax": fvm.Dirichlet(wave(centres))})
    by_function = lines(mesh, {**rest, "ymax": fvm.Dirichlet(wave)})
    assert all(np.array_equal(x, y) for x, y in zip(by_array, by_function))
    first = mesh.neighbour.size
    assert np.array_equal(by_array[2][patch.start - first:patch.start - first + patch.size], wave(centres))
    c = lines(mesh, {**rest, "ymax": fvm.Dirichlet((1, 2, 3))}, components=3)[2]
    assert np.array_equal(c[patch.start - first], [1, 2, 3]) and c.shape == (mesh.n_faces - first, 3)


def test_a_pattern_stands_for_the_patches_without_a_name():
    mesh = fvm.box((4, 4))                      # its front and back are of kind "empty" and take no condition
    inside, fixed, free = fvm.Dirichlet(1.0), fvm.Dirichlet(0.0), fvm.Neumann()
    problem = fvm.Poisson(mesh, {"*": free, "x*": fixed, "xmin": inside})
    assert problem.conditions == {"xmin": inside, "xmax": free, "ymin": free, "ymax": free}
    problem = fvm.Poisson(mesh, {"x*": fixed, "*": free, "xmin": inside})
    assert problem.conditions == {"xmin": inside, "xmax": fixed, "ymin": free, "ymax": free}
    walls, lid = fvm.Dirichlet((0.0, 0.0, 0.0)), fvm.Dirichlet((1.0, 0.0, 0.0))
    flow = fvm.Flow(mesh, {"*": walls, "ymax": lid}, 0.1)
    assert flow.velocity == {"xmin": walls, "xmax": walls, "ymin": walls, "ymax": lid}


def test_bad_conditions():
    mesh = fvm.box((4, 4))
    walls = on_all_patches(mesh, fvm.Dirichlet(0.0))
    for conditions, message in [
            ({"xmin": fvm.Dirichlet(0.0)}, "no condition for patches xmax, ymin, ymax"),
            ({n: c for n, c in walls.items() if n != "ymax"}, "no condition for patch ymax"),
            ({**walls, "xmim": fvm.Dirichlet(0.0)}, "no patch 'xmim': did you mean 'xmin'"),
            ({**walls, "wall*": fvm.Neumann()}, r"no patch 'wall\*': The mesh has: xmin, "),
            ({**walls, "zmin": fvm.Dirichlet(0.0)}, "'zmin' is of kind 'empty'"),
            ({**walls, "xmin": 3.0}, "condition of patch 'xmin' is 3.0"),
            ({**walls, "xmin": fvm.Dirichlet(np.ones(3))}, r"patch 'xmin': .* shape \(3,\).*4 faces"),
            ({**walls, "xmin": fvm.Dirichlet(float("nan"))}, "patch 'xmin': .* contains NaN or Inf"),
            ({**walls, "xmin": fvm.Dirichlet(1j * np.ones(4))}, "patch 'xmin': .*expected numbers"),
            ({**walls, "xmin": fvm.Robin(1.0, -1.0)}, "opposite sign")]:
        with pytest.raises(InputError, match=message):
            fvm.Poisson(mesh, conditions)
    for arguments, message in [
            (dict(source=np.ones(3)), r"source has shape \(3,\)"), (dict(corrections=-1), "corrections=-1"),
            (dict(source=float("inf")), "source contains NaN or Inf"), (dict(diffusivity=0.0), "diffusivity"),
            (dict(source="much"), "source is 'much': expected numbers"),
            (dict(source=1j * np.ones(16)), "source has dtype complex128: expected real numbers"),
            (dict(diffusivity=np.full(16, None)), "diffusivity has dtype object: expected real numbers")]:
        with pytest.raises(InputError, match=message):
            fvm.Poisson(mesh, walls, **arguments).solve()
    for arguments, message in [
            (dict(dtype="complex128"), "dtype='complex128': expected one of float32, float64"),
            (dict(dtype="float63"), "dtype='float63'"), (dict(mean=float("nan")), "mean=nan: expected a finite")]:
        with pytest.raises(InputError, match=message):
            fvm.Poisson(mesh, walls).solve(**arguments)
    for given, message in [((None, walls), "mesh is of type NoneType"), (("case", walls), "mesh is of type str: .*read_mesh"),
                           ((mesh, None), "conditions are of type NoneType: expected a dictionary"),
                           ((mesh, {**walls, "xmin": fvm.Dirichlet("hot")}), "patch 'xmin': .*'hot', expected numbers")]:
        with pytest.raises(InputError, match=message):
            fvm.Poisson(*given)


def test_bad_transport():
    mesh = fvm.box((4, 4))
    walls = on_all_patches(mesh, fvm.Dirichlet(0.0))
    for velocity in [(float("nan"), 0.0, 0.0), (0.0, float("inf"), 0.0)]:
        with pytest.raises(InputError, match="velocity contains NaN or Inf"):
            fvm.ScalarTransport(mesh, walls, velocity=velocity).solve()
    with pytest.raises(InputError, match="velocity is 'fast': expected numbers"):
        fvm.ScalarTransport(mesh, walls, velocity="fast").solve()
    with pytest.raises(InputError, match="dt='a': expected a positive time step"):
        fvm.ScalarTransport(mesh, walls).advance(0.0, "a", 2)
    assert fvm.ScalarTransport(mesh, walls).advance(1.0, 0.1, np.int64(2)).converged


def test_the_source_that_an_error_names_is_accepted():
    mesh = fvm.box((6, 6), upper=(3.7, 1.3, 1.0))
    conditions = {**on_all_patches(mesh, fvm.Neumann()), "xmin": fvm.Neumann(1.0)}
    with pytest.raises(InputError) as caught:
        fvm.Poisson(mesh, conditions).solve()
    named = float(str(caught.value).split("subtract ")[1].split(" ")[0])
    assert fvm.Poisson(mesh, conditions, source=-named).solve().converged


def test_centres_on_the_wrong_side_are_named():
    """Two cells whose centres have changed places, as in a mesh that folds back over itself."""
    mesh = fvm.box((2, 1, 1), upper=(2.0, 1.0, 1.0))
    folded = dataclasses.replace(mesh)
    folded.__dict__["geometry"] = dataclasses.replace(mesh.geometry, centres=mesh.centres[::-1].copy())
    with pytest.raises(InputError, match=r"face 0 of cells 0 and 1 at \(1, 0.5, 0.5\)"):
        metrics_of(folded)


def skewed():
    """A Poisson problem that needs corrections."""
    mesh = fvm.box((12, 12), skew=(0.5, 0.0))
    return fvm.Poisson(mesh, on_all_patches(mesh, fvm.Dirichlet(0.0)), source=1.0)


def test_a_monitor_sees_every_linear_solve():
    seen = []
    solution = skewed().solve(monitor=lambda k, norm: seen.append((k, norm)))
    assert solution.converged and len(solution.results) > 1
    assert [k for k, _ in seen].count(0) == len(solution.results)


def test_ctrl_c_between_corrections_keeps_the_iterate(monkeypatch):
    from swell.solving.run import Prepared
    run = Prepared.run

    def then_interrupt(*arguments, **named):
        result = run(*arguments, **named)
        signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr(Prepared, "run", then_interrupt)
    solution = skewed().solve()
    assert solution.interrupted and not solution.converged and len(solution.results) == 1
    assert solution.result.converged and np.isfinite(solution.p).all()


def test_what_is_printed():
    mesh = fvm.box((6, 6))
    text = str(fvm.Poisson(mesh, on_all_patches(mesh, fvm.Dirichlet(0.0)), source=1.0).solve())
    assert text.startswith("converged: 36 cells") and "xmin: " in text and "imbalance" in text and "zmin" not in text


@pytest.mark.data
@pytest.mark.slow
def test_the_ventilated_room(data):
    """153 029 polyhedra, pressure given at one patch: foam_acroom_p."""
    mesh = fvm.read_polymesh(data / "openfoam" / "ac_room")
    outlets = {"outlet1": fvm.Dirichlet(0.0), "outlet2": fvm.Dirichlet(0.0)}
    problem = fvm.Poisson(mesh, {**on_all_patches(mesh, fvm.Neumann()), **outlets}, source=1.0, corrections=0)
    A = problem.assemble().A.to_scipy()
    assert (A != A.T).nnz == 0
    solution = problem.solve(rtol=1e-6)
    assert solution.converged and solution.conservation()["relative"] < 1e-4
    assert isinstance(solution.result, swell.Result)


def graded(top=0.0, bottom=1.0):
    """Cells of 2e-6 to 0.2 between two plates: what Dirichlet values bring into b is 1e6 times what flows."""
    mesh = fvm.box((4, 48), grading=(1.0, 1e5))
    return mesh, fvm.Poisson(mesh, {"xmin": fvm.Neumann(), "xmax": fvm.Neumann(), "ymin": fvm.Dirichlet(bottom),
                                    "ymax": fvm.Dirichlet(top)})


@pytest.mark.parametrize("rtol", [1e-2, 1e-4, 1e-8])
def test_converged_is_said_of_what_flows(rtol, device):
    """‖b‖ is that of Dirichlet faces of tiny cells, beside which a residual may be small and the field meaningless."""
    mesh, problem = graded()
    solution = problem.solve(rtol=rtol, device=device)
    assert solution.converged and solution.residual <= rtol and solution.imbalance <= rtol
    assert abs(solution.p - (1 - mesh.centres[:, 1])).max() <= rtol
    patches = solution.conservation()["patches"]
    assert patches["ymin"] == pytest.approx(-1, abs=2 * rtol) and patches["ymax"] == pytest.approx(1, abs=2 * rtol)


def test_an_imbalance_that_does_not_go_is_not_converged():
    """Rounding in single precision: half of what flows."""
    solution = graded()[1].solve(rtol=1e-4, dtype="float32")
    assert solution.residual < 1e-4 < solution.imbalance and not solution.converged
    text = str(solution)
    assert text.startswith("NOT converged") and f"{solution.imbalance:.1e}" in text and "float64" in text


def test_where_nothing_flows():
    """A constant field has no flux to compare with, whatever the mesh is."""
    for dtype, rtol in (("float64", 1e-8), ("float64", 1e-12), ("float32", 1e-4)):
        solution = graded(1.0, 1.0)[1].solve(rtol=rtol, dtype=dtype)
        assert solution.converged and abs(solution.p - 1).max() < 10 * rtol
    assert graded(0.0, 0.0)[1].solve().converged


def test_time_steps_are_judged_by_what_is_stored_too():
    mesh, problem = graded(0.0, 0.0)
    heat = fvm.ScalarTransport(mesh, problem.conditions)
    solution = heat.advance(1.0, 1e-3, 3, rtol=1e-6)
    assert solution.converged and solution.imbalance <= 1e-6 and 0 < solution.p.max() <= 1.0 + 1e-6


def test_multigrid_takes_the_matrix_as_it_is():
    """A scaling by the diagonal would hide the row sums that multigrid reads; named, it is applied."""
    mesh = fvm.box((16, 16, 16))
    k = 10 ** np.random.default_rng(0).uniform(-3, 3, mesh.n_cells)
    problem = fvm.Poisson(mesh, on_all_patches(mesh, fvm.Dirichlet(0.0)), k, source=1.0)
    runs = {(precond, scaling): problem.solve(precond=precond, **({} if scaling is None else {"scaling": scaling}))
            for precond, scaling in (("amg", None), ("amg", "jacobi"), (None, None), ("none", None))}
    found = {key: (run.result.scaling, run.result.iterations) for key, run in runs.items()}
    assert all(run.converged for run in runs.values())
    assert found["amg", None][0] == "none" and found["amg", "jacobi"][0] == found[None, None][0] == "jacobi"
    assert found["none", None] == found[None, None]
    assert found["amg", None][1] < 20 and 2 * found["amg", None][1] < found["amg", "jacobi"][1]
