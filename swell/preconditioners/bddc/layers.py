"""The order of an interior's rows for its factorisation: layers on a GPU, nested dissection on a CPU (dissection.py).

The interior is cut into layers by the distance in its graph from one face of the subdomain (or from one dof). So a
layer is coupled only to its two neighbours. Thin layers are joined. They start or end at a face, whichever gives the
least work with the Schur complement: for a box its smallest face, with as many layers as the box is long. They end
there if most of the other faces are not on the interface, so that few interface dofs are coupled to the first layers.
"""
from __future__ import annotations

import numpy as np

from swell.core.library import native_kernels

THIN = 200              # a layer of fewer dofs is joined with the next: products must be worth their launch


def layers(A, sides, coupling=None, thin=THIN):
    """Cut the rows of A into layers, each coupled only to the two beside it, with the least work for their
    factorisation and for the Schur complement (schur.py).

    Returns (order, ends), int arrays: the rows of A sorted by layer; layer k is order[ends[k]:ends[k + 1]].

    Parameters
    ----------
    A : scipy.sparse.csr_array
        With a symmetric pattern.
    sides : iterable of int arrays
        Rows that may be the first layer or, if ``coupling`` is given, the last.
    coupling : scipy.sparse.csr_array, optional
        A row for each interface dof, with an entry for each row of A that is coupled to it.
    thin : int
        A layer of fewer rows is joined with the next.
    """
    best = None
    for side in ([], *sides):
        block = distances(A, side)
        sizes, joined, size = np.bincount(block), np.empty(block.max() + 1, np.int64), 0
        for k, more in enumerate(sizes.tolist()):
            joined[k] = joined[k - 1] + (size >= thin) if k else 0
            size = size + more if k and joined[k] == joined[k - 1] else more
        block = joined[block]
        for block in (block,) if coupling is None else (block, block.max() - block):
            sizes = np.bincount(block)
            work = _work(sizes, block, coupling)
            if best is None or work < best[0]:
                best = work, np.argsort(block, kind="stable"), np.concatenate(([0], np.cumsum(sizes)))
    return best[1:]


def _work(sizes, block, coupling):
    """Return the operations for layers of ``sizes`` rows, of which row i is in layer block[i]: a float. The columns of
    W are the interface dofs that are coupled to a layer up to this one; ``coupling`` is as for `layers`."""
    active = np.zeros(sizes.size)
    if coupling is not None and coupling.nnz:
        starts = coupling.indptr[:-1][np.diff(coupling.indptr) > 0]
        met = np.minimum.reduceat(block[coupling.indices], starts)
        active = np.cumsum(np.bincount(met, minlength=sizes.size))
    sizes = sizes.astype(float)
    return float((7 / 3 * sizes ** 3 + 3 * sizes ** 2 * active + sizes * active ** 2).sum())


def distances(A, side):
    """Return each row's distance to the nearest row of ``side`` in the graph of A, a scipy.sparse.csr_array: an int
    array. In connected components without rows of ``side``: the distance to their first row."""
    found = np.empty(A.shape[0], np.int64)
    kernels = native_kernels("swell.preconditioners.bddc", "dissection")
    kernels.measure(A.indptr, A.indices, np.asarray(side, np.int64), found)
    return found
