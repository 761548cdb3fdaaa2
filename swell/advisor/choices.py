"""The choices for a system on one device, with their predictions, the fastest first.

They are for a user who names no preconditioner, scaling, ordering, smoother or null space. Tables of rules make them:
`CLASSES`, of which the first class that holds A counts, and `IN_EVERY_CLASS`. docs/CHOICE.md shows the tables.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, cached_property
from typing import NamedTuple

from swell.advisor.costs import COSTS, MULTIGRID
from swell.advisor.order import fastest_choice
from swell.advisor.predictions import CERTAIN, direct, gershgorin_bound, iterative
from swell.advisor.smooth_vectors import jacobi_iterations
from swell.core.configuration import Configuration
from swell.core.registry import load
from swell.formats.parts import most_rows
from swell.orderings.cuthill_mckee import layers
from swell.preconditioners.amg.nodes import like_elasticity
from swell.preconditioners.amg.strength import MAX_FORCED
from swell.preconditioners.direct import unavailable


FEW = 60                # iterations of CG that need no better estimate


class Case:
    """A system's matrix and its properties, each computed once. ``resident``: cg's resident form may be a choice."""

    def __init__(self, A, facts, resident):
        self.A, self.facts, self.resident = A, facts, resident

    @cached_property
    def positive(self):
        """The number of A's positive entries."""
        return self.A.space.count_positive(self.A.data)

    @cached_property
    def m_matrix(self):
        """True if A's rows are dominant and nearly all off-diagonal entries negative: AMG's iterations are few."""
        return self.facts.dominant and self.positive <= (1 + MAX_FORCED) * self.facts.n

    @cached_property
    def layers(self):
        """Levels of a breadth-first search in A's graph, if A is Hermitian with a positive diagonal; else 0."""
        return layers(self.A) if self.facts.hermitian and self.facts.positive_diagonal else 0

    @cached_property
    def jacobi_iterations(self):
        """What `smooth_vectors.jacobi_iterations` foresees for CG on a GPU, where multigrid is a choice beside it.

        On a CPU the choice is between IC and multigrid, and the iterations with IC do not follow from these."""
        suits = self.facts.hermitian and self.facts.positive_diagonal and large(self) and self.A.space.name != "cpu"
        return jacobi_iterations(self.A) if suits and gershgorin_bound(self.facts) > FEW else (0.0, False)

    @cached_property
    def elastic(self):
        """True if the unknowns come in groups, coupled as in elasticity."""
        return self.facts.hermitian and large(self) and not self.m_matrix and like_elasticity(self.A, self.positive)


# Conditions on a `Case`; docs/CHOICE.md shows their docstrings.

def every(case):
    """all"""
    return True


def hermitian(case):
    """Hermitian"""
    return case.facts.hermitian


def not_hermitian(case):
    """not Hermitian"""
    return not case.facts.hermitian


def doubtful(case):
    """not diagonally dominant"""
    return not case.facts.dominant


def waves(case):
    """real entries in a complex type, not diagonally dominant"""
    return case.facts.complex and case.facts.symmetric and doubtful(case)


def resides(case):
    """vectors that fit on a GPU's multiprocessors"""
    return case.resident and may_reside(case.A)


def large(case):
    """real and large"""
    return not case.facts.complex and case.facts.n >= COSTS[case.A.space.name].multigrid_from


def elastic(case):
    """real and large, with unknowns in groups, coupled as in elasticity"""
    return case.elastic


def large_m_matrix(case):
    """real and large, an M-matrix"""
    return large(case) and case.m_matrix


def large_other(case):
    """real and large, any other"""
    return large(case) and not case.m_matrix and not case.elastic


def full_diagonal(case):
    """no zeros on the diagonal"""
    return not case.facts.zero_diagonal


def factorable(case):
    """on a CPU, or with cuDSS, or a full matrix; not where all rows sum to zero"""
    return not (case.facts.zero_row_sums or unavailable(case.A))


class Rule(NamedTuple):
    """A choice by its names: a method with the preconditioner or scaling that accelerates it.

    Attributes
    ----------
    method, part : str
        Names in the registry.
    suits : callable
        ``suits(case)``: True if it is a choice for a `Case` of its class.
    note : str
        Added to the reasons of a result.
    """

    method: str
    part: str
    suits: Callable = every
    note: str = ""


class Class(NamedTuple):
    """A class of matrices and its rules.

    ``holds(facts)``: True if A belongs to it. ``why(facts)``: a sentence on A, for the reasons of a result."""

    title: str
    holds: Callable
    why: Callable
    rules: tuple[Rule, ...]


def _without_diagonal(facts):
    what = "rows are empty" if facts.empty_rows == facts.zero_diagonal else "diagonal entries are zero"
    return (f"{facts.zero_diagonal} of {facts.n} {what} (the first in row {facts.first_zero}), where Jacobi and "
            "incomplete factors cannot start")


def _definite(facts):
    return f"A is {facts.symmetry} with a positive diagonal" + (
        "; its rows sum to zero, so it is singular, and b must sum to zero too" if facts.zero_row_sums else
        " and diagonally dominant, which makes it positive definite" if facts.dominant
        else ", so it may be positive definite; cg will tell")


