"""benchmarks/eight_gpus.py: its parts fit into twenty minutes and a GPU's memory, none costs another, and it runs."""
from __future__ import annotations

import importlib.util
import os
import pathlib
import sys
import time

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "benchmarks"
SHORT = 1200            # seconds of machine time
MEMORY = 139            # GiB of an H200
BYTES_A_ROW = 745       # of multigrid's setup at most: 200 million rows fitted into MEMORY, notes/multigrid_ranks.md


@pytest.fixture(scope="module")
def eight():
    spec = importlib.util.spec_from_file_location("eight_gpus", FOLDER / "eight_gpus.py")
    module = sys.modules["eight_gpus"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["eight_gpus"]


def after(words, option):
    return words[words.index(option) + 1]


def test_the_usual_parts_fit(eight):
    assert sum(eight.PARTS[name].limit for name in eight.USUAL) <= SHORT
    for part in eight.PARTS.values():
        assert part.seconds < part.limit and part.memory < MEMORY


@pytest.mark.parametrize("gpus", [1, 2, 4, 6, 8])
def test_multigrids_rows_fit(eight, gpus, tmp_path, mpi):
    run = eight.Run(tmp_path, gpus)
    for name in ("poisson", "poisson-weak"):
        for words in eight.PARTS[name].commands(run):
            rows = int(after(words, "--planes")) * int(after(words, "--side"))**2 / int(after(words, "-n"))
            assert rows * BYTES_A_ROW / 2**30 <= eight.PARTS[name].memory
    assert int(after(words, "-n")) == gpus                       # the last is on all


def test_what_eight_gpus_run(eight, tmp_path, mpi):
    run = eight.Run(tmp_path, 8, petsc="mpiexec -n {ranks} ./petsc_bjacobi", cabin=tmp_path)
    commands = {name: part.commands(run) for name, part in eight.PARTS.items()}
    (billion,) = commands["poisson"]
    assert int(after(billion, "--planes")) * int(after(billion, "--side"))**2 == 10**9
    assert [after(words, "-n") for words in commands["poisson-weak"]] == ["1", "2", "4", "8"]
    assert after(commands["block"][0], "--ranks") == after(commands["block-weak"][0], "--ranks") == "1,2,4,8"
    assert after(commands["block"][0], "--petsc-ranks") == after(commands["block-large"][0], "--petsc-ranks") == "8"
    assert [int(words[-5 if "--iterations" in words else 0])**3 for words in commands["flow"]] == [
        64_000_000, 8_000_000, 8_000_000]


def test_a_part_that_ends_late_or_fails_costs_no_other(eight, tmp_path, monkeypatch):
    """A child of the command is ended too: nobody writes to its pipe any more."""
    monkeypatch.setattr(eight, "GRACE", 0.5)
    python, pipe = sys.executable, tmp_path / "pipe"
    os.mkfifo(pipe)
    heard = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    child = f"import os, time; os.write(os.open({str(pipe)!r}, os.O_WRONLY), b'x'); time.sleep(600)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    _, late = eight.ran("late", [[python, "-c", parent], [python, "-c", "1"]], 3, tmp_path)
    assert late == ["ended after 3 s", "not begun"] and os.read(heard, 1) == b"x"
    for _ in range(1000):                        # a signal takes a moment
        try:
            assert os.read(heard, 1) == b""      # the end of the file: all writers are gone
            break
        except BlockingIOError:
            time.sleep(0.01)
    else:
        pytest.fail("the child lives on")
    os.close(heard)
    _, states = eight.ran("mixed", [[python, "-c", "raise SystemExit(3)"], [python, "-c", "print('here')"]], 60,
                          tmp_path)
    assert states == ["failed with status 3", "done"]
    assert "here" in (tmp_path / "mixed.txt").read_text()


def test_a_rehearsal(eight, tmp_path, mpi, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["eight_gpus.py", str(tmp_path), "cabin", "poisson", "--gpus", "2", "--rehearse"])
    monkeypatch.setenv("SWELL_NUM_THREADS", "1")
    assert eight.main() == 0, capsys.readouterr().out + "".join(p.read_text() for p in tmp_path.glob("*.txt"))
    assert (tmp_path / "cabin.txt").read_text().count("converged True") == 4
    assert "600 rows on 2 ranks" in (tmp_path / "poisson.txt").read_text()


@pytest.mark.parametrize("arguments, words", [(["other"], "PART other: expected some of check"),
                                              (["--gpus", "0"], "expected a positive number")])
def test_wrong_arguments(eight, tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.setattr(sys, "argv", ["eight_gpus.py", str(tmp_path), *arguments])
    with pytest.raises(SystemExit):
        eight.main()
    assert words in capsys.readouterr().err


def test_a_part_without_its_files_is_an_error_only_where_it_was_named(eight, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(eight, "USUAL", ["cabin"])
    for parts, status in ((["cabin"], 1), ([], 0)):
        monkeypatch.setattr(sys, "argv", ["eight_gpus.py", str(tmp_path), *parts])
        assert eight.main() == status
        assert "left out: name the folder by --cabin" in capsys.readouterr().out
