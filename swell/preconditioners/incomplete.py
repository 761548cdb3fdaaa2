"""What the settings of all incomplete factorisations share: the shift, the ordering, and how they are checked."""
from __future__ import annotations

import numbers

from swell.core.errors import InputError
from swell.core.settings import ON_GPU, Idle, positive, without_effect
from swell.preconditioners.triangular import resolve_solve

FIRST_SHIFT, LARGEST_SHIFT = 1e-3, 1e3
LEVELS = Idle("factor", ON_GPU, "rows are factored by levels there in any case", "levels")
ORDERINGS = {"natural": None, "multicolor": "jones_plassmann"}     # beside the names registered as orderings


def check(settings):
    """Raise InputError for a ``shift``, ``solve`` or ``ordering`` that is none."""
    if not isinstance(settings.shift, numbers.Real) or not 0 <= settings.shift <= LARGEST_SHIFT:
        raise InputError(f"{type(settings).__name__}(shift={settings.shift!r}): expected a number from 0 to "
                         f"{LARGEST_SHIFT:g}")
    resolve_solve(settings.solve)
    resolve_ordering(settings.ordering)


def check_factor(settings, ways):
    """Raise InputError if ``factor`` is none of these ways, or ``factor_sweeps`` no count."""
    if settings.factor not in ways:
        raise InputError(f"{type(settings).__name__}(factor={settings.factor!r}): expected "
                         f"{', '.join(map(repr, ways[:-1]))} or {ways[-1]!r}")
    positive(settings, "factor_sweeps")
    if settings.factor != "sweeps":
        without_effect(settings, f"with factor={settings.factor!r}", "give factor='sweeps'", "factor_sweeps")


def resolve_ordering(choice):
    """The settings of an ordering, or None for the natural one."""
    from swell.core.registry import resolve
    return resolve("ordering", ORDERINGS.get(choice, choice) if isinstance(choice, str) else choice)
