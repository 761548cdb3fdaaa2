"""Folders for compiled kernels: temporary ones where the usual ones cannot be written, as in many containers.

Numba keeps compiled functions beside their source, else in the user's cache folder, and raises an error where it can
keep them in neither. CuPy keeps them in the user's home, and does the same.
"""
from __future__ import annotations

import os
import sys

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BESIDE = os.path.join(PACKAGE, "core", "kernels", "__pycache__")
OF_THE_USER = {"darwin": "~/Library/Caches", "win32": "~/AppData/Local"}         # elsewhere as XDG says


def of_numba() -> str:
    """The folder in which Numba keeps compiled kernels; the package itself where they lie beside their source."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    if named and (writable(named) or not writable(BESIDE)):
        return named
    return PACKAGE if writable(BESIDE) else os.path.expanduser(_of_user())


def of_cupy() -> str:
    """The same of CuPy."""
    return os.path.expanduser(os.environ.get("CUPY_CACHE_DIR") or "~/.cupy/kernel_cache")


def _of_user():
    folder = OF_THE_USER.get(sys.platform) or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return os.path.join(folder, "numba")


def for_numba():
    """Name a temporary folder to Numba if it could write to none of its own; before Numba compiles anything."""
    own = os.environ.get("NUMBA_CACHE_DIR") or BESIDE
    if writable(own) or writable(BESIDE) or writable(_of_user()):
        return
    _name_temporary("NUMBA_CACHE_DIR")
    if "numba.core.config" in sys.modules:       # it has read the environment already
        sys.modules["numba.core.config"].CACHE_DIR = os.environ.get("NUMBA_CACHE_DIR", "")


def for_cupy():
    """The same for CuPy, which looks at its variable whenever it compiles."""
    if not writable(of_cupy()):
        _name_temporary("CUPY_CACHE_DIR")


def writable(folder: str) -> bool:
    """True if files can be written to a folder, which may have to be made first."""
    folder = os.path.abspath(os.path.expanduser(folder))
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    probe = os.path.join(folder, f".swell-{os.getpid()}")
    try:                                         # permissions alone do not tell: a file system may be read-only
        os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.unlink(probe)
    except FileExistsError:                      # a thread's, or what an ended process left
        return True
    except OSError:
        return False
    return True


def _name_temporary(variable):
    """Let a variable name a temporary folder, and say so on stderr; processes started from here inherit both."""
    import tempfile
    try:
        folder = _own_folder(tempfile.gettempdir())
    except OSError as error:
        print(f"swell: no folder for compiled kernels can be written ({error}); name one with {variable}",
              file=sys.stderr)
        return
    os.environ[variable] = os.path.join(folder, variable.split("_")[0].lower())
    print(f"swell: compiled kernels are kept in {os.environ[variable]}, since no usual folder can be written; name "
          f"another with {variable}", file=sys.stderr)


def _own_folder(parent) -> str:
    """A folder of this user alone, since what lies in it will be run; the same for each process, which then finds what
    others compiled."""
    import getpass
    import stat
    import tempfile
    try:
        user = os.path.basename(getpass.getuser())
    except (ImportError, KeyError, OSError):     # a user without a name, as in containers
        user = "user"
    folder = os.path.join(parent, f"swell-{user}")
    try:
        os.mkdir(folder, 0o700)
        return folder
    except FileExistsError:
        found = os.lstat(folder)
    with tempfile.TemporaryFile(dir=parent) as mine:             # who am I, in the words of this file system?
        same = os.fstat(mine.fileno()).st_uid == found.st_uid
    if same and stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o022:
        return folder
    return tempfile.mkdtemp(prefix="swell-", dir=parent)
