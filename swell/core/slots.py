"""Slots: named indices of the arrays that kernels share. The judge's are here, a method's scalars in its package.

A name is declared once. The host imports it. Kernels get it as an ``enum`` before their source (``declarations``): CPU
kernels when the library is built, GPU kernels when they are loaded. An array of slots belongs to one
right-hand side; with several right-hand sides, each has its own.
"""
from __future__ import annotations

import enum
import importlib
import importlib.util
from collections import namedtuple


def slots(group):
    """Decorate a class of names: return a named tuple of their numbers.

    Numbers follow the rule of a C enum: the first ``auto()`` is 0, any other is one more than the number before it."""
    names = [name for name in vars(group) if not name.startswith("_")]
    numbers = []
    for name in names:
        said = getattr(group, name)
        numbers.append(said if isinstance(said, int) else numbers[-1] + 1 if numbers else 0)
    return namedtuple(group.__name__, names)(*numbers)


@slots
class Flag:
    """The judge's integers."""

    STOP = enum.auto()              # not zero: every kernel of the iteration becomes a no-op
    VERDICT = enum.auto()           # a Code
    ITERATION = enum.auto()         # number of iterations judged
    MAXITER = enum.auto()
    BEST_ITERATION = enum.auto()    # the iteration that had the smallest norm² so far
    WINDOW = enum.auto()            # number of iterations without progress that is stagnation; 0: never
    FINAL = enum.auto()             # not zero: the end of a cycle may not lift the stop
    EVERY = enum.auto()             # judge every EVERY iterations; 0 or 1: judge each
    CYCLE = enum.auto()             # iterations in a cycle
    SLOW_CYCLES = enum.auto()       # number of slow cycles, from now on, that is stagnation; 0: no limit


@slots
class Limit:
    """The judge's squared norms."""

    THRESHOLD2 = enum.auto()        # converged if norm² is at or below it
    GROWTH2 = enum.auto()           # diverged if norm² is above it
    BEST2 = enum.auto()             # the smallest norm² so far
    CYCLE2 = enum.auto()            # norm² of the true residual at the start of this cycle
    RATIO2 = enum.auto()            # judged norm² / norm² of the cycle's recursion; 1 unless the system is scaled


@slots
class Code:
    """Verdicts, with the codes of ``Reason``."""

    RUNNING = enum.auto()
    CONVERGED = enum.auto()
    MAXITER_REACHED = enum.auto()
    STAGNATED = enum.auto()
    DIVERGED = enum.auto()
    NONFINITE = enum.auto()
    BREAKDOWN = enum.auto()
    INDEFINITE = enum.auto()
    JUDGED = -1                     # in place of a verdict: this iteration has been judged already


@slots
class Norms:
    """The squared norms of one residual."""

    JUDGED2 = enum.auto()           # of the original system
    OWN2 = enum.auto()              # of the transformed system, on which the method iterates


STEMS = {"judging": (Norms,)}


def declarations(package: str, stem: str) -> str:
    """Return C++ enums for the kernel file ``stem`` of a package: core/slots.py's, and those in
    ``package.slots.STEMS``."""
    groups = [Flag, Limit, Code]
    if importlib.util.find_spec(f"{package}.slots"):
        groups += importlib.import_module(f"{package}.slots").STEMS.get(stem, ())
    return f"enum {{ FLAGS = {len(Flag)}, LIMITS = {len(Limit)} }};\n{''.join(map(_enum, groups))}"


def _enum(group):
    places = ", ".join(f"{name} = {place}" for name, place in group._asdict().items())
    return f"enum {type(group).__name__} {{ {places} }};\n"
