"""Choices kept on disk: the results of tuning, for the next matrix of the same class.

They are in one JSON file, ``tuning.json``: in the folder of ``SWELL_CACHE``, else in ``swell`` under
``XDG_CACHE_HOME``, else in ``~/.cache/swell``. A new file replaces the old one as a whole, so a reader never sees half
of it. If two processes write at the same time, one entry is lost and is measured again later. No error here is fatal:
it becomes a sentence in the notes of the result.
"""
from __future__ import annotations

import json
import os
import pathlib
import tempfile

NAME = "tuning.json"


def folder() -> pathlib.Path:
    """Return the folder of the file of kept choices: SWELL_CACHE, or the user's cache folder.

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


class Choices:
    """The file of choices.

    Parameters
    ----------
    path : pathlib.Path, optional
        By default ``tuning.json`` in ``folder()``.
    what : str
        What the file holds, for complaints.
    remedy : str
        The other remedy if the file cannot be used, for complaints.

    Attributes
    ----------
    complaints : list of str
        Sentences on failures of the file.
    """

    def __init__(self, path=None, what="cache of tuned formats", remedy=", or use format='tuned(cache=False)'"):
        self.complaints, self._what, self._remedy = [], what, remedy
        try:
            self.path = path or folder() / NAME
        except RuntimeError as error:
            self.path = None
            self.complain(f"there is no folder for it ({error})")

    def get(self, key: str) -> dict | None:
        """Return the entry kept under ``key``, a dict; None if there is none."""
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
            self.complain(f"{self.path} cannot be written ({error.strerror}), so the choice is not kept")
            if temporary and os.path.exists(temporary):
                os.unlink(temporary)

    def _read(self, quietly=False) -> dict:
        if self.path is None:
            return {}
        try:
            found = json.loads(self.path.read_text("utf-8"))
            if not isinstance(found, dict) or not all(isinstance(v, dict) for v in found.values()):
                raise ValueError("it is not an object of objects")
            return found
        except FileNotFoundError:
            return {}
        except OSError as error:
            what = f"{self.path} cannot be read ({error.strerror})"
        except (ValueError, RecursionError) as error:            # of JSON, or of its encoding
            what = f"{self.path} is damaged ({error}) and is replaced"
        if not quietly:
            self.complain(what)
        return {}

    def complain(self, what):
        """Append a sentence to ``complaints``: the text ``what``, on what went wrong with the file, and a remedy."""
        self.complaints.append(f"{self._what}: {what}; name another folder with SWELL_CACHE{self._remedy}")