def _other(facts):
    return f"A is {facts.symmetry}" + (
        " but its diagonal is not positive, so it is not positive definite" if facts.hermitian else "") + (
        "; its rows sum to zero, so it is singular" if facts.zero_row_sums else "")


RESIDENT_NOTE = "; its vectors fit on the multiprocessors, where resident_cg keeps them"
SHIFTED_NOTE = "; for a Helmholtz operator, a shift helps"
CLASSES = (
    Class("a zero on the diagonal", lambda facts: facts.zero_diagonal, _without_diagonal, (
        Rule("minres", "none", hermitian),
        Rule("gmres", "none", not_hermitian),
    )),
    Class("Hermitian with a positive diagonal", lambda facts: facts.hermitian and facts.positive_diagonal, _definite, (
        Rule("cg", "jacobi"),
        Rule("cg", "ic"),
        Rule("resident_cg", "jacobi", resides, RESIDENT_NOTE),
        Rule("cg", "smoothed_aggregation", elastic, "; its unknowns come in groups, coupled as in elasticity"),
        Rule("cg", "amg", large_m_matrix, "; its couplings are negative: AMG suits it"),
        Rule("cg", "amg", large_other),
        Rule("minres", "jacobi", doubtful, "; and it need not be definite for minres"),
        Rule("cocg", "ilu", waves),
        Rule("cocg", "jacobi", waves),
        Rule("cocg", "shifted_laplacian", waves, SHIFTED_NOTE),
    )),
    Class("complex symmetric", lambda facts: facts.symmetric and facts.complex, _other, (
        Rule("cocg", "ilu"),
        Rule("cocg", "jacobi"),
        Rule("cocg", "shifted_laplacian", note=SHIFTED_NOTE),
    )),
    Class("any other", lambda facts: True, _other, (
        Rule("bicgstab", "ilu"),
        Rule("bicgstab", "jacobi"),
        Rule("bicgstab", "amg", large_m_matrix, "; its couplings are negative: AMG suits it"),
        Rule("minres", "none", hermitian),
    )),
)
IN_EVERY_CLASS = (
    Rule("gmres", "jacobi", full_diagonal, "; the residual of gmres never grows"),
    Rule("direct", "none", factorable, "; a factorisation takes no iterations"),
)


@cache
def setting(kind, name):
    """Return the settings object, which is frozen, registered as ``name`` under ``kind``, with its defaults."""
    return load(kind, name)()


@cache
def shifted_laplacian():
    """Return settings of the shifted Laplacian by ILU(1), for Helmholtz operators."""
    return load("precond", "shifted_laplacian")(inner=load("precond", "ilu")(level=1))


def predicted_choices(A, facts, named, form, machine, resident, incomplete_lu) -> list[Configuration]:
    """Return the choices for A with their predictions, the one predicted to be fastest first.

    Parameters
    ----------
    A : CSRMatrix
    facts : Facts
    named : Configuration
        The parts that the user named.
    form : format settings
        The format for iterative methods.
    machine : Machine
    resident : bool
        True if the resident form of cg may be a choice.
    incomplete_lu : callable
        Returns (settings of the incomplete LU that suits A, a text on its blocks).
    """
    case = Case(A, facts, resident)
    first_class = next(c for c in CLASSES if c.holds(facts))
    choices, predictions = [], []
    for rule in (*first_class.rules, *IN_EVERY_CLASS):
        if rule.suits(case):
            choices.append(_configuration(rule, case, first_class.why(facts), named, form, incomplete_lu))
            predictions.append(
                direct(A, machine, CERTAIN[A.space.name]) if rule.method == "direct" else
                iterative(A, facts, choices[-1], machine, rule.part in MULTIGRID and case.m_matrix, case.layers,
                          case.elastic, case.jacobi_iterations))

    def seconds(k):
        return predictions[k].setup + predictions[k].solve

    first = fastest_choice(predictions, range(len(choices)), seconds)        # it may refine a lower bound
    order = sorted(range(len(choices)), key=lambda k: (k != first, seconds(k)))
    return [replace(choices[k], prediction=predictions[k]) for k in order]


def _configuration(rule, case, why, named, form, incomplete_lu):
    """Return the Configuration of a `Rule` for a `Case`; for the other arguments see `predicted_choices`."""
    scaling, precond, note = None, None, rule.note
    if rule.part == "jacobi" and rule.method in ("cg", "resident_cg"):
        scaling = setting("scaling", "jacobi")
    elif rule.part == "ilu" and not case.facts.symmetric:
        precond, blocks = incomplete_lu()
        note += blocks
    elif rule.part == "shifted_laplacian":
        precond = shifted_laplacian()
    elif rule.part != "none":
        precond = setting("precond", rule.part)
    method = setting("method", rule.method)
    if rule.method == "resident_cg":
        form = method.format
    elif rule.method == "direct":
        form = named.format
    return Configuration(method, precond, scaling, format=form, why=(why + note,), without=named.without)


def may_reside(A) -> bool:
    """True on a GPU if the vectors of resident_cg for A may fit on its multiprocessors."""
    space = A.space
    return space.name != "cpu" and space.bulk_copies and A.shape[0] <= most_rows(space.multiprocessors, A.dtype)
