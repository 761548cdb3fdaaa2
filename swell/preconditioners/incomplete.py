"""Base of all incomplete factorisations: checks of settings, and an operator that raises the shift until it factors."""
from __future__ import annotations

import numbers
from abc import abstractmethod

from swell.core.errors import InputError
from swell.core.operator import LinearOperator
from swell.core.registry import resolve
from swell.core.settings import ON_GPU, Idle, positive, without_effect
from swell.preconditioners.triangular import combine, resolve_solve

FIRST_SHIFT, LARGEST_SHIFT = 1e-3, 1e3
LEVELS = Idle("factor", ON_GPU, "rows are factored by levels there in any case", "levels")
ORDERINGS = {"natural": None, "multicolor": "jones_plassmann"}     # accepted in addition to the registered names


def check(settings):
    """Raise InputError for an invalid ``shift``, ``solve`` or ``ordering``. ``settings`` is an `IncompleteLU` or
    `IncompleteCholesky`."""
    if not isinstance(settings.shift, numbers.Real) or not 0 <= settings.shift <= LARGEST_SHIFT:
        raise InputError(f"{type(settings).__name__}(shift={settings.shift!r}): expected a number from 0 to "
                         f"{LARGEST_SHIFT:g}")
    resolve_solve(settings.solve)
    resolve_ordering(settings.ordering)


def check_factor(settings, ways):
    """Raise InputError if ``settings.factor`` is not in ``ways``, a tuple of names, or ``settings.factor_sweeps`` is
    not a positive count."""
    if settings.factor not in ways:
        raise InputError(f"{type(settings).__name__}(factor={settings.factor!r}): expected "
                         f"{', '.join(map(repr, ways[:-1]))} or {ways[-1]!r}")
    positive(settings, "factor_sweeps")
    if settings.factor != "sweeps":
        without_effect(settings, f"with factor={settings.factor!r}", "give factor='sweeps'", "factor_sweeps")


def resolve_ordering(choice):
    """Return the settings object of an ordering from ``choice``, its name or the object; None for the natural order."""
    return resolve("ordering", ORDERINGS.get(choice, choice) if isinstance(choice, str) else choice)


class IncompleteOperator(LinearOperator):
    """z = M r by incomplete factors of one matrix.

    Attributes
    ----------
    order : int array or None
        Row i of the factors belongs to row ``order[i]`` of A; block rows if the factors have blocks.
    shift : float
        α of the factored matrix, A plus α times a diagonal matrix.
    """

    scratch = ("_combined",)

    def __init__(self, A, settings):
        super().__init__(A.shape, A.dtype, A.space)
        self.settings, self._name = settings, type(settings).__name__
        self._combined = None

    def _find_order(self, A):
        """Return the elimination order that the settings ask for, an int array, or None for the natural order."""
        ordering = resolve_ordering(self.settings.ordering)
        return None if ordering is None else ordering.order(A)

    def _row(self, row):
        """Return the number in A of a row of the factors."""
        return row if self.order is None else int(self.order[row])

    def _raise_shift(self, attempt, raising=True):
        """Call ``attempt(shift)`` with the shift of the settings, then with doubled shifts until it returns None
        (Manteuffel 1980).

        ``attempt`` returns None for success, else any description of the failure. ``raising=False``: call it once only.
        Sets ``shift`` to the last shift. Returns the first and the last result of ``attempt``."""
        self.shift = float(self.settings.shift)
        first = wrong = attempt(self.shift)
        while raising and wrong is not None and self.shift < LARGEST_SHIFT:
            self.shift = max(2 * self.shift, FIRST_SHIFT)
            wrong = attempt(self.shift)
        return first, wrong

    @abstractmethod
    def _solve(self, x, out):
        """Write out = M x."""

    def apply(self, x, out, alpha=1, beta=0):
        combine(self, self._solve, x, out, alpha, beta)
