"""``swell flow``: steady and in time, what it prints and writes, restarts, what it refuses."""
import json

import numpy as np
import pytest

from swell.pde.fvm import box, write_polymesh

N = 6
FILES = {
    "0/U": """internalField uniform (0 0 0);
boundaryField { ymax { type fixedValue; value uniform (1 0 0); } "[xy].*" { type noSlip; } "z.*" { type empty; } }""",
    "0/p": """internalField uniform 0; boundaryField { ".*" { type zeroGradient; } "z.*" { type empty; } }""",
    "constant/transportProperties": "nu 0.05;",
    "system/controlDict": "application icoFoam; endTime 0.2; deltaT 0.05; writeInterval 2;"}


def put(case, place, text):
    path = case / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"FoamFile {{ format ascii; object {path.name}; }}\n{text}\n")


@pytest.fixture
def cavity(tmp_path):
    case = tmp_path / "cavity"
    write_polymesh(box((N, N)), case)
    for place, text in FILES.items():
        put(case, place, text)
    put(case, "0/U", FILES["0/U"].replace('"[xy].*"', '"xmin|xmax|ymin"'))
    return case


def times(case):
    return {path.name for path in case.iterdir()} - {"constant", "system"}


def test_in_time(cli, cavity, tmp_path):
    """The application of controlDict chooses PISO; two outputs, a collection that lists them, and a report."""
    meshio = pytest.importorskip("meshio", reason="needs meshio")
    status, out, err = cli("flow", cavity, "--out", tmp_path / "w.pvd", "--report", tmp_path / "r.html", "--write-case")
    assert status == 0 and not err
    assert "36 cells, nu = 0.05 m2/s, from time 0, in time" in out
    assert "t = 0.2 in 4 steps" in out and "Courant number" in out
    assert "force on ymin: pressure (" in out and "written: " in out
    listed = (tmp_path / "w.pvd").read_text()
    assert 'timestep="0.1" file="w_0000.vtu"' in listed and 'timestep="0.2" file="w_0001.vtu"' in listed
    fields = meshio.read(tmp_path / "w_0001.vtu").cell_data
    assert fields["U"][0].shape == (36, 3) and fields["p"][0].shape == (36,)
    assert times(cavity) == {"0", "0.1", "0.2"} and {p.name for p in (cavity / "0.2").iterdir()} == {"U", "p", "phi"}
    report = (tmp_path / "r.html").read_text("utf-8")
    assert report.count("<img") == 2 and "PISO(dt=0.05, end=0.2" in report
    assert "Force, at the end" in report and "for a fluid of density 1" in report


def test_a_restart_goes_on(cli, cavity):
    assert cli("flow", cavity, "--write-case", "--quiet")[0] == 0
    status, out, err = cli("flow", cavity, "--start", "latest", "--json")
    assert status == 2 and "the start is time 0.2, and system/controlDict ends at 0.2: give --end" in err
    status, out, err = cli("flow", cavity, "--start", "latest", "--end", "0.1", "--every", "0.1", "--write-case",
                           "--json")
    found = json.loads(out)
    assert status == 0 and not err and found["converged"] and found["time"] == pytest.approx(0.1)
    assert times(cavity) == {"0", "0.1", "0.2", "0.3"} and found["written"] == [str(cavity / "0.3")]


def test_steady(cli, cavity, tmp_path):
    status, out, err = cli("flow", cavity, "--steady", "--relax", "0.9", "--out", tmp_path / "s.vtu", "--report",
                           tmp_path / "r.html", "--json", "--write-case")
    found = json.loads(out)
    assert status == 0 and not err and out.count("\n") == 1
    assert found["converged"] and found["time"] is None and max(found["residuals"]) < 1e-6
    assert found["written"] == [str(tmp_path / "s.vtu"), str(cavity / str(found["iterations"]))]
    drag = {name: force["viscous"][0] for name, force in found["forces"].items()}
    pressure = sum(force["pressure"][0] for force in found["forces"].values())
    assert drag["ymax"] < 0 and sum(drag.values()) + pressure == pytest.approx(0, abs=0.05 * abs(drag["ymax"]))
    assert (tmp_path / "s.vtu").exists() and "SIMPLE(velocity=0.9" in (tmp_path / "r.html").read_text()


