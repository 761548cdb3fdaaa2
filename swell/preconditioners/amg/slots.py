"""What coarsening says of a row, by name."""
from __future__ import annotations

import enum

from swell.core.slots import Slots


class State(Slots):
    """The state of a row while coarse rows are chosen."""

    UNDECIDED = enum.auto()
    FINE = enum.auto()              # interpolated from coarse rows
    COARSE = enum.auto()            # a row of the next level
    ISOLATED = enum.auto()          # without strong links: the smoother alone corrects it


STEMS = {"pmis": (State,), "interpolation": (State,), "cycle": (State,)}
