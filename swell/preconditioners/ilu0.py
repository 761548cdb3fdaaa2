"""ILU(0): incomplete LU on the pattern of A. Meijerink and van der Vorst 1977; Saad, Iterative Methods, section 10.3.2.

Nothing but the pattern of A; what is common to all patterns, the cost among it, is in incomplete_lu.py.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.preconditioners.incomplete_lu import PatternLU


@dataclass(frozen=True)
class ILU0(PatternLU):
    """Incomplete LU without fill."""

    def pattern(self, A):
        return A.indptr, A.indices
