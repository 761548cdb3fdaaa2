"""Several sources: k columns equal k sweeps, with the bits of each; records, transfer matrices, files, bad input."""
import csv
import json

import numpy as np
import pytest
import scipy.sparse as sp
from tests.conftest import space_or_skip

from swell import gallery
from swell.core.errors import InputError, OutOfMemory
from swell.core.stopping import Reason
from swell.pde.helmholtz import Sweep
from swell.solving.results import Results

BAND = np.linspace(8, 9, 4)


@pytest.fixture(scope="module")
def waves():
    """K, M (damped) and B of a square of 20 × 20 cells with one side that takes sound, without a mesh."""
    K = gallery.neumann((21, 21))
    n = K.shape[0]
    M = sp.identity(n, format="csr") * (1 / 400 / (1 + 0.05j))
    B = sp.diags(np.where(np.arange(n) < 21, 1 / 20, 0)).tocsr()
    B.eliminate_zeros()
    return K, M, B


def loads(n, count):
    """Point sources; the third is zero."""
    b = np.zeros((n, count), complex)
    b[np.arange(count) * 31 % n, np.arange(count)] = 1 - 2j
    b[:, 2:3] = 0
    return b


@pytest.mark.parametrize("settings", [{"method": "cocg", "precond": "ilu0"}, {"method": "direct"},
                                      {"method": "cocg", "precond": "deflation(inner=jacobi, vectors=6)"}],
                         ids=lambda s: s.get("precond", "direct"))
def test_sources_together_equal_sweeps_of_each(device, settings, waves):
    """Solutions, counts and starting vectors, bit for bit: each source combines its own earlier solutions."""
    K, M, B = waves
    b = loads(K.shape[0], 4)
    settings = {**settings, "rtol": 1e-9, "device": device, "remember": 2}
    together = Sweep(K, M, B, **settings, together=True)
    alone = [Sweep(K, M, B, **settings) for _ in b.T]
    for sweep in (together, *alone):             # measured times must not decide when preconditioners are made
        sweep._learn = lambda *_, sweep=sweep: vars(sweep).update(_serves=True)
        sweep._reduces = False                   # a reduced model would share what the sources find
        sweep._guessed = None
    for omega in BAND:
        r = together.solve(omega, b)
        singles = [sweep.solve(omega, column) for sweep, column in zip(alone, b.T.copy())]
        assert isinstance(r, Results) and r.converged and r.notes == ["solved together"]
        assert [one.iterations for one in r] == [one.iterations for one in singles] and r[2].iterations == 0
        x, A = together.space.to_host(r.x), (K - omega ** 2 * M + 1j * omega * B).tocsr()
        assert (np.linalg.norm(b - A @ x, axis=0) <= 1.01e-9 * np.linalg.norm(b, axis=0)).all()
        if settings["method"] == "direct":       # its library solves for several columns in another order
            assert np.allclose(x, np.array([sweep.space.to_host(one.x) for sweep, one in zip(alone, singles)]).T)
        else:
            assert all(np.array_equal(x[:, j], sweep.space.to_host(one.x))
                       for j, (sweep, one) in enumerate(zip(alone, singles)))


@pytest.mark.parametrize("count", [1, 3, 33, 40])
def test_any_number_of_columns(count, waves):
    """One column in two dimensions; more than are solved at a time; b in Fortran's order; the host's list of lists."""
    K, M, B = waves
    sweep, b = Sweep(K, M, B, method="cocg", precond="jacobi", rtol=1e-8), loads(K.shape[0], count)
    for omega, given in zip(BAND, (b, np.asfortranarray(b), b.tolist())):
        r = sweep.solve(omega, given)
        A = (K - omega ** 2 * M + 1j * omega * B).tocsr()
        assert r.converged and len(r) == count and r.x.shape == b.shape
        assert (np.linalg.norm(b - A @ r.x, axis=0) <= 1.01e-8 * np.linalg.norm(b, axis=0)).all()


