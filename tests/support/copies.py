"""Copies of the package, which PYTHONPATH names."""
from __future__ import annotations

HOOK = """import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if not type(finder).__name__.startswith("ScikitBuild")]
"""


def go_first(folder):
    """Let Python find the package in ``folder`` before one that was installed for editing, whose import hook comes
    before PYTHONPATH: Python imports ``sitecustomize`` at its start."""
    (folder / "sitecustomize.py").write_text(HOOK)
