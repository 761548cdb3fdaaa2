"""Sparse direct solve: iterative refinement with complete factors of A, which preconditioners/direct.py computes.

For any nonsingular matrix of moderate fill. Demmel et al. 1999 (SuperLU).

A step: 1 product, 1 solve with the factors, 1 reduction. Storage: r and the factors. Reports the true residual
‖b − A x‖₂ in every step. The run ends when the judge accepts this residual, or when it stops falling.

The factors of SuperLU and RSLAB may have small pivots. If a step does not halve a residual that is more than rounding
error, A is factored again with better pivots, and x restarts from zero; the result notes it.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from swell.core.columns import plain
from swell.core.registry import counterpart
from swell.core.slots import Flag, Norms
from swell.krylov.method import Counts, Method
from swell.krylov.refinement import Refinement

ROUNDING = 8            # a residual up to ROUNDING eps (‖|A||x|‖ + ‖b‖) is rounding error


@dataclass(frozen=True)
class Direct(Method):
    """Sparse LU: SuperLU or RSLAB on a CPU, cuDSS on a GPU, with iterative refinement.

    The fields are the preconditioner's, which `swell.Direct` documents. The name of a decomposer of swell.dense, as in
    method="icm(x=32)", stands for Direct(dense_lu="icm(x=32)").
    """

    largest: int | None = None
    ordering: str | None = None
    package: str | None = None
    dense_lu: Any = None
    dense_solver: Any = "trsm"

    problem = "any nonsingular matrix of moderate fill"
    cost = "1 product, 1 solve with the factors, 1 reduction"
    vectors = "2, and the factors"
    preconditionable = False
    flexible = True                              # each step is judged anew: dense_solver="is" may vary
    regular = True
    few_products = True

    def __post_init__(self):
        self.inner                               # checks the fields

    @cached_property
    def inner(self):
        return counterpart(self, "precond", "direct")

    def bind(self, system):
        return FactorRefinement(system)

    def window(self, n):
        return 2


class FactorRefinement(Refinement):
    """Refinement with factors; factors that do not reduce the residual are replaced by better ones."""

    @property
    def notes(self):
        """Remarks for the user about factors that were replaced: a tuple of str."""
        return () if self.M is None else self.M.repairs

    def start(self, zero_guess):
        self.repeated = 0
        super().start(zero_guess)

    def body(self):
        loose = self.M.loose is not None
        before = self.squares(Norms.JUDGED2) if loose else np.inf              # loose factors are on a CPU: no wait
        self.step()
        if loose:
            running = self.loop.flags[:, Flag.STOP] == 0
            as_before = running & ~(self.squares(Norms.JUDGED2) <= before / 4)
            if as_before.any() and not self.rounded()[as_before].all():
                self._repair(running)
        self.judge.iteration(self.norm2)

    def _repair(self, running):
        """Replace the factors, and begin again with the right-hand sides that are ``running``, a mask."""
        self.M.repair("factors with pivots near the diagonal left the residual as it was")
        self.repeated = 1
        np.atleast_2d(plain(self.x))[running] = 0
        np.atleast_2d(plain(self.r))[running] = np.atleast_2d(plain(self.b))[running]
        self.step()

    def squares(self, norm):
        """Return one of the squared ``Norms`` of the residual of each right-hand side."""
        return np.atleast_2d(plain(self.norm2))[:, norm].real.copy()

    def rounded(self):
        """Return a mask of the right-hand sides whose residual is at the level of the rounding errors of A x and b:
        ``ROUNDING`` times eps (‖|A| |x|‖₂ + ‖b‖₂)."""
        terms = self.space.buffer(self.x.size, np.finfo(self.dtype).dtype)
        self.M.loose.absolute().apply(abs(self.x), terms)
        rounding = ROUNDING * np.finfo(self.dtype).eps * (self.space.norms(terms)[0] + self.space.norms(self.b)[0])
        return self.squares(Norms.OWN2) <= rounding**2

    def counts(self, iterations, zero_guess):
        products, applications, reductions = super().counts(iterations, zero_guess)
        return Counts(products + self.repeated, applications + self.repeated, reductions + self.repeated)
