"""Compiled kernels find a folder where neither the package nor the home can be written, as in many containers."""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import swell
from tests.support import copies
from swell.core import caches

PACKAGE = pathlib.Path(swell.__file__).parent
LINE = "swell: compiled kernels are kept in "
IMPORT = "import swell, numba\nfrom swell.core.kernels import vector\nprint(numba.config.CACHE_DIR)"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package whose caches cannot be made, by root neither: files lie in their places."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(PACKAGE, folder / "swell", ignore=shutil.ignore_patterns("__pycache__", "*.json"))
    copies.go_first(folder)
    for kernels in (folder / "swell").rglob("kernels"):
        (kernels / "__pycache__").touch()
    return folder


@pytest.fixture
def start(package, tmp_path):
    """Run a program there, with a home that is no folder; (what it prints, its stderr)."""
    inherited = {name: value for name, value in os.environ.items() if "CACHE" not in name}
    fixed = {"PYTHONPATH": str(package), "HOME": "/dev/null", "TMPDIR": str(tmp_path), "LOGNAME": "somebody"}

    def run(program=IMPORT, **environment):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path,
                              env={**inherited, **fixed, **environment})
        assert done.returncode == 0, done.stderr
        return done.stdout.strip(), done.stderr
    return run


def test_a_temporary_folder_is_taken_and_named_once(start, tmp_path):
    folder = f"{tmp_path}/swell-somebody/numba"
    for program in (IMPORT, f"import numba\n{IMPORT}"):
        cache, err = start(program)
        assert cache == folder and err.startswith(LINE + folder) and err.count("\n") == 1
    assert os.stat(tmp_path / "swell-somebody").st_mode & 0o777 == 0o700
    program = f"import swell, subprocess, sys\nsubprocess.run([sys.executable, '-c', {IMPORT!r}], check=True)"
    cache, err = start(program)                  # a process that was started from there says nothing more
    assert cache == folder and err.count(LINE) == 1


@pytest.mark.parametrize("home", ["/proc", "/dev/null"])
def test_every_kernel_can_be_kept_there(start, home):
    """Numba looks for the folder where a function is declared."""
    names = sorted(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
                   for path in PACKAGE.rglob("kernels/*.py") if path.stem != "__init__")
    _, err = start(f"import importlib\nfor name in {names}:\n    importlib.import_module(name)", HOME=home)
    assert len(names) > 30 and err.startswith(LINE) and err.count("\n") == 1


@pytest.mark.slow
def test_the_command_line_works_there(start):
    _, err = start("from swell.cli import main\nimport sys\nsys.exit(main(['solve', 'gallery:poisson1d:9', '--method', "
                   "'cg', '--scaling', 'none', '--format', 'csr', '--quiet']))")
    assert err.startswith(LINE) and err.count("\n") == 1


@pytest.mark.parametrize("name, variable", [("NUMBA_CACHE_DIR", "NUMBA_CACHE_DIR"), ("XDG_CACHE_HOME", ""), ("HOME", "")])
def test_a_folder_that_can_be_written_is_left_to_numba(start, tmp_path, name, variable):
    (tmp_path / "own").mkdir()
    cache, err = start(**{name: str(tmp_path / "own")})
    assert not err and cache == (str(tmp_path / "own") if variable else "")


@pytest.mark.parametrize("spoil", [lambda path: path.mkdir(mode=0o777) or path.chmod(0o777),
                                   lambda path: path.symlink_to("/tmp"), lambda path: path.touch()])
def test_a_folder_that_others_could_write_is_not_trusted(start, tmp_path, spoil):
    """What lies in a cache is run."""
    spoil(tmp_path / "swell-somebody")
    cache, err = start()
    assert pathlib.Path(cache).parents[1] == tmp_path and "swell-somebody" not in cache
    assert os.stat(pathlib.Path(cache).parent).st_mode & 0o777 == 0o700


def test_where_nothing_at_all_can_be_written(monkeypatch, capsys):
    def nowhere():
        raise FileNotFoundError("No usable temporary directory found")
    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    monkeypatch.setattr(caches, "writable", lambda folder: False)
    monkeypatch.setattr("logging.root.handlers", [])             # pytest's own would take the line
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null/x")
    caches.for_numba()
    assert "no folder for compiled kernels can be written (No usable" in capsys.readouterr().err


def test_cupy_is_given_a_folder_too(tmp_path, monkeypatch, capsys):
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
