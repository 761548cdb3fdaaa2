"""Names for the places of the numbers that one pass over a matrix gathers (``kernels/facts``)."""
from __future__ import annotations

import enum

from swell.core.slots import Slots


class Total(Slots):
    """Sums over rows or entries; the extremes of `Extreme` follow them."""

    NOT_FINITE = enum.auto()            # entries that are NaN or Inf
    OUT_OF_RANGE = enum.auto()          # columns beyond the last, and rows whose pointers make no sense
    DISORDERED = enum.auto()            # columns that are not greater than the one before in their row
    ADJOINING = enum.auto()             # entries whose right neighbour is an entry, too
    UNMATCHED = enum.auto()             # entries aᵢⱼ without an aⱼᵢ
    EMPTY_ROWS = enum.auto()
    ZERO_DIAGONAL = enum.auto()         # rows whose diagonal entry is zero or missing
    DOMINANT_ROWS = enum.auto()         # |aᵢᵢ| ≥ Σ |aᵢⱼ|, j ≠ i, to rounding
    UNBALANCED_ROWS = enum.auto()       # rows whose sum is not zero, to rounding
    LENGTH2 = enum.auto()               # squares of the rows' lengths
    FROBENIUS2 = enum.auto()            # |aᵢⱼ|²
    SKEW2 = enum.auto()                 # |aᵢⱼ − aⱼᵢ|²
    SKEW_HERMITIAN2 = enum.auto()       # |aᵢⱼ − conj(aⱼᵢ)|²


class Extreme(enum.IntEnum):
    """Maxima; a minimum is kept as the maximum of the negative."""

    @staticmethod
    def _generate_next_value_(name, start, count, last):
        return len(Total) + count

    LARGEST = enum.auto()               # |aᵢⱼ|
    DIFFERENCE = enum.auto()            # |aᵢⱼ − aⱼᵢ|
    HERMITIAN_DIFFERENCE = enum.auto()  # |aᵢⱼ − conj(aⱼᵢ)|
    NORM_INF = enum.auto()              # Σⱼ |aᵢⱼ|
    LONGEST_ROW = enum.auto()
    BANDWIDTH = enum.auto()             # |i − j|
    DIAGONAL_LARGEST = enum.auto()      # |aᵢᵢ|
    DIAGONAL_LEAST = enum.auto()        # −|aᵢᵢ|
    DIAGONAL_LOWEST = enum.auto()       # −Re aᵢᵢ
    DIAGONAL_IMAGINARY = enum.auto()    # |Im aᵢᵢ|
    FIRST_ZERO = enum.auto()            # −i of the first row whose diagonal entry is zero
    REACH = enum.auto()                 # Σⱼ |aᵢⱼ| − 2 Re aᵢᵢ: how far a Gershgorin circle reaches below zero


COUNT = len(Total) + len(Extreme)
STEMS = {"facts": (Total, Extreme)}
