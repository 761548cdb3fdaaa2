"""The former name of `swell.guests.petsc`, for options and scripts that still use it."""
from swell.guests.petsc import KSP, PC, reason_of

__all__ = ["KSP", "PC", "reason_of"]
