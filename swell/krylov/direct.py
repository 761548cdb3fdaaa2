"""Sparse direct solution: refinement by complete factors of A, whose file is preconditioners/direct.py.

For any nonsingular matrix of moderate fill. Demmel et al. 1999 (SuperLU).

A step: 1 product, 1 solve with the factors, 1 reduction. Storage: r and the factors. Reports the true residual
‖b − A x‖₂ in every step, and ends where the judge accepts it or it stops falling.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.registry import counterpart
from swell.krylov.method import Method
from swell.krylov.refinement import Refinement


@dataclass(frozen=True)
class Direct(Method):
    """Sparse LU: SuperLU on a CPU, cuDSS on a GPU, with iterative refinement.

    The fields are the preconditioner's, which `swell.Direct` documents.
    """

    largest: int = 0
    symmetric: bool = False

    problem = "any nonsingular matrix of moderate fill"
    cost = "1 product, 1 solve with the factors, 1 reduction"
    vectors = "2, and the factors"
    preconditionable = False
    regular = True

    def __post_init__(self):
        counterpart(self, "precond", "direct")                   # which checks the fields

    @property
    def inner(self):
        return counterpart(self, "precond", "direct")

    def bind(self, system):
        return Refinement(system)

    def window(self, n):
        return 2
