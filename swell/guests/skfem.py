"""``solver``: swell as scikit-fem's ``solver=``.

    from swell.guests.skfem import solver
    x = skfem.solve(*skfem.condense(A, b, D=D), solver=solver())
"""
from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from swell.core.errors import InputError, NotConverged
from swell.recurring import Recurring
from swell.options import Accepted, Options, OptionsDict
from swell.solving.inverse import failure
from swell.preconditioners.amg.smoothed_aggregation import SmoothedAggregation
from swell.transforms.nullspace import rigid_body_modes

OPTIONS = Accepted()


@OPTIONS.shown
def solver(*, basis=None, failure="raise", **options: Unpack[OptionsDict]) -> "SkfemSolver":
    """Return a linear solver for ``skfem.solve(A, b, solver=...)``.

    Parameters
    ----------
    basis : skfem basis of displacements, optional
        For elasticity with nodal elements: the rigid motions at its degrees of freedom become the near null space of
        smoothed aggregation, which is then the preconditioner. `condense` removes degrees of freedom: pass the array
        that it returns for those kept as ``basis=(basis, I)``.
    failure : {"raise", "warn"}
        What follows if a solve does not converge: the error `NotConverged`, or a warning and the best x.
    method, precond, ..., stopping
        See `swell.Options`.

    Examples
    --------
    >>> from swell.guests.skfem import solver
    >>> import numpy as np, swell
    >>> solve = solver(method="cg", precond="ic0", rtol=1e-10)
    >>> x = solve(swell.gallery.poisson2d(20), np.ones(400))
    >>> solve.result.converged
    True
    """
    if failure not in ("raise", "warn"):
        raise InputError(f"failure={failure!r}: expected 'raise' or 'warn'")
    chosen = OPTIONS.read(options)
    if basis is not None:
        if chosen.precond is not None or chosen.M is not None:
            raise InputError("basis gives smoothed aggregation its near null space, and another preconditioner was "
                             "named: leave one of them out")
        chosen = replace(chosen, precond=near_null_space(*basis if isinstance(basis, tuple) else (basis, None)))
    return SkfemSolver(failure, chosen)


def near_null_space(basis, kept=None) -> SmoothedAggregation:
    """Return smoothed aggregation with the rigid motions of a basis of nodal displacements, an ``ElementVector`` of
    Lagrange elements. ``kept``: the degrees of freedom that `condense` leaves, by default all."""
    from skfem import ElementVector
    if not isinstance(basis.elem, ElementVector):
        raise InputError(f"basis has elements of type {type(basis.elem).__name__}: expected an ElementVector of "
                         "Lagrange elements, whose degrees of freedom are displacements")
    axes = np.array(basis.split_indices())       # axes[i, j]: the degree of freedom of node j along axis i
    nodes = np.empty(basis.N, int)
    motions = rigid_body_modes(basis.doflocs[:, axes[0]].T)
    modes = np.empty((basis.N, motions.shape[1]))
    modes[axes.T.ravel()] = motions
    nodes[axes] = np.arange(axes.shape[1])
    if kept is not None:
        modes, nodes = modes[kept], np.unique(nodes[kept], return_inverse=True)[1]
    return SmoothedAggregation(near_nullspace=modes, nodes=nodes)


class SkfemSolver:
    """A function of (A, b) that keeps its setup as long as the pattern of A recurs.

    Attributes
    ----------
    result : Result or None
        The last solve's.
    """

    def __init__(self, failure, options):
        self.result: Any = None
        self._failure, self._options, self._recurring = failure, options, Recurring(**options.keywords())

    def __call__(self, A, b, *, x0=None, monitor=None, rtol=None, atol=None, maxiter=None, stopping=None):
        """Solve A x = b and return x. A matrix with the pattern and type of the last one updates the setup.

        ``skfem.solve`` passes its own keyword arguments on: x0 and monitor as `swell.solve` takes them, and ``rtol``,
        ``atol``, ``maxiter`` or ``stopping`` for this solve, in place of the solver's."""
        numbers = {name: value for name, value in (("rtol", rtol), ("atol", atol), ("maxiter", maxiter))
                   if value is not None}
        if stopping is not None:
            numbers["stopping"] = stopping
        elif numbers:
            own = self._options.criterion
            numbers = {"rtol": own.rtol, "atol": own.atol, "maxiter": own.maxiter} | numbers
        self.result = result = self._recurring.solve(A, b, x0=x0, monitor=monitor,
                                                     stopping=Options(**numbers).criterion if numbers else None)
        if (error := failure(result)) is not None:
            if self._failure == "raise" or not isinstance(error, NotConverged):
                raise error
            warnings.warn(str(error), stacklevel=2)
        return result.x

    @property
    def setups(self) -> int:
        """Setups done so far. Other solves updated the last setup to new values, or used it as it was."""
        return self._recurring.setups
