"""The largest entries of dense matrices, on a CPU."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import parallel


@parallel
def largest_of_lines(lu, column, unit, n, out):
    """out[m n + l] = the largest modulus in line l of matrix m, a row if ``column`` is 1, else a column; NaN if the
    line has one. ``lu``: matrices of n rows as a flat array, line after line. ``unit`` names the factor with the unit
    diagonal (1: U, 2: L, 0: none); its entries are multiplied by the diagonal entry that divided them."""
    for line in prange(out.size):
        l, first = line % n, line * n
        of_line = abs(lu[first + l])
        most = 0.0
        for t in range(n):
            size = float(abs(lu[first + t]))
            above = t > l if column == 1 else t < l
            if above and unit == 1 or not above and t != l and unit == 2:
                # the diagonal entry of row i for U, of column j for L
                size *= of_line if (column == 1) == (unit == 1) else abs(lu[first + (t - l) * n + t])
            most = size if size > most or np.isnan(size) else most
        out[line] = most
