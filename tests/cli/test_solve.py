"""``swell solve``: what it prints, what it writes, and its exit status."""
import importlib
import json
import os
import shutil
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from swell import gallery


def residual(A, x, b):
    return np.linalg.norm(b - A @ x) / np.linalg.norm(b)


def test_solves_with_ones_and_says_so(cli, folder):
    status, out, err = cli("solve", folder / "A.mtx", "--out", folder / "x.npy")
    A = scipy.io.mmread(folder / "A.mtx").tocsr()
    assert status == 0 and not err
    assert "converged" in out and "all ones" in out and "x.npy" in out
    assert residual(A, np.load(folder / "x.npy"), np.ones(144)) <= 1e-8


@pytest.mark.parametrize("ending", [".npy", ".mtx", ".txt"])
def test_right_hand_side_and_every_kind_of_output(cli, folder, ending):
    out = folder / f"x{ending}"
    assert cli("solve", folder / "A.mtx", "--rhs", folder / "b.npy", "--out", out)[0] == 0
    x = {".npy": np.load, ".mtx": lambda p: scipy.io.mmread(p).ravel(), ".txt": np.loadtxt}[ending](out)
    assert residual(scipy.io.mmread(folder / "A.mtx").tocsr(), x, np.load(folder / "b.npy")) <= 1e-8


def test_json_is_one_object_and_nothing_else(cli, folder):
    status, out, err = cli("solve", folder / "A.mtx", "--method", "gmres(restart=20)", "--precond", "jacobi",
                           "--ordering", "rcm", "--format", "csr", "--json", "--out", folder / "x.npy")
    found = json.loads(out)
    assert status == 0 and not err and out.count("\n") == 1
    assert (found["method"], found["precond"], found["format"], found["ordering"]) == ("gmres", "jacobi", "csr", "rcm")
    assert found["converged"] is True and found["reason"] == "CONVERGED" and found["device"].startswith("cpu")
    assert found["residual"] <= 1e-8 and found["iterations"] > 0
    assert found["setup_seconds"] >= 0 and found["solve_seconds"] > 0


def test_json_is_strict_where_a_number_is_not_finite(cli, folder):
    scipy.io.mmwrite(folder / "one.mtx", sp.csr_matrix([[2.0, 0.0], [0.0, 3.0]]))
    np.save(folder / "zero.npy", np.zeros(2))
    out = cli("solve", folder / "one.mtx", "--rhs", folder / "zero.npy", "--json")[1]
    json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_not_converged_is_status_one_and_still_written(cli, folder):
    status, out, err = cli("solve", folder / "A.mtx", "--method", "cg", "--maxiter", "3", "--out", folder / "x.npy",
                           "--report", folder / "r.html")
    assert status == 1 and not err
    assert "NOT converged (MAXITER)" in out
    assert np.load(folder / "x.npy").shape == (144,)
    report = (folder / "r.html").read_text("utf-8")
    assert "MAXITER" in report and "raise --maxiter" in report and "raise --maxiter" in out
    found = json.loads(cli("solve", folder / "A.mtx", "--method", "cg", "--maxiter", "3", "--json")[1])
    assert "raise --maxiter" in found["message"]


def test_auto_is_as_if_the_part_were_not_named(cli, folder):
    plain, auto, without = (json.loads(cli("solve", folder / "A.mtx", "--json", *words)[1]) for words in (
        (), ("--method", "auto", "--precond", "AUTO", "--format", "auto"), ("--method", "auto", "--precond", "none")))
    assert plain["choices"] and [c["choice"] for c in auto["choices"]] == [c["choice"] for c in plain["choices"]]
    assert without["method"] != "direct" and without["precond"] == "none"


def test_an_incompatible_right_hand_side_is_projected_where_asked(cli, folder):
    scipy.io.mmwrite(folder / "walls.mtx", gallery.neumann((30,)))
    status, out, _ = cli("solve", folder / "walls.mtx", "--method", "cg", "--maxiter", "200")
    assert status == 1
    np.save(folder / "some.npy", np.arange(30.0))
    assert cli("solve", folder / "walls.mtx", "--rhs", folder / "some.npy", "--nullspace", "constants")[0] == 2
    status, out, err = cli("solve", folder / "walls.mtx", "--rhs", folder / "some.npy", "--nullspace", "constants",
                           "--project", "--out", folder / "x.npy")
    x, b = np.load(folder / "x.npy"), np.arange(30.0) - 14.5
    assert status == 0 and not err and residual(gallery.neumann((30,)), x, b) < 1e-7 and abs(x.sum()) < 1e-8


@pytest.mark.parametrize("command, words, not_words", [
    ("solve", ["--dtype float32", "--method cg or bicgstab", "mpiexec -n 4 swell solve"], ["--cells"]),
    ("demo", ["fewer --cells"], ["--method", "--dtype", "mpiexec"]), ("info", ["more memory"], ["--dtype", "--method"])])