def test_steady_by_the_application(cli, cavity):
    put(cavity, "system/controlDict", "application simpleFoam;")
    status, out, _ = cli("flow", cavity, "--maxiter", "2")
    assert status == 1 and "from time 0, steady" in out and "NOT converged in 2 iterations" in out
    status, _, err = cli("flow", cavity, "--transient")
    assert status == 2 and "--dt is missing, and the case has no system/controlDict with deltaT" in err


@pytest.mark.parametrize("options", [("--dt", "20", "--end", "4000", "--every", "4000"),
                                     ("--steady", "--relax", "0.95", "--scheme", "linear")])
def test_a_diverged_flow_is_no_start(cli, cavity, options):
    """It would be the latest time of the case."""
    put(cavity, "constant/transportProperties", f"nu {1e-9 if '--steady' in options else 1e-4};")
    status, out, err = cli("flow", cavity, *options, "--write-case", "--json")
    found = json.loads(out)
    assert status == 1 and not err and "it diverged" in found["notes"][0]
    assert "not written into the case" in found["notes"][-1] and times(cavity) == {"0"} and not found["written"]


def test_divergence_is_said(cli, cavity, tmp_path):
    """Exit status 1, the Courant number and a smaller step; the fields at the end are written, the forces left out."""
    put(cavity, "constant/transportProperties", "nu 1e-4;")
    status, out, err = cli("flow", cavity, "--dt", "20", "--end", "4000", "--every", "4000", "--json", "--report",
                           tmp_path / "r.html")
    found = json.loads(out)
    assert status == 1 and not err and not found["converged"]
    assert " at t = " in found["notes"][0] and "take --dt " in found["notes"][0]
    assert 0.1 < float(found["notes"][0].split("take --dt ")[1].split(",")[0]) < 20      # not 1e-6, as the end would say
    assert "NOT converged" in (tmp_path / "r.html").read_text("utf-8")


@pytest.mark.parametrize("options, words", [
    (["--rtol", "1e-5"], "--rtol has no effect on a march in time: leave it out, or give --steady"),
    (["--steady", "--time-scheme", "euler"], "--time-scheme has no effect on steady flow"),
    (["--steady", "--transient"], "not allowed with argument"),
    (["--dt", "-1"], "dt=-1.0: expected a positive time step"),
    (["--scheme", "quick"], "scheme='quick': expected one of"), (["--time-scheme", "rk4"], "time scheme 'rk4'"),
    (["--pressure-precond", "magic"], "magic"), (["--out", "w.vtu"], ".pvd"), (["--steady", "--out", "w.pvd"], ".vtu"),
    (["--start", "7"], "no folder of the time 7"), (["--report", "r.txt"], ".html"), (["--device", "tpu"], "tpu"),
    (["--steady", "--relax", "1.5"], "velocity=1.5"), (["--cut", "z=0.5"], "give --report FILE, too"),
    (["--cut", "up", "--report", "r.html"], "such as z=0.5"), (["--cut", "z=3", "--report", "r.html"], "cuts no cell"),
    (["--forces", "ymax"], "give --history FILE or --report"),
    (["--forces", "wing", "--history", "h.csv"], "'wing' is no patch of given velocity, such as a wall. There are: "
     "xmin, xmax, ymin, ymax"),
    (["--coefficients", "0,1"], "expected a speed and an area above 0"), (["--history", "h.txt"], ".csv")])
def test_bad_options(cli, cavity, options, words):
    status, out, err = cli("flow", cavity, *options)
    assert status == 2 and words in err and "Traceback" not in err
    assert times(cavity) == {"0"}


@pytest.mark.parametrize("place, text, words", [
    ("0/p", "internalField uniform 0; boundaryField { ymax { type zeroGradient; } }",
     "0/p has no condition for patch 'xmin'"),
    ("constant/transportProperties", "nu 0;", "nu is 0: expected a positive"),
    ("constant/turbulenceProperties", "simulationType LES;", "asks for LES"),
    ("system/controlDict", "application interFoam;", "application interFoam, and swell knows simpleFoam")])
