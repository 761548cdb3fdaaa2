"""What made a record: the commit of a checkout, and versions of packages."""
from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path


@cache
def commit() -> dict:
    """Return {"commit": the checkout's short hash}; empty if swell does not run from a checkout, or without git."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return {}
    try:
        found = subprocess.run(["git", "-C", str(root), "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                               timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return {"commit": found.stdout.strip()} if found.returncode == 0 else {}


def versions(packages) -> dict:
    """Return {name: version} of Python, swell, and those of ``packages`` that are installed."""
    versions = {"python": platform.python_version()}
    for package in ("swell", *packages):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions
