"""Slots: the index of each number that ``kernels/facts`` gathers in one pass over a matrix."""
import enum

from swell.core.slots import slots


@slots
class Total:
    """Slots of sums over rows or entries; the slots of `Extreme` follow in the same array."""

    NOT_FINITE = enum.auto()            # entries that are NaN or Inf
    OUT_OF_RANGE = enum.auto()          # column indices outside of the matrix, and rows with invalid pointers
    DISORDERED = enum.auto()            # columns not greater than the preceding one in their row
    ADJOINING = enum.auto()             # entries whose right neighbour is an entry too
    UNMATCHED = enum.auto()             # entries aᵢⱼ without an aⱼᵢ
    EMPTY_ROWS = enum.auto()
    ZERO_DIAGONAL = enum.auto()         # rows whose diagonal entry is zero or missing
    DOMINANT_ROWS = enum.auto()         # rows with |aᵢᵢ| ≥ Σ |aᵢⱼ|, j ≠ i, to rounding
    UNBALANCED_ROWS = enum.auto()       # rows whose sum is not zero, to rounding
    LENGTH2 = enum.auto()               # squares of the row lengths
    FROBENIUS2 = enum.auto()            # |aᵢⱼ|²
    SKEW2 = enum.auto()                 # |aᵢⱼ − aⱼᵢ|²
    SKEW_HERMITIAN2 = enum.auto()       # |aᵢⱼ − conj(aⱼᵢ)|²


@slots
class Extreme:
    """Slots of maxima; a minimum is stored as the maximum of the negated numbers."""

    LARGEST = len(Total)                # |aᵢⱼ|
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
