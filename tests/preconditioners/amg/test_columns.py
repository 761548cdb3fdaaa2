"""The products of a cycle with several right-hand sides: every column gets the bits of its own product."""
from __future__ import annotations

import numpy as np
import pytest
from tests.conftest import DTYPES, space_or_skip
from tests.support.products import random_matrix, vector

from swell.formats.csr import CSRMatrix

ROWS = 70


class Case:
    """Two matrices and vectors for one column, and the same for k."""

    def __init__(self, space, dtype, k, width):
        self.space, self.many, self.k, self.dtype, self.width = space, space.for_columns(k), k, np.dtype(dtype), width
        self.S, self.Q = (CSRMatrix.from_scipy(random_matrix(ROWS, density, dtype), space) for density in (0.6, 0.1))
        self.dense = space.from_host(vector(ROWS * ROWS, dtype))

    def columns(self, seed):
        made = self.many.buffer(ROWS * self.width, self.dtype)
        made.array[...] = self.space.from_host(np.stack([vector(ROWS * self.width, self.dtype, 100 * seed + j)
                                                         for j in range(self.k)]))
        return made

    def compare(self, name, *before, vectors, after=()):
        """Call the kernel with ``before`` and so many vectors, of which it writes the last; ``after`` follows the first
        of them."""
        given = [self.columns(seed) for seed in range(vectors)]
        alone = [[v.array[j].copy() for v in given] for j in range(self.k)]
        middle = 1 if after else 0

        def call(space, arrays):
            kernels = space.kernels("swell.preconditioners.amg", "cycle", self.dtype)
            getattr(kernels, name)(*before, *arrays[:middle], *after, *arrays[middle:])

        with self.space.active():
            for arrays in alone:
                call(self.space, arrays)
        with self.many.active():
            call(self.many, given)
        for j, arrays in enumerate(alone):
            own, alone = self.space.to_host(given[-1].array[j]), self.space.to_host(arrays[-1])
            assert own.tobytes() == alone.tobytes(), (name, j)


@pytest.mark.gpu
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("k", [2, 3, 8, 13])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_column_has_the_bits_of_its_own_product(dtype, k, width):
    case = Case(space_or_skip("cuda"), dtype, k, width)
    S, Q = ((A.indptr, A.indices, A.data) for A in (case.S, case.Q))
    case.compare("rows_product", *S, width, vectors=2)
    case.compare("correct", *S, *Q, width, vectors=3)
    case.compare("dense_product", case.dense, width, vectors=2)
    if width == 1:
        one = case.dtype.type
        for lanes in (1, 4, 32):
            case.compare("shared_rows", *S, lanes, vectors=4, after=(one(-0.5), one(2), one(0.25)))
            case.compare("shared_rows", *Q, lanes, vectors=4, after=(one(1), one(0), one(0)))
