"""The native library of CPU kernels, ``swell/_native``: one from other sources is refused, and so is none.

``core/native`` has the C++ that makes kernels callable; the kernels lie in the folders ``kernels``.
"""
from __future__ import annotations

import functools
import pathlib
import runpy
from types import SimpleNamespace

REMEDY = "build it with a C++ compiler: pip install -e . in the clone (or make demo), or pip install ."

try:
    from swell import _native
except ImportError as error:
    raise ImportError(f"swell's native library of CPU kernels cannot be loaded ({error}): {REMEDY}") from None


def require_current():
    """Raise ImportError if this is a clone, and its sources are not those that the library was built from."""
    core = pathlib.Path(__file__).parent
    sources = core / "native" / "sources.py"
    if not sources.exists() or not (core.parents[1] / "CMakeLists.txt").exists():
        return
    found = runpy.run_path(str(sources))["digest"]()
    if found != _native.digest:
        raise ImportError(f"swell's native library of CPU kernels was built from other sources ({_native.digest}, "
                          f"expected {found}): {REMEDY}")


require_current()

files = {}              # (package, stem) → its namespace of kernels, once asked for


def is_native(package, stem) -> bool:
    """True if the library has the file ``<package>/kernels/<stem>.cpp``."""
    return any(name.startswith(f"{package}.{stem}.") for name in _native.names())


@functools.cache
def native_kernels(package, stem):
    """Return the native kernels of the file ``<package>/kernels/<stem>.cpp``, as a namespace of functions.

    Its ``KERNELS`` names those whose first argument is the judge's state."""
    prefix = f"{package}.{stem}."
    found = {name.removeprefix(prefix): _native.kernel(name) for name in _native.names() if name.startswith(prefix)}
    stateful = tuple(name for name, kernel in found.items() if kernel.__self__.takes_state)
    files[package, stem] = SimpleNamespace(**found, KERNELS=stateful)
    return files[package, stem]