@pytest.mark.gpu
def test_starting_vectors_of_several_sources_take_the_launches_of_one(waves):
    from swell.pde.helmholtz.starting_guess import StartingGuess, StartingGuesses
    from swell.pde.helmholtz.system import System
    space, n = space_or_skip("cuda"), waves[0].shape[0]
    random, launches = np.random.default_rng(5), []
    with space.active(n):
        system = System(*waves, space, "complex128")
        system.form(BAND[0])
        for guess, count in ((StartingGuess(space, 2), 0), (StartingGuesses(system.A, 2, 5), 5)):
            own = guess._groups[0][1].space if count else space
            with own.active(n):
                x = space.from_host(random.standard_normal((n, count) if count else n) + 0j)
                for _ in range(2):
                    guess.add(x, np.ones(count, bool)) if count else guess.add(x)
                before = own.launches
                guess.of(x) if count else guess.of(system.A, x)
                launches.append(own.launches - before)
    assert launches[0] == launches[1] > 0


def test_a_column_that_fails_is_one_record(waves):
    """The others converge; with the next preconditioner only the failed one is solved again."""
    K, M, B = waves
    n = K.shape[0]
    A = (K - BAND[0] ** 2 * M + 1j * BAND[0] * B).tocsr()
    easy = A @ np.ones(n)
    b = np.stack([np.zeros(n), loads(n, 1)[:, 0], 2 * easy], axis=1)
    sweep = Sweep(K, M, B, method="cocg", precond="jacobi", maxiter=3, rtol=1e-6)
    sweep._make_room((3,))
    sweep._model.add(np.ones((n, 3), complex))   # the solution of the last column
    r = sweep.solve(BAND[0], b)
    assert r.reasons == [Reason.CONVERGED, Reason.MAXITER, Reason.CONVERGED]
    assert not r.converged and r.reason is Reason.MAXITER and np.allclose(r.x[:, 2], 2)
    assert not sweep._serves and sweep.setups == 1
    sweep._serves = True                         # as if the preconditioner were of an earlier frequency
    again = sweep.solve(BAND[0], b)
    assert sweep.setups == 2 and [len([note for note in one.notes if "repeated with a new" in note]) for one in again] == [
        0, 1, 0]


def test_a_failed_column_does_not_spoil_later_starting_vectors(waves):
    from swell.pde.helmholtz.starting_guess import StartingGuesses
    from swell.pde.helmholtz.system import System
    K, M, B = waves
    space, n = space_or_skip("cpu"), K.shape[0]
    system = System(K, M, B, space, "complex128")
    system.form(BAND[0])
    guesses, x = StartingGuesses(system.A, 2, 3), np.ones((n, 3), complex)
    x[:, 1] = np.nan
    b = np.repeat((system.A.to_scipy() @ np.ones(n))[:, None], 3, axis=1)
    assert guesses.of(b) is None
    guesses.add(x, np.array([True, False, True]))
    x0 = guesses.of(b)
    assert np.allclose(x0[:, [0, 2]], 1) and not x0[:, 1].any()
    guesses.add(np.full((n, 3), 2.0 + 0j), np.array([False, True, False]))   # now it has one
    assert np.allclose(guesses.of(b), 1)


def test_another_number_of_sources_begins_anew(waves):
    K, M, B = waves
    sweep = Sweep(K, M, B, method="cocg", precond="ilu0", rtol=1e-9)
    for count in (2, 3, 0, 2):
        b = loads(K.shape[0], count) if count else loads(K.shape[0], 1)[:, 0]
        assert sweep.solve(BAND[0], b).converged and sweep.solve(BAND[1], b).converged


@pytest.mark.parametrize("b, message", [
    (np.ones((441, 0)), r"shape \(441, 0\), no right-hand side: expected a column for each source"),
    (np.ones((440, 2)), r"shape \(440, 2\): expected \(441,\), or \(441, k\)"),
    ([np.ones(441), np.ones(440)], "its columns differ in length"),
    (np.array([["a", "b"]] * 441), "no array of numbers"),
    (np.array([[object(), 1]] * 441), "no array of numbers"),
    (np.full((441, 2), np.nan), "NaN")])