def test_bad_cases(cli, cavity, place, text, words):
    put(cavity, place, text)
    status, out, err = cli("flow", cavity)
    assert status == 2 and words in err and not out and "Traceback" not in err


def test_a_turbulence_model_is_left_out_when_asked(cli, cavity):
    put(cavity, "constant/turbulenceProperties", "simulationType RAS;")
    status, out, _ = cli("flow", cavity, "--laminar", "--json")
    assert status == 0 and "RAS" in json.loads(out)["notes"][0] and np.isfinite(json.loads(out)["residuals"]).all()


def test_forces_and_their_history(cli, cavity, tmp_path):
    """Columns for the chosen wall only, as coefficients; a curve in the report, and a picture in the given plane."""
    rows = {}
    for options in ((), ("--coefficients", "2,0.5")):
        status, out, err = cli("flow", cavity, "--forces", "ymax", "--history", tmp_path / "h.csv", "--report",
                               tmp_path / "r.html", "--cut", "z=0.3", *options)
        assert status == 0 and not err and str(tmp_path / "h.csv") in out
        assert ("force coefficient on ymin" if options else "force on ymin") in out
        header, *lines = (tmp_path / "h.csv").read_text().splitlines()
        assert header.startswith("step,time,Courant number,momentum,continuity,ymax pressure x")
        rows[options] = np.array([line.split(",") for line in lines], float)
        assert (tmp_path / "r.html").read_text().count("<img") == 3
    plain, scaled = rows.values()
    assert plain.shape == (4, 11)
    np.testing.assert_allclose(scaled[:, 5:], plain[:, 5:], rtol=1e-9)          # 2² · 0.5 / 2 is 1


def test_end_time_counts_iterations_for_simple_foam(cli, cavity):
    """As OpenFOAM does; for a case of another application --steady does not take its seconds for iterations."""
    put(cavity, "system/controlDict", "application simpleFoam; endTime 7; deltaT 1;")
    assert "NOT converged in 7 iterations" in cli("flow", cavity, "--write-case")[1] and times(cavity) == {"0", "7"}
    status, _, err = cli("flow", cavity, "--start", "latest")
    assert status == 2 and "the start is time 7, and system/controlDict ends at 7: give --maxiter" in err
    assert "in 9 iterations" in cli("flow", cavity, "--start", "7", "--maxiter", "9", "--write-case")[1]
    assert times(cavity) == {"0", "7", "16"}
    put(cavity, "system/controlDict", "application icoFoam; endTime 2; deltaT 1;")
    assert cli("flow", cavity, "--steady")[0] == 0


def test_rounded_times(cli, cavity):
    """0.8 − 0.1 is more than 7 · 0.1, and less than 7 steps of it; folders keep the digits of small steps."""
    put(cavity, "system/controlDict", "application simpleFoam; endTime 0.8; deltaT 0.1;")
    (cavity / "0").rename(cavity / "0.1")
    assert "NOT converged in 7 iterations" in cli("flow", cavity, "--start", "0.1")[1]
    put(cavity, "system/controlDict", "application icoFoam; startTime 0.1; endTime 0.8; deltaT 0.1; writeInterval 1;")
    assert "t = 0.7 in 7 steps" in cli("flow", cavity, "--write-case")[1]
    assert times(cavity) == {f"0.{k}" for k in range(1, 9)}
    (cavity / "0.8").rename(cavity / "1000")
    late = "--start", "1000", "--dt", "1e-7", "--end", "2e-7", "--every", "1e-7", "--write-case"
    assert cli("flow", cavity, *late)[0] == 0
    assert {"1000", "1000.0000001", "1000.0000002"} < times(cavity)


def test_a_mesh_file_is_no_case(cli, cavity):
    status, _, err = cli("flow", cavity / "0" / "U")
    assert status == 2 and "is a file: expected the folder of an OpenFOAM case" in err
    (cavity / "0" / "p").unlink()
    status, _, err = cli("flow", cavity)
    assert status == 2 and f"{cavity / '0'} has no file p or p.gz: copy it there" in err
