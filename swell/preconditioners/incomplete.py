"""Base of both incomplete factorisations, LU and Cholesky: checks of settings, the algorithms' base class, and an
operator that raises the shift until it factors.

Row by row and by levels, the factors are exact on their pattern (Saad, Iterative Methods, algorithm 10.3). Fixed-point
sweeps over all entries at once approach these values (Chow and Patel 2015). The sweeps use two buffers here, so that
they give the same bits every time.
"""
import numbers
from abc import ABC, abstractmethod

import numpy as np

from swell.core.errors import InputError
from swell.core.operator import LinearOperator
from swell.core.registry import resolve
from swell.core.settings import ON_GPU, Idle, one_of, positive, without_effect
from swell.preconditioners.triangular import combine, resolve_solve

NONE = np.iinfo(np.int64).max   # no row
FIRST_SHIFT, LARGEST_SHIFT = 1e-3, 1e3
LEVELS = Idle("factor", ON_GPU, "rows are factored by levels there in any case", "levels")
ORDERINGS = {"natural": None, "multicolor": "jones_plassmann"}     # accepted in addition to the registered names


def check(settings, ways):
    """Raise InputError for an invalid ``level``, ``shift``, ``solve``, ``ordering``, ``factor`` or ``factor_sweeps`` of
    an `ILU` or `IC`. ``ways``: the names that ``factor`` may have."""
    positive(settings, "level", 0)
    if not isinstance(settings.shift, numbers.Real) or not 0 <= settings.shift <= LARGEST_SHIFT:
        raise InputError(f"{type(settings).__name__}(shift={settings.shift!r}): expected a number from 0 to "
                         f"{LARGEST_SHIFT:g}")
    resolve_solve(settings.solve)
    resolve_ordering(settings.ordering)
    one_of(settings, "factor", ways)
    positive(settings, "factor_sweeps")
    if settings.factor != "sweeps":
        without_effect(settings, f"with factor={settings.factor!r}", "give factor='sweeps'", "factor_sweeps")


def resolve_ordering(choice):
    """Return the settings object of an ordering from ``choice``, its name or the object; None for the natural order."""
    return resolve("ordering", ORDERINGS.get(choice, choice) if isinstance(choice, str) else choice)


class Factorisation(ABC):
    """An algorithm that computes the values of ``factor``.

    Parameters
    ----------
    factor : CSRMatrix or BlockFactor
        Its pattern is given; the algorithm writes its values.
    kernels : str
        Name of the kernel file.
    tiny : float
        A pivot below ``tiny`` times the machine precision, relative to its row, is a breakdown.

    Attributes
    ----------
    bad : int device array, shape (2,)
        The first row with a bad pivot, and the number of bad pivots (LU only). The kernels write it.
    change : float
        Relative change of the factors in the last fixed-point sweep; 0 without sweeps.
    """

    nbytes = 0
    change = 0.0

    def __init__(self, factor, kernels, tiny):
        self.factor, self.space = factor, factor.space
        self.kernels = self.space.kernels("swell.preconditioners", kernels, factor.dtype)
        self.bad = self.space.xp.empty(2, np.int64)
        self.tiny = tiny * float(np.finfo(factor.dtype).eps)

    @abstractmethod
    def factorise(self, *values):
        """Run the kernels, which write the values of ``factor`` and ``bad``. Each algorithm names its arguments
        ``values``."""

    def __call__(self, *values):
        """Factor: write the values of ``factor``. Returns the first row with a bad pivot, or None, and the number of
        bad pivots (LU only). ``values`` are the arguments of `factorise`."""
        self.clear()
        self.factorise(*values)
        first, count = (int(v) for v in self.space.to_host(self.bad))  # sync
        return None if first == NONE else first, count

    def clear(self):
        """Reset ``bad`` to "no bad pivot"."""
        self.space.from_host(np.array([NONE, 0]), self.bad)

    def iterate(self, sweeps, old, sweep):
        """Call ``sweep(old, fresh)`` ``sweeps`` times; it must write ``fresh`` from ``old``, two arrays of the factor's
        values that change roles after each call.

        ``old`` is the start, and is overwritten. Writes the last iterate into ``factor``. Returns the last two
        iterates, the older one first."""
        fresh = self.space.xp.empty_like(old)
        for _ in range(sweeps):
            self.clear()                         # only pivots of the last sweep count
            sweep(old, fresh)
            old, fresh = fresh, old
        self.factor.data[...] = old
        return fresh, old


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
