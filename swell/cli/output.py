"""Output of the commands: checks of paths before the work begins, advice in the shell's spelling, and strict JSON."""
from __future__ import annotations

import json
import math
import os
import re
import shlex
import stat

from swell.core.errors import InputError

SENTENCES = ("message", "notes", "advice", "why", "singular", "refused")     # keys of JSON whose values are sentences
VECTORS = (".npy", ".mtx", ".txt")
CALL = r"\w[\w.]*\((?:[^()]|\([^()]*\))*\)"                    # as CG(between=5), whose fields are no options
PROJECTED = r"nullspace=swell\.NullSpace\('(\w+)', project=True\)"
IN_PYTHON = r"(?<!in Python )\bswell\.\w[\w.]*\((?:[^()]|\([^()]*\))*\)(?! in Python)"
BARE = r"\b(raise|relax|wider|smaller|another) (maxiter|rtol|dtype|x0|precond)\b(?!=)"       # advice with a bare name
OPTION = r"""(?<![\w.-])([a-z]\w*)=('[^']*'(?:(?:,? or |, )'[^']*')*|"[^"]*"|[-+]?\w[-+.\w]*\b|)(?!\.?\w|[-+(\[{:'"])"""


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
        attributes, folder = status(path), status(path.parent)
        if attributes and stat.S_ISDIR(attributes.st_mode):
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


def for_shell(text, options) -> str:
    """Return ``text`` with the advice in it spelled as options of the command: method='direct' as --method direct.

    ``rtol=x: expected`` and the like, which repeat the input, stay as they are, and so do settings without an option.
    Functions of swell that only Python can call are said to be so.

    Parameters
    ----------
    text : object
        A message or a result.
    options : container of str
        The names of the command's options, as ``vars`` of the parsed arguments has them.

    Examples
    --------
    >>> for_shell("use method='cg' or 'gmres(restart=50)', or CG(every=5) with rtol=1e-5", ("every", "method", "rtol"))
    "use --method cg or 'gmres(restart=50)', or CG(every=5) with --rtol 1e-5"
    >>> for_shell("relax rtol, or use swell.lstsq(A, b)", ("rtol",))
    'relax --rtol, or use swell.lstsq(A, b) in Python'
    """
    def spelled(match):
        name, value = match[1], match[2]
        if name not in options:                  # a call, or no option
            return match[0]
        value = re.sub("""'([^']*)'|"([^"]*)\"""", lambda quoted: shlex.quote(quoted[1] or quoted[2] or ""), value)
        return f"--{name.replace('_', '-')} {value}".rstrip()
    text = str(text).replace("precond (or M)", "precond")
    if "project" in options:
        text = re.sub(PROJECTED, r"nullspace='\1' --project", text).replace("NullSpace(..., project=True)", "--project")
    text = re.sub(IN_PYTHON, r"\g<0> in Python", text)
    text = re.sub(BARE, lambda match: f"{match[1]} --{match[2]}" if match[2] in options else match[0], text)
    return re.sub(f"{CALL}|{OPTION}", spelled, text)


def _spelled(data, options):
    """Return ``data``, plain types for JSON, with the sentences in it spelled as `for_shell` does."""
    if isinstance(data, dict):
        return {key: _sentences(item, options) if key in SENTENCES and item is not None else _spelled(item, options)
                for key, item in data.items()}
    return [_spelled(item, options) for item in data] if isinstance(data, list) else data


def _sentences(item, options):
    """Return a sentence, or a list of them, as `for_shell` spells it."""
    return [for_shell(one, options) for one in item] if isinstance(item, (list, tuple)) else for_shell(item, options)


def readable(name: str) -> str:
    """Return a file's name for a report or a picture: bytes that are not UTF-8 become question marks."""
    return name.encode("utf-8", "replace").decode()


def as_json(data, options=()) -> str:
    """Return data as strict JSON text; NaN and Inf, which JSON lacks, become null.

    ``options``: the names of the command's options, in whose spelling sentences for a reader are given.
    """
    return json.dumps(_spelled(_plain(data), options), ensure_ascii=False, allow_nan=False)


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
