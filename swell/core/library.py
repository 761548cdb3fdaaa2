"""The native library of CPU kernels: ``swell/_native_v2`` and ``_native_v3`` for two levels of x86-64,
``swell/_native`` for other processors. One that was built from other sources is refused, and so is none.

The levels differ in speed alone. A wheel has both; an install from source builds the machine's own. ``SWELL_LEVEL=v2``
names one. ``core/native`` has the C++ that makes kernels callable; the kernels lie in the folders ``kernels``.
"""
from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import pathlib
import runpy
from types import SimpleNamespace

REMEDY = "build it with a C++ compiler: pip install -e . in the clone (or make demo), or pip install ."
LEVELS = "v3", "v2"     # of x86-64, the fastest first


def level() -> str:
    """Return the level of x86-64 whose library this process uses, such as "v3"; "" on another processor.

    Raises
    ------
    ImportError
        If there is no library that this processor can run, or not the one that ``SWELL_LEVEL`` names.
    """
    built = [name for name in LEVELS if importlib.util.find_spec(f"swell._native_{name}")]
    if not built:
        return ""
    from swell._native_probe import level as highest
    usable = [name for name in built if int(name[1:]) <= highest]
    named = os.environ.get("SWELL_LEVEL") or next(iter(usable), None)
    if named in usable:
        return named
    wanted = f"SWELL_LEVEL={named}: expected one of" if named else "this processor needs another than"
    raise ImportError(f"{wanted} {', '.join(usable or built)}, for which there are native libraries of CPU kernels "
                      f"here; for another one {REMEDY}")


def _load():
    name = "_native_" + suffix if (suffix := level()) else "_native"
    try:
        return importlib.import_module(f"swell.{name}")
    except ImportError as error:
        raise ImportError(f"swell's native library of CPU kernels cannot be loaded ({error}): {REMEDY}") from None


_native = _load()
owner = _native.owner       # of a kernel that was pickled


def require_current():
    """Raise ImportError if this is a clone, and the library was built from other sources."""
    core = pathlib.Path(__file__).parent
    sources = core / "native" / "sources.py"
    if not sources.exists() or not (core.parents[1] / "CMakeLists.txt").exists():
        return
    digest = runpy.run_path(str(sources))["digest"]()
    if digest != _native.digest:
        raise ImportError(f"swell's native library of CPU kernels was built from other sources ({_native.digest}, "
                          f"expected {digest}): {REMEDY}")


require_current()

files = {}              # (package, stem) → its namespace of kernels, once asked for


@functools.cache
def native_kernels(package, stem):
    """Return the native kernels of the file ``<package>/kernels/<stem>.cpp``, as a namespace of functions.

    Its ``KERNELS`` names the kernels whose first argument is the judge's state."""
    prefix = f"{package}.{stem}."
    kernels = {name.removeprefix(prefix): _native.kernel(name) for name in _native.names() if name.startswith(prefix)}
    stateful = tuple(name for name, kernel in kernels.items() if kernel.__self__.takes_state)
    files[package, stem] = SimpleNamespace(**kernels, KERNELS=stateful)
    return files[package, stem]