def test_columns_that_do_not_fit(b, message, waves):
    sweep = Sweep(*waves, method="cocg")
    with pytest.raises(InputError, match=message):
        sweep.solve(1.0, b)
    assert sweep.solve(1.0, np.ones((441, 2))).converged


def test_no_room_for_the_solutions_of_all_sources(waves, monkeypatch):
    sweep = Sweep(*waves, method="cocg")
    monkeypatch.setattr(type(sweep.space), "memory", lambda self: (10 * 441 * 16 * 16, 10 ** 9))
    with pytest.raises(OutOfMemory, match="remembering 32 solutions of 441 unknowns for 12 right-hand sides"):
        sweep.solve(1.0, np.ones((441, 12)))
    monkeypatch.undo()
    assert sweep.solve(1.0, np.ones(441)).converged and sweep.solve(1.1, np.ones((441, 12))).converged
    with pytest.raises(InputError, match="together='yes'"):
        Sweep(*waves, together="yes")


@pytest.fixture(scope="module")
def room():
    pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[pde]'")
    from swell.pde import helmholtz as h
    return h.Helmholtz(h.box((8, 6, 5), upper=(1.0, 0.8, 0.6)), h.Medium(damping=0.02),
                       {"zmax": h.Impedance(1000), "xmax": h.Pressure(0.01)})


EARS = [(0.72, 0.51, 0.33), (0.1, 0.1, 0.1)]
COCG = {"method": "cocg", "precond": "ilu0", "rtol": 1e-9}


def sources():
    from swell.pde import helmholtz as h
    return ["xmin", {"ymin": h.Velocity(2e-3)}, (0.3, 0.2, 0.2), h.Monopole((0.5, 0.5, 0.1), 1e-4j), ["xmin", "ymax"]]


NAMES = ["xmin", "ymin", "0.3,0.2,0.2", "0.5,0.5,0.1", "xmin+ymax"]


def test_the_transfer_matrix(device, room):
    """(frequency, source, ear); column j is the response to source j alone, given pressures included."""
    frequencies = [100.0, 140.0, 180.0]
    r = room.response(sources=sources(), ear=EARS, frequencies=frequencies, device=device, fields=[140.0], **COCG)
    assert r.converged and r.pressure.shape == r.level.shape == (3, 5, 2) and r.sources == NAMES
    for j, source in enumerate(sources()):
        one = room.response(source, EARS, frequencies, **COCG)
        assert one.pressure.shape == (3, 2) and one.sources is None
        np.testing.assert_allclose(r.pressure[:, j], one.pressure, rtol=1e-6)
        assert r.fields[140.0][j].at(EARS[1]) == pytest.approx(r.pressure[1, j, 1], rel=1e-9)
    assert "3 of 3 frequencies converged: 5 sources" in str(r) and " Hz from " in str(r)
    assert "5 of 5 right-hand sides converged" in str(r)
    assert all(one.x is None for point in r.points for one in (point.result, *point.results))


def test_reciprocity(room):
    """A transfer matrix between points is symmetric: p at b of a source in a is p at a of that source in b."""
    r = room.response(sources=[(0.3, 0.2, 0.2), (0.7, 0.6, 0.4)], ear=[(0.3, 0.2, 0.2), (0.7, 0.6, 0.4)],
                      frequencies=[150.0], **COCG)
    bare = room.response(ear=[(0.3, 0.2, 0.2), (0.7, 0.6, 0.4)], frequencies=[150.0], **COCG).pressure[0]  # the wall's
    assert r.pressure[0, 0, 1] - bare[1] == pytest.approx(r.pressure[0, 1, 0] - bare[0], rel=1e-6)


