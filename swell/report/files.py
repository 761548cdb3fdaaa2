"""Pictures and pages as files, each of which appears complete or not at all."""
from __future__ import annotations

from pathlib import Path

from swell.display.figure import png
from swell.io.files import write_atomically


def save(figure, path):
    """Write the figure to a PNG file.

    Raises
    ------
    InputError
        If the folder does not exist or cannot be written.
    """
    picture = png(figure)
    write_atomically(Path(path), lambda stream: stream.write(picture))


def write(path, text: str):
    """Write the text of a document to the file ``path``.

    Raises
    ------
    InputError
        If the folder does not exist or cannot be written.
    """
    write_atomically(Path(path), lambda stream: stream.write(text.encode("utf-8", "replace")))
