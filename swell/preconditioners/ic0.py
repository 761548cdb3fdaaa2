"""IC(0): incomplete Cholesky on the pattern of A. Meijerink and van der Vorst 1977; Saad, section 10.3.

This file holds only the pattern, A's lower triangle; incomplete_cholesky.py has the algorithm and its cost.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.preconditioners.incomplete_cholesky import IncompleteCholesky, lower_pattern


@dataclass(frozen=True)
class IC0(IncompleteCholesky):
    """Incomplete Cholesky without fill."""

    def pattern(self, A):
        return lower_pattern(A)
