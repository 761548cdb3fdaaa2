"""What a first solve on a GPU compiles, and what `prepare` costs once everything is compiled.

    CUPY_CACHE_DIR=$(mktemp -d) python benchmarks/first_call.py [MATRIX] [METHOD] [PRECOND]

MATRIX is one of the gallery's, ``ecology2~`` by default; without METHOD the advisor chooses. Prints each kernel that
NVRTC compiles, with its seconds and the line of swell that asked for it, or "ahead" for one that a thread began, then the median of ten times of ``prepare``
and its parts. The matrix lies on the host, as a user's does, and in a second round on the GPU.
"""
from __future__ import annotations

import statistics
import sys
import time

import numpy as np
from cold_start_gpu import watch_nvrtc

import swell

RUNS = 10


def main(name="ecology2~", method=None, precond=None):
    """Measure one matrix."""
    found = []
    watch_nvrtc(found)
    A = swell.gallery.get(name)
    b = np.random.default_rng(1).standard_normal(A.shape[0])
    start = time.perf_counter()
    result = swell.solve(A, b, device="cuda", method=method, precond=precond)
    first = time.perf_counter() - start
    print(result)
    for seconds, kernel in sorted(found, reverse=True):
        print(f"  {seconds:6.2f} s  {kernel}")
    print(f"first solve {first:.2f} s; {sum(s for s, _ in found):.2f} s in {len(found)} compilations, in threads side by side")
    import cupyx.scipy.sparse as csp
    for place, matrix in (("host", A), ("device", csp.csr_matrix(A))):
        times, parts = [], []
        for _ in range(RUNS):
            start = time.perf_counter()
            solver = swell.prepare(matrix, device="cuda", method=method, precond=precond)
            times.append(time.perf_counter() - start)
            parts.append(next(iter(solver._prepared.values())).setup.timings)
        spread = {part: round(1e3 * statistics.median(p[part] for p in parts), 2) for part in parts[0]}
        print(f"prepare, matrix on the {place}: median {1e3 * statistics.median(times):.2f} ms, least "
              f"{1e3 * min(times):.2f}; of it {spread}")


if __name__ == "__main__":
    main(*sys.argv[1:])
