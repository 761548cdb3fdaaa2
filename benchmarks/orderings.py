"""Orderings: how long they take, and what they do to a matrix.

    python benchmarks/orderings.py [--device cuda] [--shuffle] [--height 512] [thermal2~ ecology2~:200000 file.npz ...]

Matrices are names of the gallery, with a size if wanted, or files. λ is the share of the entries off the diagonal that
lie in the slice of their row. Times are the least of three, with the graph of the matrix; SciPy's reverse Cuthill–McKee
is timed in the same run, on the host, with the pattern of A + Aᵀ.
"""
from __future__ import annotations

import argparse
import importlib.util
import time

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

import swell
from swell import gallery
from swell.core.registry import resolve
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix
from swell.orderings.cuthill_mckee import bandwidth

ORDERINGS = ("rcm", "greedy_coloring", "greedy_coloring(visit='largest_first')", "jones_plassmann")
PARTITIONS = ("partition(separators=False, height={})", "partition(height={})")


def matrix(name, shuffle):
    """A SciPy CSR matrix."""
    if name.endswith((".npz", ".mtx", ".mtx.gz")):
        A = swell.read_matrix(name)
    else:
        name, _, n = name.partition(":")
        A = gallery.get(name, int(n)) if n else gallery.get(name)
    A = sp.csr_matrix(A)
    if shuffle:
        order = np.random.default_rng(0).permutation(A.shape[0])
        A = A[order][:, order]
    A.sort_indices()
    return A


def least(space, function):
    """(Seconds, result): the least of three calls."""
    times = []
    for _ in range(3):
        space.synchronize()
        start = time.perf_counter()
        result = function()
        space.synchronize()
        times.append(time.perf_counter() - start)
    return min(times), result


def scipys(A):
    """SciPy's order of the pattern of A + Aᵀ."""
    pattern = sp.csr_matrix((np.ones(A.nnz, np.int8), A.indices, A.indptr), shape=A.shape)
    return reverse_cuthill_mckee((pattern + pattern.T).tocsr(), symmetric_mode=True)


def local_share(A, order, height):
    """λ."""
    xp = A.space.xp
    place = xp.empty_like(order)
    place[order] = xp.arange(order.size, dtype=order.dtype)
    rows, columns = place[A.rows()], place[A.indices]
    off = rows != columns
    return float((rows[off] // height == columns[off] // height).mean())


def show(what, seconds, A, order, height, more=""):
    """A line."""
    share = local_share(A, order, height)
    print(f"  {what:42} {1e3 * seconds:9.1f} ms   bandwidth {bandwidth(A, order):8d}   λ {share:.3f}   {more}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="times and effects of orderings")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--shuffle", action="store_true", help="number the rows at random first")
    parser.add_argument("--height", type=int, default=512)
    parser.add_argument("matrices", nargs="*", default=["thermal2~", "ecology2~"])
    arguments = parser.parse_args()
    space, height = make_space(arguments.device), arguments.height
    for name in arguments.matrices:
        A = matrix(name, arguments.shuffle)
        shuffled = ", shuffled" if arguments.shuffle else ""
        print(f"{name}{shuffled}, {A.shape[0]} rows, {A.nnz} entries, {space.describe()}")
        with space.active():
            csr = CSRMatrix.from_scipy(A, space)
            show("as it is", 0.0, csr, space.xp.arange(A.shape[0]), height)
            seconds, order = least(space, lambda: scipys(A))
            show("SciPy's rcm", seconds, csr, space.from_host(order), height)
            for ordering in ORDERINGS:
                settings = resolve("ordering", ordering)
                seconds, order = least(space, lambda: settings.order(csr))
                colors = f"{int(settings.colors(csr).max()) + 1} colours" if hasattr(settings, "colors") else ""
                show(ordering, seconds, csr, order, height, colors)
            for ordering in PARTITIONS if importlib.util.find_spec("pymetis") else ():
                settings = resolve("ordering", ordering.format(height))
                start = time.perf_counter()
                parts = settings.split(csr)
                seconds = time.perf_counter() - start
                show(ordering.format(height), seconds, csr, space.from_host(parts.order), height, parts.describe())
