"""The cache folder of GPU kernels: a temporary one if CuPy's, in the user's home, is not writable, as in many
containers, where CuPy would raise an error.
"""
from __future__ import annotations

import logging
import os

from swell.core.log import tell


def of_cupy() -> str:
    """The folder in which CuPy keeps compiled kernels."""
    return os.path.expanduser(os.environ.get("CUPY_CACHE_DIR") or "~/.cupy/kernel_cache")


def for_cupy():
    """Set CuPy's cache to a temporary folder if its own cannot be written. CuPy reads it at each compilation."""
    if not writable(of_cupy()):
        _name_temporary("CUPY_CACHE_DIR")


def writable(folder: str) -> bool:
    """True if files can be written to a folder, or, if it does not exist, to its nearest existing parent."""
    folder = os.path.abspath(os.path.expanduser(folder))
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    probe = os.path.join(folder, f".swell-{os.getpid()}")
    try:                                         # permissions alone do not tell: a file system may be read-only
        os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.unlink(probe)
    except FileExistsError:                      # the probe of another thread, or of a process that was killed
        return True
    except OSError:
        return False
    return True


def _name_temporary(variable):
    """Set the environment variable ``variable`` to a temporary folder, and tell the user.

    Child processes inherit it. If no folder can be written, the user is told, and that is all."""
    import tempfile
    try:
        folder = _own_folder(tempfile.gettempdir())
    except OSError as error:
        tell(logging.WARNING, f"no folder for compiled kernels can be written ({error}); name one with {variable}")
        return
    os.environ[variable] = os.path.join(folder, variable.split("_")[0].lower())
    tell(logging.WARNING, f"compiled kernels are kept in {os.environ[variable]}, since no usual folder can be written; "
                          f"name another with {variable}")


def _own_folder(parent) -> str:
    """Return a folder in ``parent`` that only this user can write to, since its files are executed; made if missing.

    All processes of the user get the same folder, and so share compiled kernels."""
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
        status = os.lstat(folder)
    with tempfile.TemporaryFile(dir=parent) as probe:            # its owner is this user, as this file system sees it
        same = os.fstat(probe.fileno()).st_uid == status.st_uid
    if same and stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o022:
        return folder
    return tempfile.mkdtemp(prefix="swell-", dir=parent)
