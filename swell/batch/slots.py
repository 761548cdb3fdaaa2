"""Named codes of the batch kernels: preconditioners, verdicts, and the places of a record.

``core/slots.py`` says how kernels get the names.
"""
import enum

from swell.core.slots import slots


@slots
class Kind:
    """Preconditioners that the kernels know."""

    PLAIN = enum.auto()             # none
    JACOBI = enum.auto()
    BLOCK_JACOBI = enum.auto()
    ILU = enum.auto()               # ILU(0)


@slots
class Outcome:
    """Verdicts beside ``core.slots.Code``; each has the code of its ``Reason``."""

    FALSE_CONVERGENCE = 10
    ATTAINABLE_ACCURACY = 11
    SINGULAR = 12
    NOT_FACTORED = 13


@slots
class Record:
    """The numbers that a system leaves, 32 bytes together: a GPU writes them to the host's memory at once."""

    RESIDUAL = enum.auto()          # ‖b − A x‖₂ / ‖b‖₂; ‖b − A x‖₂ if b = 0
    BACKWARD = enum.auto()          # ‖b − A x‖∞ / (‖A‖∞ ‖x‖∞ + ‖b‖∞)
    STEPS = enum.auto()             # iterations
    VERDICT_CODE = enum.auto()      # the code of a Reason


STEMS = {stem: (Kind, Outcome, Record) for stem in ("cg", "bicgstab", "gmres", "lu", "survey")}
