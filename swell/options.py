"""The options of a solve: one record, for `swell.solve`, `swell.prepare` and every front end that passes them on.

A function that takes them ends in ``**options: Unpack[OptionsDict]``. Its `Accepted` has the function's own defaults,
refuses unknown names, and shows all names in the signature, so that ``help``, notebooks and type checkers know them:

    OPTIONS = Accepted(rtol=1e-6)

    @OPTIONS.shown
    def solve_my_problem(problem, **options: Unpack[OptionsDict]):
        return swell.solve(*problem.system(), **OPTIONS.read(options).keywords())
"""
from __future__ import annotations

import copy
import inspect
import re
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypedDict

from swell.core.configuration import Configuration
from swell.core.errors import InputError, UnknownOption
from swell.core.registry import resolve
from swell.core.settings import differs, shown
from swell.core.stopping import Stopping
from swell.preconditioners.user import resolve_preconditioner
from swell.transforms.nullspace import resolve_nullspace

PARTS = ("method", "precond", "scaling", "ordering", "format")
ENTRY = "options\n    See `swell.Options`.\n"     # `Accepted.shown` replaces it by all entries


class OptionsDict(TypedDict, total=False):
    """The options as keyword arguments, for type checkers; `Options` documents them."""

    method: Any
    precond: Any
    M: Any
    scaling: Any
    ordering: Any
    format: Any
    nullspace: Any
    smoother: Any
    device: str | None
    dtype: Any
    block: int | None
    rtol: float | None
    atol: float
    maxiter: int | None
    stopping: Stopping | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Options:
    """How swell sets a system up, and when a solve ends. None leaves a choice to swell.

    Parameters
    ----------
    method, precond, scaling, ordering, format : str or settings object, optional
        A name in the registry (``swell.names("method")``), with settings as in ``"gmres(restart=50)"``, or an object:
        ``swell.GMRES(restart=50)``. "none" leaves a part out. Without a method, or with "auto", an advisor chooses.
    M : callable, LinearOperator or matrix, optional
        Your own preconditioner, an approximate inverse of A, as in SciPy. Give M or ``precond``, not both. If the
        method needs a self-adjoint M, as cg does, two applications at setup measure that, and a note names an M that is
        not.
    nullspace : "constants", array of shape (n,) or (n, k), or NullSpace, optional
        A basis of the null space of a singular A. The solver checks that b is compatible (or projects it, with
        ``NullSpace(..., project=True)``), and returns the x of least norm.
    smoother : str or settings object, optional
        For cg: sweeps before it and between its iterations, ``CG(before=..., between=..., every=...)``.
    device : {"cpu", "cuda", "cuda:1", "cuda:all"}, optional
        Where to solve; by default where the data is. "cuda:all" distributes the rows of A over all GPUs of this
        machine, and x is a NumPy array.
    dtype : {"float32", "float64", "complex64", "complex128"}, optional
        Convert A to this type first.
    block : int, optional
        Block size: consecutive rows that belong together, such as the unknowns of a mesh point. A part's own block size
        takes precedence. Default: SciPy's and PETSc's block size, or the dense blocks found in A.
    rtol, atol, maxiter : float, float, int
        Converged means ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol), computed with A, b and the returned x, and certain in spite
        of rounding. The default rtol is 1e-8, and 1e-5 in float32 and complex64. ``maxiter`` limits the
        iterations; by default n, but at least 1000 and at most 20 000.
    stopping : Stopping, optional
        All stopping settings at once, instead of ``rtol``, ``atol`` and ``maxiter``.

    Examples
    --------
    >>> import numpy as np, swell
    >>> options = swell.Options(method="cg", precond="jacobi", rtol=1e-10)
    >>> A = swell.gallery.poisson2d(30)
    >>> swell.solve(A, np.ones(900), **options.keywords()).converged
    True
    >>> swell.solve(A, np.ones(900), precon="jacobi")
    Traceback (most recent call last):
    ...
    swell.core.errors.UnknownOption: precon='jacobi': no such option; did you mean precond?
    """

    method: Any = None
    precond: Any = None
    M: Any = None
    scaling: Any = None
    ordering: Any = None
    format: Any = None
    nullspace: Any = None
    smoother: Any = None
    device: str | None = None
    dtype: Any = None
    block: int | None = None
    rtol: float | None = None
    atol: float = 0.0
    maxiter: int | None = None
    stopping: Stopping | None = None

    def __post_init__(self):
        for name in PARTS:                       # the word for None, which a command line and a default need
            if isinstance(getattr(self, name), str) and getattr(self, name).lower() == "auto":
                object.__setattr__(self, name, None)

    def keywords(self) -> dict:
        """Return the options that differ from the defaults, as keyword arguments of `swell.solve` and `prepare`."""
        return {f.name: getattr(self, f.name) for f in fields(Options) if differs(self, f.name)}

    @cached_property
    def configuration(self) -> Configuration:
        """The settings of all named parts. A misspelt name is an error here, before it costs a conversion of A.

        Raises
        ------
        InputError
            For an unknown name, or for both M and precond.
        """
        if self.M is not None and self.precond is not None:
            raise InputError("both M and precond were given: name one of them")
        named = {"precond": self.M if self.M is not None else self.precond, "scaling": self.scaling,
                 "ordering": self.ordering, "format": self.format, "nullspace": self.nullspace,
                 "smoother": self.smoother}
        without = frozenset(kind for kind, part in named.items() if isinstance(part, str) and part.lower() == "none")
        return Configuration(resolve("method", self.method), resolve_preconditioner(named["precond"]),
                             resolve("scaling", self.scaling), resolve("ordering", self.ordering),
                             resolve("format", self.format), resolve_nullspace(self.nullspace),
                             resolve("smoother", self.smoother), without=without)

    @cached_property
    def criterion(self) -> Stopping:
        """The stopping criterion, given as one object or as three numbers.

        Raises
        ------
        InputError
            For numbers out of range, or for ``stopping`` beside them.
        """
        if self.stopping is None:
            return Stopping(rtol=self.rtol, atol=self.atol, maxiter=self.maxiter)
        if not isinstance(self.stopping, Stopping):
            raise InputError(f"stopping={shown(self.stopping)}: expected a swell.Stopping, such as "
                             "swell.Stopping(rtol=1e-6)")
        if (self.rtol, self.atol, self.maxiter) != (None, 0.0, None):
            raise InputError("stopping was given beside rtol, atol or maxiter: put them all into stopping")
        return self.stopping


