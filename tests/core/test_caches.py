"""Compiled GPU kernels find a folder where the home cannot be written, as in many containers."""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from swell.core import caches

LINE = "swell: compiled kernels are kept in "
TAKE = "import os\nfrom swell.core import caches\ncaches.for_cupy()\nprint(os.environ.get('CUPY_CACHE_DIR', ''))"


@pytest.fixture
def start(tmp_path):
    """Run a program with a home that is no folder; (what it prints, its stderr)."""
    inherited = {name: value for name, value in os.environ.items() if "CACHE" not in name}
    fixed = {"HOME": "/dev/null", "TMPDIR": str(tmp_path), "LOGNAME": "somebody"}

    def run(program, **environment):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path,
                              env={**inherited, **fixed, **environment})
        assert done.returncode == 0, done.stderr
        return done.stdout.strip(), done.stderr
    return run


def test_a_temporary_folder_is_taken_and_named_once(start, tmp_path):
    folder = f"{tmp_path}/swell-somebody/cupy"
    cache, err = start(TAKE)
    assert cache == folder and err.startswith(LINE + folder) and err.count("\n") == 1
    assert os.stat(tmp_path / "swell-somebody").st_mode & 0o777 == 0o700
    program = f"{TAKE}\nimport subprocess, sys\nsubprocess.run([sys.executable, '-c', {TAKE!r}], check=True)"
    cache, err = start(program)                  # a process that was started from there says nothing more
    assert cache == f"{folder}\n{folder}" and err.count(LINE) == 1


@pytest.mark.parametrize("name", ["CUPY_CACHE_DIR", "HOME"])
def test_a_folder_that_can_be_written_is_left_to_cupy(start, tmp_path, name):
    (tmp_path / "own").mkdir()
    cache, err = start(TAKE, **{name: str(tmp_path / "own")})
    assert not err and cache == (str(tmp_path / "own") if name == "CUPY_CACHE_DIR" else "")


@pytest.mark.parametrize("spoil", [lambda path: path.mkdir(mode=0o777) or path.chmod(0o777),
                                   lambda path: path.symlink_to("/tmp"), lambda path: path.touch()])
def test_a_folder_that_others_could_write_is_not_trusted(start, tmp_path, spoil):
    """What lies in a cache is run."""
    spoil(tmp_path / "swell-somebody")
    cache, err = start(TAKE)
    assert pathlib.Path(cache).parents[1] == tmp_path and "swell-somebody" not in cache
    assert os.stat(pathlib.Path(cache).parent).st_mode & 0o777 == 0o700


def test_where_nothing_at_all_can_be_written(monkeypatch, capsys):
    def nowhere():
        raise FileNotFoundError("No usable temporary directory found")
    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    monkeypatch.setattr(caches, "writable", lambda folder: False)
    monkeypatch.setattr("logging.root.handlers", [])             # pytest's own would take the line
    monkeypatch.setenv("CUPY_CACHE_DIR", "/dev/null/x")
    caches.for_cupy()
    assert "no folder for compiled kernels can be written (No usable" in capsys.readouterr().err


def test_a_folder_of_the_user(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("logging.root.handlers", [])             # pytest's own would take the line
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "own" / "deep"))
    caches.for_cupy()
    assert not capsys.readouterr().err and not (tmp_path / "own").exists()       # made by CuPy, when it compiles
    monkeypatch.setenv("CUPY_CACHE_DIR", "/dev/null/x")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    for _ in range(2):
        caches.for_cupy()
    assert pathlib.Path(os.environ["CUPY_CACHE_DIR"]).parents[1] == tmp_path
    assert capsys.readouterr().err.count(LINE) == 1
