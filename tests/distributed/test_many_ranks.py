"""What only eight ranks, or more than 2³¹ rows, can show. The ranks are threads, also under mpiexec."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import swell
from swell import distributed, gallery
from swell.distributed import threads
from swell.distributed.partition import consecutive

FAR = 1 << 33           # the number of the first row of a matrix that seems to have billions before it
SIDE = 9


def slabs(communicator, first_row, planes=13):
    """Poisson's matrix on slabs of a box; its rows are numbered from ``first_row`` on."""
    face, starts = SIDE**2, consecutive(planes, communicator.size)
    first, stop = (int(plane) for plane in starts[communicator.rank:communicator.rank + 2])
    own = gallery.poisson((stop - first, SIDE, SIDE))
    below, above = face * (first > 0), face * (stop < planes)
    rows = np.concatenate([np.arange(below), own.shape[0] - above + np.arange(above)])
    ghosts = np.concatenate([first * face - below + np.arange(below), stop * face + np.arange(above)])
    rest = sp.csr_array((np.full(ghosts.size, -1.0), (rows, np.arange(ghosts.size))), (own.shape[0], ghosts.size))
    return distributed.from_parts(communicator, own, rest, ghosts + first_row, starts=face * starts + first_row)


def test_norms_of_one_vector_and_of_columns_are_the_same_bits_on_eight_ranks():
    """NumPy adds eight numbers in pairs, and rows of them one after the other."""
    def norms(communicator):
        rng = np.random.default_rng(communicator.rank)
        space = slabs(communicator, 0).space
        together, found = space.for_columns(2), []
        for _ in range(20):                      # of one vector alone, both orders may give the same bits
            x = rng.standard_normal(space.ranks.local_rows(0))
            columns = together.buffer(x.size, x.dtype)
            columns.array[...] = x
            found.append((space.norms(x)[0], *map(float, together.norms(columns)[0])))
        return found

    for several in threads.run(8, norms):
        assert all(one == first == second for one, first, second in several)


@pytest.mark.parametrize("method, precond", [
    ("cg", None), ("cg", "amg"), ("fgmres", "air"), ("gmres", "ilu0"),
    ("cg", "schwarz(kind='additive', overlap=1, inner='ic0')"), ("gmres", "schwarz(overlap=2, inner='ilu0')")])
def test_rows_with_numbers_above_32_bits(few_rows, method, precond):
    """Global numbers have 64 bits, and nothing is as long as the whole matrix has rows."""
    def solution(communicator, first_row):
        A = slabs(communicator, first_row)
        b = np.random.default_rng(communicator.rank).standard_normal(A.own.shape[0])
        result = swell.solve(A, b, method=method, precond=precond)
        return result.reason.name, result.iterations, result.x.copy()

    near, far = (threads.run(4, solution, first_row) for first_row in (0, FAR))
    for (*words, x), (*expected, y) in zip(far, near, strict=True):
        assert words == expected and words[0] == "CONVERGED"
        assert np.array_equal(x, y)
