"""Output of the commands: checks of paths before the work begins, and strict JSON."""
from __future__ import annotations

import json
import math
import os
import stat

from swell.core.errors import InputError

VECTORS = (".npy", ".mtx", ".txt")


def check_paths(paths: dict, sources=(), endings=None):
    """Check before the solve that the output files can be written.

    Parameters
    ----------
    paths : dict of str to (str or None)
        From an option to the file that it names, or None.
    sources : sequence of (str or None)
        Input files, as FILE or FILE:NAME, which no output may replace.
    endings : dict of str to tuple of str, optional
        From an option to the extensions that its file may have.

    Raises
    ------
    InputError
        For a wrong extension, a folder that is missing or not writable, an input file, or a file named twice.
    """
    from swell.cli.source import file_and_name
    from swell.io.files import as_path, status
    read = {os.path.realpath(as_path(file_and_name(source)[0])) for source in sources if source}
    taken = {}                                   # realpath, because Path.resolve raises an error for a circle of links
    for option, name in paths.items():
        if name is None:
            continue
        path = as_path(name)
        wanted = (endings or {}).get(option)
        if wanted and path.suffix.lower() not in wanted:
            raise InputError(f"{option} {name}: the extension is {path.suffix or 'missing'}, expected "
                             f"{' or '.join(wanted)}")
        found, folder = status(path), status(path.parent)
        if found and stat.S_ISDIR(found.st_mode):
            raise InputError(f"{option} {name}: this is a folder; name a file in it")
        if not (folder and stat.S_ISDIR(folder.st_mode)):
            raise InputError(f"{option} {name}: there is no folder {path.parent}; make it first")
        if not os.access(path.parent, os.W_OK):
            raise InputError(f"{option} {name}: the folder {path.parent} is not writable; choose another")
        place = os.path.realpath(path)
        if place in read:
            raise InputError(f"{option} {name}: this would replace a file that is read; choose another name")
        if place in taken:
            raise InputError(f"{option} and {taken[place]} both name {name}; choose two names")
        taken[place] = option


def readable(name: str) -> str:
    """Return a file's name for a report or a picture: bytes that are not UTF-8 become question marks."""
    return name.encode("utf-8", "replace").decode()


def as_json(data) -> str:
    """Return data as strict JSON text; NaN and Inf, which JSON lacks, become null."""
    return json.dumps(_plain(data), ensure_ascii=False, allow_nan=False)


def _plain(value):
    """Return a value converted to JSON's types: dict, list, str, int, finite float, bool, None."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):                   # a NumPy scalar
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
