"""The guard of approximate triangular solves: setup measures how much of an error they leave.

A solve W ≈ T⁻¹ leaves (I − W T) v of an error v. The remainder is ‖(I − W T) v‖ / ‖v‖ for a fixed random v. Above
``growth``, W may do more harm than good. Then ``guard`` names the replacement, and a note reports it. New values are
measured again.
"""
from __future__ import annotations

import numbers
from abc import abstractmethod
from dataclasses import dataclass

from swell.core.errors import FactorisationError, InputError
from swell.core.settings import one_of, without_effect
from swell.preconditioners.exact import Exact
from swell.preconditioners.triangular import TriangularOperator, TriangularSolve


@dataclass(frozen=True, kw_only=True)
class GuardedSolve(TriangularSolve):
    """Settings of an approximate triangular solve.

    Attributes
    ----------
    guard : str
        Replacement of the solve if its remainder exceeds ``growth``. "exact": an exact solve; "more": the cheapest
        solve of the same kind whose remainder is small enough, else "exact"; "error": raise an error; "off": measure
        and replace nothing.
    growth : float
        Largest remainder that is accepted.
    """

    guard: str = "exact"
    growth: float = 1.0

    remedy = "more of it"   # recommended in the message of "error"

    def __post_init__(self):
        one_of(self, "guard", ("exact", "more", "error", "off"))
        if not isinstance(self.growth, numbers.Real) or not self.growth > 0:
            raise InputError(f"{type(self).__name__}(growth={self.growth!r}): expected a positive number")
        if self.guard == "off":
            without_effect(self, "with guard='off'", "name another guard", "growth")

    def build(self, T, lower, unit=False, order=None):
        if self.guard == "off":
            return self.unguarded(T, lower, unit, order)
        return Guarded(T, lower, unit, order, self)

    @abstractmethod
    def unguarded(self, T, lower, unit, order):
        """Build the approximate solve W ≈ T⁻¹ without a test of its remainder; arguments as in `TriangularSolve.build`.
        """

    @abstractmethod
    def remainder(self, operator):
        """Return ‖(I − W T) v‖ / ‖v‖, for a fixed random v, of an operator W that `unguarded` built; for setup only."""

    @abstractmethod
    def named(self, operator):
        """Return the subject and verb of a sentence about ``operator``: "3 sweeps with the lower triangle leave"."""

    @abstractmethod
    def better(self, operator, T):
        """Return (stronger settings, words for the note), or None if no stronger settings leave a remainder of at most
        ``growth``.

        ``operator`` is the solve that `unguarded` built for the matrix T."""

    def exactly(self):
        """Return the settings of the exact solve that replaces this one."""
        return Exact()


class Guarded(TriangularOperator):
    """The requested solve if its remainder is small, else the replacement that ``guard`` names."""

    def __init__(self, T, lower, unit, order, settings):
        super().__init__(T, lower, unit, order, settings)
        self._adjoint_wanted = False
        self._first = self._active = self._build(settings, T)
        self.shape, self.variable = self._first.shape, self._first.variable
        self._choose(T)

    def _build(self, settings, T):
        return settings.unguarded(T, self.lower, self.unit, self.order)

    def _choose(self, T):
        """Measure the remainder of the requested solve for T; make it or its replacement the active solve, and set
        ``notes``."""
        asked, name, self.notes = self.settings, type(self.settings).__name__, self._first.notes
        remainder = asked.remainder(self._first)
        if remainder <= asked.growth:
            self._use(asked, T)
            return
        said = f"{asked.named(self._first)} {remainder:.1e} of a random error, more than {asked.growth:g}"
        if asked.guard == "error":
            raise FactorisationError(f"{name}: {said}: use {asked.remedy}, guard='more', or solve='exact'")
        more = asked.better(self._first, T) if asked.guard == "more" else None
        instead, done = more or (asked.exactly(), "it is solved with exactly")
        self._use(instead, T)
        self.notes = (*self.notes, f"{name}: {said}: {done} instead")

    def _use(self, settings, T):
        """Make the operator of ``settings`` active, with the values of T: build it, or update the active one."""
        if self._active.settings == settings:
            if self._active is not self._first:
                self._active.update(T)
            return
        self._active = self._first if settings == self.settings else self._build(settings, T)
        if self._adjoint_wanted:
            self._active.prepare_adjoint()
        self.revision += 1

    def update(self, T):
        self._first.update(T)
        self._choose(T)

    def source(self, out):
        return self._active.source(out)

    def solve(self, x, out):
        self._active.solve(x, out)

    def solve_adjoint(self, x, out):
        self._active.solve_adjoint(x, out)

    def adjoint_dots(self, x, out, w, dots):
        self._active.adjoint_dots(x, out, w, dots)

    def prepare_adjoint(self):
        self._adjoint_wanted = True
        self._active.prepare_adjoint()

    @property
    def nbytes(self):
        return self._first.nbytes + (0 if self._active is self._first else self._active.nbytes)

    def describe(self):
        instead = f" in place of {self._first.describe()}" if self._active is not self._first else ""
        return self._active.describe() + instead
