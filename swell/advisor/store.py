"""Measurements kept on disk: tuned formats (``tuning.json``) and the speeds of this machine (``machine.json``).

The JSON files are in the folder that ``SWELL_CACHE`` names, else in ``swell`` under ``XDG_CACHE_HOME``, else in
``~/.cache/swell``. A new file replaces the old one as a whole, so a reader never sees half of it. If two processes
write at the same time, one entry is lost and is measured again later. No error here is fatal: it becomes a sentence in
the notes of the result.
"""
from __future__ import annotations

import json
import os
import pathlib
import tempfile

NAME = "tuning.json"


def folder() -> pathlib.Path:
    """Return the folder of the files: the one that SWELL_CACHE names, or swell's in the user's cache folder.

    Raises
    ------
    RuntimeError
        If nothing names a folder and the user has no home.
    """
    named = os.environ.get("SWELL_CACHE")
    if named:
        return pathlib.Path(named)
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or ".")
    return (cache if cache.is_absolute() else pathlib.Path.home() / ".cache") / "swell"


class Store:
    """A JSON file of measurements.

    Parameters
    ----------
    path : pathlib.Path, optional
        By default ``tuning.json`` in ``folder()``.
    what : str
        The content of the file, for complaints.
    remedy : str
        Another remedy if the file cannot be used, for complaints.

    Attributes
    ----------
    complaints : list of str
        Sentences on problems with the file.
    """

    def __init__(self, path=None, what="cache of tuned formats", remedy=", or use format='tuned(cache=False)'"):
        self.complaints, self._what, self._remedy = [], what, remedy
        try:
            self.path = path or folder() / NAME
        except RuntimeError as error:
            self.path = None
            self.complain(f"there is no folder for it ({error})")

    def get(self, key: str) -> dict | None:
        """Return the entry, a dict, under ``key``; None if there is none."""
        return self._read().get(key)

    def put(self, key: str, entry: dict, keep: str):
        """Write ``entry``, a dict, under ``key`` to the file. Other entries stay if their key begins with ``keep``.

        If the file cannot be written, a complaint is added."""
        if self.path is None:
            return
        kept = {k: v for k, v in self._read(quietly=True).items() if k.startswith(keep)}
        text = json.dumps({**kept, key: entry}, indent=1, sort_keys=True, ensure_ascii=False)
        temporary = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self.path.parent, prefix=NAME, delete=False,
                                             encoding="utf-8") as stream:
                temporary = stream.name
                stream.write(text)
            os.replace(temporary, self.path)
        except OSError as error:
            self.complain(f"{self.path} cannot be written ({error.strerror}), so the measurement is not kept")
            if temporary and os.path.exists(temporary):
                os.unlink(temporary)

    def _read(self, quietly=False) -> dict:
        if self.path is None:
            return {}
        try:
            entries = json.loads(self.path.read_text("utf-8"))
            if not isinstance(entries, dict) or not all(isinstance(v, dict) for v in entries.values()):
                raise ValueError("it is not an object of objects")
            return entries
        except FileNotFoundError:
            return {}
        except OSError as error:
            what = f"{self.path} cannot be read ({error.strerror})"
        except (ValueError, RecursionError) as error:            # the JSON or its encoding is wrong
            what = f"{self.path} is damaged ({error}) and is replaced"
        if not quietly:
            self.complain(what)
        return {}

    def complain(self, what):
        """Append a sentence to ``complaints``: the problem with the file, ``what``, and a remedy."""
        self.complaints.append(f"{self._what}: {what}; name another folder with SWELL_CACHE{self._remedy}")
