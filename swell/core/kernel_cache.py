"""Numba's cache on disk, for swell's kernels: it notices every edit, and a full disk ends no solve.

Numba looks a compiled function up by its own source file and bytecode. The machine code also holds the functions and
numbers that the file imports: the judge, the slots. The name of a kernel's cache files therefore ends in a digest of
swell's version, of the kernel's source file and of every file of swell that this one imports, directly or not. So an
upgrade or an edit compiles anew exactly the kernels that it may change, and two versions never read each other's code.

The first kernel that a process keeps for a source file removes that file's cache files of other digests. A process
that still uses them has loaded what it needs, or compiles it again.
"""
from __future__ import annotations

import contextlib
import functools
import glob
import hashlib
import logging
import os
import pathlib
import pickle
import re
import sys

from numba.core.caching import FunctionCache, IndexDataCacheFile

from swell.core.caches import PACKAGE, of_numba
from swell.core.log import tell

ROOT = os.path.dirname(PACKAGE)
IMPORT = re.compile(rb"^from (swell[\w.]*) import (\([^)]*\)|.+)", re.MULTILINE)
DAMAGED = EOFError, pickle.UnpicklingError


@functools.cache
def imports(path: str) -> tuple:
    """Return (the digest of a source file, the source files of swell that it imports)."""
    try:
        with open(path, "rb") as stream:
            content = stream.read()
    except FileNotFoundError:                    # an application that was frozen without sources
        content = b""
    return hashlib.sha256(content).digest(), tuple(
        file for module, names in IMPORT.findall(content) for file in files(module, names))


@functools.cache
def files(module: bytes, names: bytes) -> tuple:
    """Return the source files of ``from module import names``: the module, or modules in a folder."""
    path = os.path.join(ROOT, *module.decode().split("."))
    if os.path.isdir(path):
        return tuple(file for name in re.findall(r"\w+", names.decode())
                     if os.path.isfile(file := os.path.join(path, f"{name}.py")))
    return (f"{path}.py",)


def sources(path: str) -> set:
    """Return the source file ``path`` and the files of swell that it imports, directly or not."""
    found, left = set(), [path]
    while left:
        file = left.pop()
        if file not in found:
            found.add(file)
            left += imports(file)[1]
    return found


@functools.cache
def digest(path: str) -> str:
    """Return 16 hexadecimal digits for swell's version and the content of `sources` (path)."""
    made = hashlib.sha256(sys.modules["swell"].__version__.encode())
    for file in sorted(sources(path)):
        made.update(imports(file)[0])
    return made.hexdigest()[:16]


@functools.cache
def remove_others(folder: str, stem: str, mark: str):
    """Remove the cache files of the source file ``stem`` whose names do not end in ``mark``; once a process."""
    for path in pathlib.Path(folder).glob(f"{glob.escape(stem)}.*.nb[ic]"):
        if f"-{mark}." not in path.name:
            path.unlink(missing_ok=True)


@functools.cache
def tell_once(error: str):
    """Tell the user that compiled kernels cannot be kept, for the reason ``error``; once a process."""
    tell(logging.WARNING, f"compiled kernels cannot be kept in {of_numba()} ({error}): every process compiles "
                          "them anew; free some space there, or name another folder with NUMBA_CACHE_DIR")


class KernelCache(FunctionCache):
    """The cache files of one kernel."""

    def __init__(self, function):
        super().__init__(function)
        source = os.path.abspath(function.__code__.co_filename)
        self._stem, self._mark = os.path.splitext(os.path.basename(source))[0], digest(source)
        self._cache_file = IndexDataCacheFile(self._cache_path, f"{self._impl.filename_base}-{self._mark}",
                                              self._impl.locator.get_source_stamp())

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except OSError:                          # not readable: compile
            return None
        except DAMAGED:                          # cut off, as by a loss of power: compile, and write it again
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig, data):
        try:
            super().save_overload(sig, data)
            remove_others(self._cache_path, self._stem, self._mark)
        except OSError as error:                 # a full disk, a quota: the kernel is compiled, but not kept
            tell_once(error.strerror or str(error))


def keep(dispatcher):
    """Give ``dispatcher``, a function compiled by Numba, its cache; none if no folder can be written."""
    with contextlib.suppress(RuntimeError):      # "no locator available"; `caches` has told the user
        dispatcher._cache = KernelCache(dispatcher.py_func)
