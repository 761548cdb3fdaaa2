"""Verdicts: each comes from a comparison of numbers, never from a text."""
from __future__ import annotations

import math
from dataclasses import dataclass

REPRODUCED, CONTRADICTED, NOT_TESTED = "reproduced", "contradicted", "not tested"
NO_RECORD = "there is no record"


@dataclass(frozen=True)
class Line:
    """One comparison: what is compared, the paper's value, swell's value, the rule, its verdict, and the source of
    swell's value."""

    what: str
    paper: str
    ours: str
    rule: str
    verdict: str
    source: str = ""

    def row(self) -> tuple:
        """The line as the cells of a table."""
        return self.what, self.paper, self.ours, self.rule, self.verdict, self.source


def judged(what, paper, ours, rule, holds, source="") -> Line:
    """Return a Line: reproduced if the rule ``holds`` (bool), contradicted if not."""
    return Line(what, str(paper), str(ours), rule, REPRODUCED if holds else CONTRADICTED, source)


def untested(what, paper, why=NO_RECORD) -> Line:
    """Return a Line without a verdict; ``why``: what is missing."""
    return Line(what, str(paper), "", why, NOT_TESTED)


def some(lines, what, paper, why=NO_RECORD) -> list:
    """Return the list of ``lines``, or, if there are none, of one Line without a verdict."""
    return list(lines) or [untested(what, paper, why)]


def at_least(what, paper, value, bound, source="", missing=NO_RECORD) -> Line:
    """Return a Line: reproduced if ``value`` is ``bound`` at least; not tested if the value is None or NaN, because
    of ``missing``."""
    if value is None or math.isnan(value):
        return untested(what, paper, missing)
    return judged(what, paper, f"{value:.4g}", f"at least {bound:.4g}", value >= bound, source)


def at_most(what, paper, value, bound, source="") -> Line:
    """Return a Line: reproduced if ``value`` is ``bound`` at most; not tested if the value is None or NaN."""
    if value is None or math.isnan(value):
        return untested(what, paper)
    return judged(what, paper, f"{value:.4g}", f"at most {bound:.4g}", value <= bound, source)


def known(values) -> list:
    """Return the numbers among ``values``: None and NaN are left out."""
    return [value for value in values if value is not None and not math.isnan(value)]


def all_at_least(what, paper, values, bound, source="") -> Line:
    """Return one Line for several numbers: reproduced if the least of them is ``bound`` at least."""
    return at_least(what, paper, min(known(values), default=None), bound, source)


def all_at_most(what, paper, values, bound, source="") -> Line:
    """Return one Line for several numbers: reproduced if the largest of them is ``bound`` at most."""
    return at_most(what, paper, max(known(values), default=None), bound, source)


def overall(lines) -> str:
    """Return one verdict for several Lines: contradicted if one of them is, not tested if all are."""
    verdicts = {line.verdict for line in lines}
    return next((verdict for verdict in (CONTRADICTED, REPRODUCED) if verdict in verdicts), NOT_TESTED)


def ratio(a, b) -> float | None:
    """Return a / b; None if one of them is missing: None, NaN, or 0 below the line."""
    return None if not b or a is None or math.isnan(a) or math.isnan(b) else a / b
