"""Multigrid: the settings that all multigrid preconditioners share, which describe the cycle over the levels."""
from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from swell.core.preconditioner import Preconditioner
from swell.core.settings import one_of, positive
from swell.preconditioners.amg.cycle import CYCLES
from swell.preconditioners.amg.smoother import NAMES


@dataclass(frozen=True, eq=False, kw_only=True)
class Multigrid(Preconditioner):
    """Settings of a cycle; a subclass adds the settings of its coarsening.

    Attributes
    ----------
    smoother : {"chebyshev", "l1_jacobi"}
        Chebyshev polynomials of the fourth kind, or plain steps; both with the ℓ1 diagonal.
    degree : int
        Products with A in a smoothing step, 1 to 4.
    cycle : {"V", "W"}
        "W": the three levels below the finest are visited twice, with fewer and dearer iterations.
    coarsest : int
        Most rows of a level that is not coarsened further; a dense inverse solves it. 0: 300 on a CPU, 1000 on a GPU
        and for a complex matrix.
    levels : int
        Most levels.
    dtype : {"float32", "float64"}
        Precision of the cycle. The setup always works in double precision.
    """

    smoother: str = "chebyshev"
    degree: int = 1
    cycle: str = "V"
    coarsest: int = 0
    levels: int = 25
    dtype: str = "float32"

    def __post_init__(self):
        positive(self, "degree", most=4)
        positive(self, "levels", most=100)
        positive(self, "coarsest", minimum=0, most=4096)
        for name, choices in (("smoother", NAMES), ("cycle", CYCLES), ("dtype", ("float32", "float64"))):
            one_of(self, name, choices)

    @abstractmethod
    def coarsening(self, A):
        """Return the object that makes the interpolation of each level, for the finest matrix A."""

    @abstractmethod
    def links(self) -> str:
        """The settings that decide which links are strong, for a message."""
