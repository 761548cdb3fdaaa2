"""Modes of cavities against closed forms, and the response by modes against the direct one."""
import json

import numpy as np
import pytest

pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[pde]'")

from swell.cli import main                                       # noqa: E402
from swell.core.errors import InputError, SwellError             # noqa: E402
from swell.pde import helmholtz as h                             # noqa: E402

SIZE = np.array([2.0, 1.3, 0.9])
AIR = h.Medium(speed=340.0, density=1.2)


def exact(count, near=0.0, ends=0.0):
    """Frequencies of the room's modes nearest to ``near``, ascending; ``ends`` 0.5: the ends in x hold p = 0 and are
    rigid."""
    steps = np.stack(np.meshgrid(*[np.arange(12)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) + [ends, 0, 0]
    found = 170.0 * np.linalg.norm(steps / SIZE, axis=1)
    return np.sort(found[np.argsort(abs(found ** 2 - near ** 2), kind="stable")[:count]])


@pytest.fixture(scope="module")
def room():
    return h.Helmholtz(h.box((10, 7, 5), upper=SIZE), AIR, degree=2)


def residuals(modes, matrices):
    """‖K φ − λ M φ‖ / ‖M φ‖ over the largest λ, recomputed."""
    K, M, _ = matrices
    found = (2 * np.pi * modes.frequencies) ** 2
    wrong = K @ modes.shapes - (M @ modes.shapes) * found
    return np.linalg.norm(wrong, axis=0) / np.linalg.norm(M @ modes.shapes, axis=0) / found.max()


@pytest.mark.parametrize("near", [0.0, 210.0])
@pytest.mark.parametrize("settings", [{}, {"method": "minres", "precond": "jacobi"}], ids=["chosen", "minres"])
def test_modes_of_a_room(device, near, settings, room):
    modes = room.modes(6, near, device=device, **settings)
    assert modes.converged and np.allclose(modes.frequencies, exact(6, near), rtol=2e-3, atol=1e-9)
    assert residuals(modes, room.matrices).max() < 1e-8
    M = room.matrices[1]
    assert np.allclose(modes.shapes.T @ (M @ modes.shapes), np.eye(6), atol=1e-8)
    assert modes.solves and modes.iterations and not modes.notes


def test_the_constant_pressure_of_a_closed_room_is_0_hz(room):
    modes = room.modes(2)
    assert modes.frequencies[0] == 0 and np.ptp(modes.shapes[:, 0]) < 1e-6 * abs(modes.shapes[:, 0]).max()


def test_a_wall_of_given_pressure():
    room = h.Helmholtz(h.box((10, 7, 5), upper=SIZE), AIR, {"xmax": h.Pressure(0.0)}, degree=2)
    modes = room.modes(5)
    assert modes.converged and np.allclose(modes.frequencies, exact(5, ends=0.5), rtol=2e-3)
    assert not modes.shapes[room.space.facet_dofs(room.mesh.boundaries["xmax"])].any()


@pytest.mark.parametrize("boundary, count, most", [
    ({}, 12, 0.01), ({"zmax": h.Impedance(4000 - 1000j)}, 20, 0.04), ({"xmax": h.Pressure(0.5)}, 20, 0.02)],
    ids=["damped air", "lined wall", "given pressure"])
def test_the_modal_response_is_the_direct_one(boundary, count, most):
    """Well below the highest mode, with the damping that the modes leave out. A wall that takes sound couples all
    modes, so that those left out cost more there."""
    room = h.Helmholtz(h.box((8, 6, 4), upper=SIZE), h.Medium(speed=340.0, damping=0.02), boundary, degree=2)
    ears, band, sources = [(1.5, 0.4, 0.3), (0.3, 1.0, 0.7)], h.band("20:160:20"), ["ymin", (0.2, 0.2, 0.2)]
    modes = room.modes(count)
    direct = room.response(None, ears, band, sources=sources, method="direct")
    modal = modes.response(None, ears, band, sources=sources)
    assert modal.pressure.shape == direct.pressure.shape == (8, 2, 2)
    scale = abs(direct.pressure).max(axis=(0, 2), keepdims=True)
    assert (abs(modal.pressure - direct.pressure) / scale).max() < most
    alone = modes.response(sources[0], ears, band)
    assert np.allclose(alone.pressure, modal.pressure[:, 0], rtol=most, atol=most * abs(modal.pressure).max())
    assert modes.notes and "the modal response has them" in modes.notes[0]


def test_residual_vectors_pay():
    """Without them the response close to a point source misses half of the pressure."""
    room = h.Helmholtz(h.box((8, 6, 4), upper=SIZE), h.Medium(speed=340.0, damping=0.02), degree=2)
    source, ear, f = (0.2, 0.2, 0.2), (0.3, 0.2, 0.2), [70.0]
    direct = room.response(source, ear, f, method="direct").pressure[0, 0]
    modes = room.modes(6)
    assert abs(modes.response(source, ear, f).pressure[0, 0] / direct - 1) < 0.02
    modes._inverse.extended = lambda shapes, loads: shapes
    assert abs(modes.response(source, ear, f).pressure[0, 0] / direct - 1) > 0.2


@pytest.mark.parametrize("arguments, words", [
    ({"count": 0}, "expected a number of modes, 1 to"), ({"count": 2.5}, "count=2.5"), ({"count": 10**6}, "free dofs"),
    ({"near": -3}, "near=-3: expected a frequency"), ({"near": float("nan")}, "near=nan"), ({"rtol": 2}, "rtol=2")])
def test_bad_input(room, arguments, words):
    with pytest.raises(InputError, match=words):
        room.modes(**arguments)


def test_rounding_below_zero_is_the_constant_pressure():
    """Its root would be NaN."""
    room = h.Helmholtz(h.box((4, 3, 2)))
    for settings in ({"method": "gmres", "precond": "ilu0"}, {"near": 1e-3}):
        frequencies = room.modes(3, **settings).frequencies
        assert frequencies[0] < 0.1 and frequencies[1] > 100


def test_points_and_ears_of_modes_are_checked():
    modes = h.Helmholtz(h.box((4, 3, 2))).modes(3)
    with pytest.raises(InputError, match="ear='x': expected a point of 3 coordinates"):
        modes.at("x")
    with pytest.raises(InputError, match="needs an ear"):
        modes.response("xmin", None, [100.0])
    with pytest.raises(InputError, match="is of type ModalResponse: expected what Helmholtz.response returns"):
        h.impulse(modes.response("xmin", (0.5, 0.5, 0.5), h.band("10:100:10")))


def test_a_solve_that_fails_is_an_error(room, monkeypatch):
    """No mode comes from it."""
    from swell.core.stopping import Reason
    from swell.solver import Solver
    usual = Solver.solve

    def failing(self, b):
        result = usual(self, b)
        result.reason = Reason.STAGNATED
        return result
    monkeypatch.setattr(Solver, "solve", failing)
    with pytest.raises(SwellError, match="STAGNATED.*another near="):
        room.modes(3, 100.0)


def test_files_and_text(room, tmp_path):
    meshio = pytest.importorskip("meshio")
    modes = room.modes(3)
    modes.write(tmp_path / "modes.vtu")
    data = meshio.read(tmp_path / "modes.vtu").point_data
    assert len(data) == 3 and all(abs(abs(shape).max() - 1) < 1e-12 for shape in data.values())
    with pytest.raises(InputError, match="expected .vtu"):
        modes.write(tmp_path / "modes.csv")
    assert modes.at([(0.1, 0.1, 0.1)]).shape == (1, 3)
    assert "3 of 3 modes" in str(modes) and "Hz" in modes._repr_html_() and "converged" in repr(modes)


def test_the_command(tmp_path, capsys):
    mesh = str(tmp_path / "room.msh")
    h.box((8, 6, 4)).write(mesh)
    room = ["helmholtz", mesh, "--quiet"]
    assert main([*room[:2], "--json", "--modes", "3", "--vtu", str(tmp_path / "m.vtu")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["modes"]["converged"] and (tmp_path / "m.vtu").exists()
    picture = tmp_path / "r.png"
    assert main([*room, "--modes", "3", "--source", "xmin", "--ear", "0.5,0.5,0.5", "--band", "50:200:50",
                 "--damping", "0.02", "--plot", str(picture)]) == 0
    assert picture.exists()
    for wrong in (["--near", "100"], ["--modes", "0"], ["--modes", "3", "--rtol", "2"]):
        assert main([*room, *wrong]) == 2
    for idle in (["--csv", "a.csv"], ["--wav", "a.wav"], ["--vtu", "a.vtu", "--vtu-at", "100"], ["--velocity", "2"],
                 ["--at-once"], ["--maxiter", "3"], ["--no-reuse"], ["--dtype", "complex64"]):
        capsys.readouterr()
        assert main([*room, "--modes", "3", *idle]) == 2
        assert f"{idle[-2] if len(idle) > 2 else idle[0]} is for a response" in capsys.readouterr().err