def test_advice_where_memory_ends_fits_the_command(cli, folder, monkeypatch, command, words, not_words):
    def full(*arguments):
        raise MemoryError
    monkeypatch.setattr(importlib.import_module(f"swell.cli.{command}"), "run", full)
    status, out, err = cli(command, *([] if command == "demo" else [folder / "A.mtx"]))
    assert status == 2 and all(word in err for word in words) and not any(word in err for word in not_words), err


def test_starting_vector(cli, folder):
    cli("solve", folder / "A.mtx", "--rtol", "1e-12", "--out", folder / "x.npy", "--quiet")
    status, out, _ = cli("solve", folder / "A.mtx", "--x0", folder / "x.npy", "--json")
    assert status == 0 and json.loads(out)["iterations"] == 0


def test_several_right_hand_sides(cli, folder):
    B = np.random.default_rng(5).random((144, 3))
    np.save(folder / "B.npy", B)
    status, out, _ = cli("solve", folder / "A.mtx", "--rhs", folder / "B.npy", "--out", folder / "X.npy", "--report",
                         folder / "r.html")
    X, A = np.load(folder / "X.npy"), scipy.io.mmread(folder / "A.mtx").tocsr()
    assert status == 0 and "3 of 3" in out and X.shape == (144, 3)
    assert all(residual(A, X[:, k], B[:, k]) <= 1e-8 for k in range(3))
    assert len(json.loads(cli("solve", folder / "A.mtx", "--rhs", folder / "B.npy", "--json")[1])["columns"]) == 3


def test_complex_system(cli, folder):
    assert cli("solve", folder / "complex.mtx", "--out", folder / "x.npy")[0] == 0
    assert np.load(folder / "x.npy").dtype == np.complex128


def test_quiet(cli, folder):
    assert cli("solve", folder / "A.mtx", "--quiet") == (0, "", "")


def test_gallery(cli):
    status, out, _ = cli("solve", "gallery:poisson1d:50")
    assert status == 0 and "50 unknowns" in out


def test_duplicates_are_summed_and_said(cli, folder):
    (folder / "twice.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1\n1 1 1\n2 2 4\n")
    status, out, _ = cli("solve", folder / "twice.mtx", "--out", folder / "x.txt")
    assert status == 0 and "duplicate" in out and "summed" in out
    assert np.allclose(np.loadtxt(folder / "x.txt"), [0.5, 0.25])


def test_outputs_replace_old_ones_and_leave_nothing_else(cli, folder):
    before = {path.name for path in folder.iterdir()}
    for _ in range(2):
        assert cli("solve", folder / "A.mtx", "--out", folder / "x.npy", "--report", folder / "r.html")[0] == 0
    assert {path.name for path in folder.iterdir()} == before | {"x.npy", "r.html"}


def test_null_spaces_smoothers_and_intervals(cli, folder):
    import swell
    A = swell.gallery.neumann((12, 12))
    scipy.io.mmwrite(folder / "walls.mtx", sp.coo_matrix(A))
    b = np.zeros(144)
    b[0], b[-1] = 1, -1
    np.save(folder / "source.npy", b)
    np.save(folder / "ones.npy", np.ones(144))
    for nullspace in ("constants", folder / "ones.npy"):
        status, out, err = cli("solve", folder / "walls.mtx", "--rhs", folder / "source.npy", "--method", "cg", "--nullspace",
                               nullspace, "--smoother", "chebyshev", "--every", "5", "--scaling", "ruiz(p=1)")
        assert status == 0 and not err and "null space" in out and "smoother" in out
    status, out, err = cli("solve", folder / "walls.mtx", "--method", "cg", "--nullspace", "constants")
    assert status == 2 and "b is incompatible" in err


def test_a_name_that_is_no_utf8(cli, folder):
    """Linux gives such a name as text with lone surrogates, which no encoding takes."""
    name = os.fsdecode(os.fsencode(folder) + b"/A\xff.mtx")
    shutil.copy(folder / "A.mtx", name)
    sys.stdout.reconfigure(errors="replace")     # as the command line does with a process' own
    status, _, err = cli("solve", name, "--method", "cg", "--report", folder / "r.html", "--json")
    assert status == 0 and not err and "A?.mtx" in (folder / "r.html").read_text("utf-8")
    assert cli("info", name, "--picture", folder / "p.png")[0] == 0
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")


def test_a_report_shows_the_levels_of_algebraic_multigrid(cli, folder):
    for precond, shown in (("amg", True), ("ic0", False)):
        assert cli("solve", "gallery:poisson2d:2500", "--method", "cg", "--precond", precond, "--report",
                   folder / "r.html", "--quiet")[0] == 0
        assert ("Levels of algebraic multigrid" in (folder / "r.html").read_text("utf-8")) == shown


def test_advice_is_spelled_for_the_command_line(cli, folder):
    status, out, _ = cli("solve", "gallery:neumann2d:100", "--method", "gmres")               # b = 1 is incompatible
    assert status == 1 and "--nullspace constants" in out
    assert "nullspace=" not in out.replace("nullspace=swell.NullSpace", "")      # to project b, which only Python can do
    status, _, err = cli("solve", "gallery:saddle_point:100", "--method", "cg", "--scaling", "jacobi")
    assert status == 2 and "use --method direct, or" in err