class Accepted:
    """The options that one function takes.

    Parameters
    ----------
    record : type
        `Options`, or a class derived from it with further fields.
    without : tuple of str
        Fields that the function does not take.
    defaults
        The function's own defaults, where they differ from the record's.
    """

    def __init__(self, record=Options, without=(), **defaults):
        self.record, self.defaults = record, defaults
        self.names = [f.name for f in fields(record) if f.name not in without]

    def but(self, **defaults) -> "Accepted":
        """Return the same with other defaults."""
        made = copy.copy(self)
        made.defaults = {**self.defaults, **defaults}
        return made

    def shown(self, function):
        """Decorate a function that ends in ``**options``: put the names and defaults into its signature, and their
        documentation into its docstring in place of `ENTRY`."""
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        kinds = {f.name: f for f in fields(self.record)}
        function.__signature__ = signature.replace(parameters=[*own, *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY,
                              default=self.defaults.get(name, kinds[name].default)) for name in self.names)])
        if function.__doc__ and Options.__doc__:                 # python -OO has none
            entries = re.search(r"-{10}\n(.*?\n)\n", inspect.cleandoc(Options.__doc__), re.DOTALL)
            function.__doc__ = inspect.cleandoc(function.__doc__).replace(ENTRY, entries[1])
        return function

    def read(self, options: dict) -> Options:
        """Return the record of the keyword arguments that came. A given ``stopping`` replaces a default tolerance.

        Raises
        ------
        UnknownOption
            For a name that the function does not take.
        """
        for name in options:
            if name not in self.names:
                import difflib
                close = difflib.get_close_matches(name, self.names, 1)
                raise UnknownOption(f"{name}={shown(options[name])}: no such option; "
                                    + (f"did you mean {close[0]}?" if close else f"expected {', '.join(self.names)}"))
        defaults = self.defaults
        if options.get("stopping") is not None:
            defaults = {name: value for name, value in defaults.items() if name not in ("rtol", "atol", "maxiter")}
        return self.record(**{**defaults, **options})
