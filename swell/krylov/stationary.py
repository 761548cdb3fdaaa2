"""Stationary iteration: a smoother as a solver, x ← x + B⁻¹ (b − A x), until the judge accepts the residual.

For any matrix for which the smoother converges. Saad, Iterative Methods, section 4.1; chapter 4 of the paper that
smoothers/smoother.py names.

An iteration: ``every`` sweeps, then 1 product and 1 reduction for the reported true residual ‖b − A x‖₂.
Storage: the residual, and the smoother's own.

Across ranks, each rank sweeps over its own rows, from the residual. The ranks exchange values after ``every`` sweeps:
between the ranks this is block Jacobi. Storage: one vector more.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swell.core.errors import InputError
from swell.core.registry import names, resolve
from swell.core.settings import positive, without_effect
from swell.krylov.method import Counts, Method
from swell.krylov.refinement import Refinement


@dataclass(frozen=True)
class Stationary(Method):
    """Sweeps of a smoother as a solver; one iteration is ``every`` sweeps.

    Attributes
    ----------
    smoother : str or Smoother
        A name of ``names("smoother")``, with settings in brackets, or a settings object.
    every : int
        Sweeps between two computations of the residual.
    """

    smoother: Any = "gauss_seidel"
    every: int = 10

    problem = "any matrix for which the smoother converges"
    cost = "`every` sweeps, 1 product, 1 reduction"
    vectors = "1, and the smoother's"
    flexible = True
    instead_of_smoother = "name it within: stationary(smoother=...)"
    preconditionable = False
    has_adjoint = False                          # its sweeps read the rows of A
    distributed = True

    def __post_init__(self):
        positive(self, "every")
        smoother = self.inner                    # raises for a misspelt name
        if smoother is None:
            raise InputError(f"Stationary(smoother={self.smoother!r}): expected one of {', '.join(names('smoother'))}")
        without_effect(smoother, "in stationary, which says how many sweeps are done",
                       "set stationary(every=...)", "sweeps")

    @property
    def inner(self):
        return resolve("smoother", self.smoother)

    def bind(self, system):
        return StationaryIteration(system, self.every)

    def window(self, n):
        """Return 0, no limit: a smoother slows down long before it stops."""
        return 0


class StationaryIteration(Refinement):
    """x ← x + B⁻¹ (b − A x): refinement by sweeps."""

    def __init__(self, system, every):
        super().__init__(system)
        self.steps = self.every = every
        self.z = None if self.ranks.single else self.vector("z")

    def improve(self):
        if self.ranks.single:
            self.M.smooth(self.b, self.x, self.every)                          # x = x + B⁻¹ (b − A x), ``every`` times
        else:
            self.z.fill(0)
            self.M.smooth(self.r, self.z, self.every)                          # z = z + B⁻¹ (r − A z), from 0
            self.space.axpy(1, self.z, self.x)                                 # x = x + z

    def counts(self, iterations, zero_guess):
        return Counts(iterations + (not zero_guess), self.every * iterations, iterations + 1)
