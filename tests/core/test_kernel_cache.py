"""Kernels on disk: an edit of what a kernel imports compiles it anew; a disk that is full or damaged ends no solve."""
from __future__ import annotations

import ast
import errno
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from tests.support import copies

import swell
from swell.core import kernel_cache
from swell.core.compiled import njit

PACKAGE = pathlib.Path(swell.__file__).parent
KERNELS = sorted(path for path in PACKAGE.rglob("kernels/*.py"))

HELPER = "from swell.core.compiled import helper\n\n\n@helper\ndef number():\n    return {}\n"
SLOTS = "from swell.core.slots import slots\n\n\n@slots\nclass Place:\n    AT = {}\n"
KERNEL = """
from swell.core.compiled import parallel
from swell.core.kernels.helper_of_a_test import number
from swell.core.slots_of_a_test import Place

@parallel
def kernel():
    return 10 * number() + Place.AT
"""
RUN = """
import swell
from swell.core.compilation import compilations, count_numba
count_numba()
from swell.core.kernels.kernel_of_a_test import kernel
print(kernel.serial(), compilations())
"""


@pytest.fixture
def run(tmp_path):
    """A copy of swell with a kernel that imports a helper and a slot; ``run(helper, slot)`` writes these two with an
    unchanged size and time, and returns the kernel's value, whether it was compiled, and the cache's index files."""
    core = tmp_path / "swell" / "core"
    shutil.copytree(PACKAGE, tmp_path / "swell", ignore=shutil.ignore_patterns("__pycache__", "*.cu", "*.npz"))
    copies.go_first(tmp_path)
    (core / "kernels" / "kernel_of_a_test.py").write_text(KERNEL)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
                   "PYTHONDONTWRITEBYTECODE": "1"}

    def run(helper, slot):
        for path, text in ((core / "kernels" / "helper_of_a_test.py", HELPER.format(helper)),
                           (core / "slots_of_a_test.py", SLOTS.format(slot))):
            path.write_text(text)
            os.utime(path, (1e9, 1e9))
        done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, cwd=tmp_path,
                              env=environment)
        assert done.returncode == 0, done.stderr
        value, compiled = map(int, done.stdout.split())
        return value, compiled > 0, sorted(path.name for path in (tmp_path / "kept").rglob("kernel_of_a_test*.nbi"))
    return run


def test_an_edit_of_what_a_kernel_imports_compiles_it_anew(run):
    value, compiled, first = run(1, 2)
    assert (value, compiled, len(first)) == (12, True, 1)
    assert run(1, 2) == (12, False, first)
    value, compiled, second = run(3, 2)          # the helper
    assert (value, compiled) == (32, True)
    assert len(second) == 1 and second != first  # the old version's files have gone
    value, compiled, third = run(3, 4)           # the slot
    assert (value, compiled) == (34, True)
    assert len(third) == 1 and third not in (first, second)


def test_kernels_import_where_their_digest_looks():
    """The digest reads lines that begin with "from swell"; imports of another form would escape it."""
    for path in KERNELS:
        seen = {name for module, names in kernel_cache.IMPORT.findall(path.read_bytes())
                for name in kernel_cache.files(module, names)}
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("swell") for alias in node.names), path
            if isinstance(node, ast.ImportFrom):
                assert not node.level, path
                if node.module.split(".")[0] == "swell":
                    names = ", ".join(alias.name for alias in node.names)
                    assert seen.issuperset(kernel_cache.files(node.module.encode(), names.encode())), path


def test_kernels_have_swells_cache():
    """Numba's own ``njit`` would not notice an edit of another file."""
    for path in KERNELS:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "numba":
                assert "njit" not in {alias.name for alias in node.names}, path


def test_the_digest_follows_imports():
    names = {os.path.relpath(file, PACKAGE) for file in
             kernel_cache.sources(str(PACKAGE / "batch" / "kernels" / "cg.py"))}
    assert {"batch/kernels/cg.py", "batch/kernels/system.py", "batch/slots.py", "core/compiled.py"} <= {
        name.replace(os.sep, "/") for name in names}


# -- a disk that is full, or was cut off -------------------------------------------------------------------------------

@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    kernel_cache.tell_once.cache_clear()
    return tmp_path


def made():
    """A new kernel in Numba's folder."""
    @njit(cache=True)
    def kernel(x):
        return x + 1
    return kernel


def test_a_full_disk_keeps_nothing_and_ends_nothing(folder, monkeypatch, capsys):
    monkeypatch.setattr("logging.root.handlers", [])             # pytest's own would take the line
    monkeypatch.setattr(kernel_cache, "of_numba", lambda: "FOLDER")
    write, writes = kernel_cache.IndexDataCacheFile._dump, []

    def full(self, content):
        writes.append(1)
        if len(writes) in failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(self, content)
    monkeypatch.setattr(kernel_cache.IndexDataCacheFile, "_dump", full)
    for failing in ({1}, {2}):                   # the index, the machine code
        writes.clear()
        assert made()(2) == 3 and made()(2) == 3
    assert capsys.readouterr().err.splitlines() == [
        "swell: compiled kernels cannot be kept in FOLDER (No space left on device): every process "
        "compiles them anew; free some space there, or name another folder with NUMBA_CACHE_DIR"]


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_file_that_was_cut_off_is_written_again(folder, ending):
    assert made()(2) == 3
    path, = folder.rglob(f"*.{ending}")
    path.write_bytes(b"")
    assert made()(2) == 3 and path.stat().st_size > 0
    again = made()
    assert again(2) == 3 and sum(again.stats.cache_hits.values()) == 1


def test_where_no_folder_can_be_written_a_kernel_is_not_kept(monkeypatch):
    def nowhere(self, function):
        raise RuntimeError("cannot cache function: no locator available")
    monkeypatch.setattr(kernel_cache.KernelCache, "__init__", nowhere)
    assert made()(2) == 3