def test_files(room, tmp_path):
    r = room.response(sources=sources(), ear=EARS, frequencies=[100.0, 140.0], **COCG)
    r.write_csv(tmp_path / "r.csv")
    rows = list(csv.DictReader((tmp_path / "r.csv").open()))
    assert len(rows) == 2 * 5 * 2 and [row["source"] for row in rows[:10:2]] == NAMES
    assert [row["ear"] for row in rows[:2]] == ["0.72,0.51,0.33", "0.1,0.1,0.1"]
    assert float(rows[13]["level_dB"]) == pytest.approx(r.level[1, 1, 1])
    assert complex(float(rows[7]["p_real_Pa"]), float(rows[7]["p_imag_Pa"])) == pytest.approx(r.pressure[0, 3, 1])
    r.plot(tmp_path / "r.png")
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(json.dumps(r.as_dict()))
    assert found["sources"] == NAMES and np.shape(found["points"][1]["pressure"]) == (5, 2, 2)
    assert len(found["points"][0]["columns"]) == 5 and found["points"][0]["columns"][2]["converged"] is True


def test_the_picture_has_a_line_for_each_pair(room):
    from swell.report.response import figure
    r = room.response(sources=sources(), ear=EARS, frequencies=[100.0, 140.0], **COCG)
    axes, = figure(r).axes
    assert len(axes.lines) == 10 and axes.lines[3].get_label() == "ymin to ear at (0.1, 0.1, 0.1) m"
    np.testing.assert_allclose(axes.lines[3].get_ydata(), r.level[:, 1, 1])


def test_a_source_that_fails_is_said(room, tmp_path):
    """The wall and a point of strength 0 need no iteration more than the wall alone; the others do."""
    easy = room.response(ear=EARS, frequencies=[100.0], **COCG).points[0].result.iterations
    hard = room.response("xmin", EARS, [100.0], **COCG).points[0].result.iterations
    r = room.response(sources=["xmin", None, (0.3, 0.2, 0.2)], ear=EARS, frequencies=[100.0], **COCG,
                      maxiter=min(easy, hard) - 1)
    assert not r.converged and "100 Hz NOT converged (MAXITER, from xmin, walls, 0.3,0.2,0.2)" in str(r)
    assert "raise maxiter" in r.points[0].advice
    r.write_csv(tmp_path / "r.csv")
    assert {row["reason"] for row in csv.DictReader((tmp_path / "r.csv").open())} == {"MAXITER"}
    assert "loudest" not in str(r)
    r.plot(tmp_path / "r.png")


def test_an_interrupt_keeps_what_is_done(room):
    seen = []
    r = room.response(sources=["xmin", "ymin"], ear=EARS, frequencies=[100.0, 150.0], method="direct",
                      watch=lambda point: seen.append(point) or True)
    assert len(r.points) == 1 and "stopped after 100 Hz" in r.notes[-1] and len(seen[0].results) == 2


@pytest.mark.parametrize("given, message", [
    ([], "sources is empty"), ("xmin", "sources='xmin': expected a list"), ((0.1, 0.2, 0.3), "expected a list of sources"),
    (3, "sources=3: expected a list"), (["xmin", (5, 5, 5)], r"sources\[1\]: source = \(5, 5, 5\) lies outside the mesh"),
    (["xmin", "xmn"], r"sources\[1\]: there is no boundary 'xmn': did you mean 'xmin'"),
    (["xmin", (0.1, 0.2)], r"sources\[1\]: source = \(0.1, 0.2\): expected 3 finite coordinates"),
    (["zmax"], r"sources\[0\]: boundary 'zmax' is the source and has the condition Impedance"),
    ([{"xmin": 3}], r"sources\[0\]: source {'xmin': 3}: expected a Velocity"), ([[]], r"sources\[0\]: source=\[\]")])
def test_sources_that_are_none(room, given, message):
    with pytest.raises(InputError, match=message):
        room.response(sources=given, ear=EARS, frequencies=[100.0])


def test_other_bad_input(room):
    with pytest.raises(InputError, match="both source and sources"):
        room.response("xmin", EARS, [100.0], sources=["xmin"])
    with pytest.raises(InputError, match=r"ear = \(3, 0, 0\) lies outside the mesh"):
        room.response(sources=["xmin"], ear=(3, 0, 0), frequencies=[100.0])
    from swell.pde import helmholtz as h
    silent = h.Helmholtz(room.mesh)
    with pytest.raises(InputError, match=r"sources\[1\]: nothing makes sound"):
        silent.response(sources=["xmin", None], ear=EARS, frequencies=[100.0])
