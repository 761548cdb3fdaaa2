"""The digest of all that the native library is built from. The build bakes it into the library, and an import compares
it where the sources lie beside (core/library.py): a library older than its sources never runs.

``python sources.py FILE`` writes it as a C++ header.
"""
from __future__ import annotations

import hashlib
import pathlib
import sys

PACKAGE = pathlib.Path(__file__).resolve().parents[2]
PATTERNS = "core/native/*.?pp", "core/native/*.py", "**/kernels/*.?pp", "**/slots.py"


def digest() -> str:
    """Return 16 hexadecimal digits for the names and contents of the sources."""
    made = hashlib.sha256()
    for path in [PACKAGE.parent / "CMakeLists.txt", *sorted(path for p in PATTERNS for path in PACKAGE.glob(p))]:
        made.update(path.name.encode() + path.read_bytes())
    return made.hexdigest()[:16]


if __name__ == "__main__":
    header = pathlib.Path(sys.argv[1])
    text = f'#pragma once\n#define SWELL_SOURCES "{digest()}"\n'
    if not header.exists() or header.read_text(encoding="utf-8") != text:
        header.write_text(text, encoding="utf-8")
