"""Names for the places of arrays that kernels share: the judge's record here, each method's scalars in its package.

A name is declared once. Hosts and Numba's kernels import it, and the loader of device kernels writes it as an ``enum``
before the source (``declarations``). Such an array is laid out as [place][column]; a column belongs to one right-hand
side, and one column is in use.

Numba's compiled functions in ``__pycache__`` hold these numbers: delete them (``*.nbi``) after a change here.
"""
from __future__ import annotations

import enum
import importlib
import importlib.util

COLUMNS = 1


class Slots(enum.IntEnum):
    """Places of one array, numbered from 0 by ``auto()``."""

    @staticmethod
    def _generate_next_value_(name, start, count, last):
        return count


class Flag(Slots):
    """The judge's integers."""

    STOP = enum.auto()              # not zero: every kernel of the iteration becomes a no-op
    VERDICT = enum.auto()           # a Code
    ITERATION = enum.auto()         # iterations judged
    MAXITER = enum.auto()
    BEST_ITERATION = enum.auto()    # when the least norm² so far was met
    WINDOW = enum.auto()            # iterations without progress that count as stagnation; 0: never
    FINAL = enum.auto()             # not zero: the end of a cycle may not lift the stop
    EVERY = enum.auto()             # iterations from one judgement to the next; 0 or 1: each is judged
    CYCLE = enum.auto()             # iterations of a cycle
    SLOW_CYCLES = enum.auto()          # slow cycles that count as stagnation; 0: any number is allowed


class Limit(Slots):
    """The judge's squared norms."""

    THRESHOLD2 = enum.auto()        # converged at or below
    GROWTH2 = enum.auto()           # diverged above
    BEST2 = enum.auto()             # the least so far
    CYCLE2 = enum.auto()            # the true residual at the start of this cycle
    RATIO2 = enum.auto()            # judged norm² over the norm² of a cycle's recursion; 1 unless the system is scaled


class Code(Slots):
    """Verdicts: the numbers of ``Reason``."""

    RUNNING = enum.auto()
    CONVERGED = enum.auto()
    MAXITER_REACHED = enum.auto()
    STAGNATED = enum.auto()
    DIVERGED = enum.auto()
    NONFINITE = enum.auto()
    BREAKDOWN = enum.auto()
    INDEFINITE = enum.auto()
    JUDGED = -1                     # in place of a verdict: nothing is left to be judged


class Norms(Slots):
    """The squared norms of one residual."""

    JUDGED2 = enum.auto()           # of the original system
    OWN2 = enum.auto()              # of the system iterated on, which differs if it is scaled


STEMS = {"judging": (Norms,)}


def declarations(package: str, stem: str) -> str:
    """C++ for the kernels ``stem`` of a package: the judge's names, and what ``STEMS`` of ``package.slots`` adds."""
    groups = [Flag, Limit, Code]
    if importlib.util.find_spec(f"{package}.slots"):
        groups += importlib.import_module(f"{package}.slots").STEMS.get(stem, ())
    return f"enum {{ COLUMNS = {COLUMNS}, FLAGS = {len(Flag)}, LIMITS = {len(Limit)} }};\n{''.join(map(_enum, groups))}"


def _enum(group):
    places = ", ".join(f"{place.name} = {place.value}" for place in group)
    return f"enum {group.__name__} {{ {places} }};\n"
