"""Multigrid: the settings that all multigrid preconditioners share."""
from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from swell.core.preconditioner import Preconditioner
from swell.core.settings import choose_by_none, one_of, positive
from swell.preconditioners.amg.cycle import CYCLES
from swell.preconditioners.amg.smoother import NAMES


@dataclass(frozen=True, eq=False, kw_only=True)
class Multigrid(Preconditioner):
    """Settings of the levels; a subclass adds the settings of its coarsening.

    Attributes
    ----------
    coarsest : int, optional
        Most rows of a level that is not coarsened further; a dense inverse solves it. None: 300 on a CPU, 1000 on a GPU
        and for a complex matrix.
    levels : int
        Most levels.
    dtype : {"float32", "float64"}
        Precision of the cycle. The setup always works in double precision.
    diagonal : {"l1", "point"}
        The diagonal of the smoother, as for `smoother.scales`.
    positive_diagonal : bool
        True if the diagonal must have positive real parts; False: no zeros.
    entry_bytes : int
        Estimated memory of setup and cycle an entry of A, checked before anything is allocated.
    instead : str
        A preconditioner that messages recommend where multigrid fails.
    last : str
        The work on a coarsest level that is too large for a dense inverse.
    form, sweeps : str
        The kind of multigrid, and the work on a level, in a few words.
    """

    coarsest: int | None = None
    levels: int = 25
    dtype: str = "float32"

    diagonal = "l1"
    positive_diagonal = True
    entry_bytes = 120
    instead = "ic0"
    last = "the smoother alone"

    def __post_init__(self):
        positive(self, "levels", most=100)
        choose_by_none(self, 0, "coarsest")
        positive(self, "coarsest", most=4096)
        one_of(self, "dtype", ("float32", "float64"))

    @abstractmethod
    def coarsening(self, A):
        """Return the object that makes the interpolation of each level, for the finest matrix A."""

    @abstractmethod
    def links(self) -> str:
        """The settings that decide which links are strong, for a message."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothedMultigrid(Multigrid):
    """Settings of a cycle that smooths before and after each correction.

    Attributes
    ----------
    smoother : {"chebyshev", "l1_jacobi"}
        Chebyshev polynomials of the fourth kind, or plain steps; both with the ℓ1 diagonal.
    degree : int
        Products with A in a smoothing step, 1 to 4.
    cycle : {"V", "W"}
        "W": the three levels below the finest are visited twice, with fewer and dearer iterations.
    """

    smoother: str = "chebyshev"
    degree: int = 1
    cycle: str = "V"

    def __post_init__(self):
        super().__post_init__()
        positive(self, "degree", most=4)
        one_of(self, "smoother", NAMES)
        one_of(self, "cycle", CYCLES)

    @property
    def form(self):
        return f"{self.smoother} of degree {self.degree}"

    @property
    def sweeps(self):
        return f"{self.cycle}-cycle"
