"""``Recurring``: the setup that a code's linear solver keeps from call to call."""
from __future__ import annotations

import numpy as np

from swell.api import prepare
from swell.inputs import dtype_of


class Recurring:
    """A Solver that is set up anew only if the pattern, or the type, of the matrix changes.

    Parameters
    ----------
    options : Options

    Attributes
    ----------
    setups : int
        Setups done so far.
    """

    def __init__(self, options):
        self.setups = 0
        self._options, self._solver, self._matrix = options, None, None

    def solver(self, A, b):
        """Return the Solver for A: the last one if A is the same, the last one updated for new values, or a new one.

        ``b``: an array of the type of the right-hand sides."""
        if self._matrix is None or not _same_pattern(self._matrix, A) or _complex(b) > _complex(self._matrix):
            self._solver = prepare(A, b_like=b, **self._options.keywords())
            self.setups += 1
        elif not np.array_equal(self._matrix.data, A.data):
            self._solver.update(A)
        self._matrix = A.copy()
        return self._solver


def _complex(array) -> bool:
    return dtype_of(array).kind == "c"


def _same_pattern(A, B) -> bool:
    """True if two SciPy matrices are CSR and differ in their values only."""
    return (A.format == B.format == "csr" and A.dtype == B.dtype and A.shape == B.shape
            and np.array_equal(A.indptr, B.indptr) and np.array_equal(A.indices, B.indices))
