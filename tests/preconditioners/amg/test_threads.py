"""Levels of algebraic multigrid in processes of one, two and three threads: a process cannot raise its own number."""
from __future__ import annotations

import os
import subprocess
import sys

DIGEST = """
import hashlib
import numpy as np
import swell
from swell.core.library import _native
A = swell.gallery.poisson3d(28)                  # more rows than one thread is used for
h = swell.prepare(A, method="cg", precond="amg").M.hierarchy
parts = [matrix.data for matrix in h.matrices] + [part for level in h.levels for part in (level.P.indices, level.P.data)]
print(_native.threads(), hashlib.sha256(b"".join(map(np.ndarray.tobytes, parts))).hexdigest())
"""


def test_the_levels_have_the_same_bits_for_any_number_of_threads():
    found = set()
    for threads in ("1", "2", "3"):
        done = subprocess.run([sys.executable, "-c", DIGEST], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "SWELL_NUM_THREADS": threads})
        count, digest = done.stdout.split()
        assert count == threads, done.stderr
        found.add(digest)
    assert len(found) == 1
