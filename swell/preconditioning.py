"""``Preconditioning``: a prepared system's preconditioner alone, z = M r, as a linear operator of SciPy and CuPy.

A setup builds M for the transformed system A' = L A R (`core/transform.py`). In the caller's rows and scaling the
preconditioner is R M L, and its adjoint Lᴴ Mᴴ Rᴴ. An application costs one of M and a pass over r for each transform.
"""
from __future__ import annotations

from swell import inputs
from swell.core.encoding import printable
from swell.core.errors import InputError
from swell.core.linear_map import LinearMap
from swell.solving.measure import write


class Preconditioning(LinearMap):
    """One application of a Solver's preconditioner, an approximate inverse of A.

    Made by ``Solver.M``. It follows the Solver's updates, and takes its turn.

    Parameters
    ----------
    solver : Solver
    exclusive : callable
        Returns a context that yields the Prepared of the first choice, which nobody else then uses.

    Attributes
    ----------
    operator : LinearOperator
        swell's own operator, for the transformed system; ``print`` describes it. None if its factorisation failed.
    """

    def __init__(self, solver, exclusive):
        self._solver, self._exclusive = solver, exclusive

    @property
    def A(self):
        return self._solver.A

    @property
    def operator(self):
        with self._exclusive() as prepared:
            return prepared.setup.M

    @property
    def failure(self):
        """The FactorisationError that each application raises, or None."""
        with self._exclusive() as prepared:
            return prepared.setup.failure

    @property
    def hierarchy(self):
        """The levels of algebraic multigrid.

        Raises
        ------
        InputError
            If the preconditioner is another one.
        """
        from swell.preconditioners.amg.operator import AMGOperator
        operator = self.operator
        if not isinstance(operator, AMGOperator):
            raise InputError(f"{self.describe()} has no levels: precond='amg' has")
        return operator.hierarchy

    @property
    def nbytes(self) -> int:
        """Storage in bytes."""
        return self.operator.nbytes

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user on its setup."""
        return self.operator.notes

    @property
    def fixed(self):
        """The operator where it acts on the caller's vectors themselves, without transforms; else None."""
        with self._exclusive() as prepared:
            return None if prepared.setup.transforms else prepared.setup.M

    def _map(self, r, adjoint):
        if r.ndim == 2:
            return inputs.stack([self._map(r[:, j], adjoint) for j in range(r.shape[1])], r, r)
        with self._exclusive() as prepared:
            setup, space = prepared.setup, prepared.space
            if not space.ranks.single:
                raise InputError("across ranks a preconditioner acts in a solve only: prepare the system on one device")
            if setup.failure is not None:
                raise setup.failure
            if setup.M is None:
                raise InputError("the Solver's first choice has no preconditioner any more: take s.M again")
            write(space, inputs.read_vector(r, self.shape[0], "r", space=space), prepared.b0)
            prepared.precondition(adjoint)
            return inputs.returned(prepared.x0, space, r)

    def describe(self) -> str:
        """One line on the preconditioner, as a printed result shows it."""
        with self._exclusive() as prepared:
            return str(prepared.setup.failure) if prepared.setup.M is None else prepared.setup.M.describe()

    @printable
    def __str__(self):
        return str(self.operator) if self._has_own_text() else self.describe()

    def __repr__(self):
        return f"Preconditioning({repr(self.operator) if self._has_own_text() else self.describe()})"

    def _has_own_text(self):
        return type(self.operator).__repr__ is not object.__repr__ and self.operator is not None

    def _repr_html_(self):
        html = getattr(self.operator, "_repr_html_", None)       # a notebook shows this
        return None if html is None else html()
