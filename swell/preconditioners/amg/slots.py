"""Names of the states that coarsening gives to rows."""
from __future__ import annotations

import enum

from swell.core.slots import slots


@slots
class State:
    """The state of a row in coarsening."""

    UNDECIDED = enum.auto()
    FINE = enum.auto()              # interpolated from coarse rows
    COARSE = enum.auto()            # a row of the next level
    ISOLATED = enum.auto()          # without strong links: the smoother alone corrects it


STEMS = {stem: (State,) for stem in ("pmis", "independent_set", "interpolation", "aggregates", "links", "roots",
                                     "local_restriction", "air_cycle")}
