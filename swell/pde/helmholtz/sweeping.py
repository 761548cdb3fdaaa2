"""Sweep: systems A(ω) x = b for one frequency after another, which reuse work of the earlier ones.

All frequencies share the pattern, the format, the ordering and captured graphs (``Solver.update``). They also share the
preconditioner, until its extra iterations cost more than a new setup. Both costs are measured when it is made. If a
solve fails with an old preconditioner, it is repeated with a new one. Earlier solutions give the starting vector
(`starting_guess`).
"""
from __future__ import annotations

import numbers

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import COMPLEX, real
from swell.core.devices import make_space
from swell.core.stopping import Reason
from swell.pde.helmholtz.informed import informed
from swell.pde.helmholtz.starting_guess import StartingGuess
from swell.pde.helmholtz.system import System

REMEMBERED = 8          # solutions that the starting guess combines


class Sweep:
    """Solves (K − ω² M + iω B) x = b for many ω.

    Parameters
    ----------
    K, M, B : scipy.sparse matrices, n × n
        Stiffness (real), mass and boundary matrices.
    method, precond, scaling, ordering, format, rtol, maxiter, device
        See ``swell.solve``. Without a method, the advisor chooses one at the first frequency.
    dtype : {"complex128", "complex64"}
    reuse : bool
        False: every frequency gets a new preconditioner and x₀ = 0.
    remember : int
        Number of earlier solutions that the starting vector combines; 0: none.
    interface : callable, optional
        ``interface(system)`` returns the `Interface` between subdomains for Schwarz; `Helmholtz` passes one.
    part, free : Part, array, optional
        Across ranks: this rank's part of the dofs, and the free dofs; b and x are then the rank's rows.

    Attributes
    ----------
    setups : int
        Number of preconditioners made so far.

    Examples
    --------
    >>> import numpy as np
    >>> from swell import gallery
    >>> from swell.pde import helmholtz
    >>> K, I = gallery.poisson2d(20), gallery.poisson2d(20) * 0 + np.eye(400)
    >>> sweep = helmholtz.Sweep(K, I * (1 - 0.05j), 0.1 * I, method="direct")
    >>> all(sweep.solve(omega, np.ones(400)).converged for omega in (0.5, 0.6, 0.7))
    True
    """

    def __init__(self, K, M, B, *, method=None, precond=None, scaling=None, ordering=None, format=None, rtol=1e-8,
                 maxiter=None, device="cpu", dtype="complex128", reuse=True, remember=REMEMBERED, interface=None,
                 part=None, free=None):
        if str(dtype) not in COMPLEX:
            raise InputError(f"dtype={dtype!r}: expected one of {', '.join(COMPLEX)}; A(ω) is complex")
        if not isinstance(remember, numbers.Integral) or isinstance(remember, bool) or remember < 0:
            raise InputError(f"remember={remember!r}: expected a number of earlier solutions, 0 for none")
        if not isinstance(reuse, bool):
            raise InputError(f"reuse={reuse!r}: expected True or False")
        self._named = {"method": method, "precond": precond, "scaling": scaling, "ordering": ordering, "rtol": rtol,
                       "maxiter": maxiter}
        self._format, self.reuse = format, reuse
        self.n = K.shape[0]
        self.system = _system(K, M, B, device, dtype, part, free)
        self.space = self.system.space
        with self.space.agreed():
            self.space.check_fits(2 * remember * self.space.local_rows(self.n) * np.dtype(dtype).itemsize,
                                  f"remembering {remember} solutions of {self.n} unknowns", "give a smaller remember")
        with self.space.active(self.n):
            self._named["precond"] = informed(precond, self.system, interface)
            self._guess = StartingGuess(self.space, remember if reuse else 0)
        self.solver, self.setups = None, 0
        self._serves = False

    def solve(self, omega, b, monitor=None):
        """Solve for one angular frequency ω (1/s).

        Parameters
        ----------
        omega : float
        b : array, shape (n,)
            On the host or on this sweep's device; the result's x is on the device.
        monitor : callable, optional
            See ``swell.solve``.

        Returns
        -------
        Result
        """
        with self.space.active(self.n):
            with self.space.agreed():
                b = self._checked(omega, b)
            self.system.form(omega)
        kept = self.reuse and self._serves
        self._take_values(kept)
        with self.space.active(self.n):
            x0 = self._guess.of(self.system.A, b)
        result = self.solver.solve(b, x0=x0, monitor=monitor)
        self._learn(result, kept)
        if kept and not result.converged and result.reason not in (Reason.INTERRUPTED, Reason.STOPPED):
            self._take_values(False)
            before, start = result, None if self._hopeless(result) else result.x
            result = self.solver.solve(b, x0=start, monitor=monitor)
            result.notes.append(f"repeated with a new preconditioner: with the old one {before.reason.name} after "
                                f"{before.iterations} iterations, residual {before.residual:.1e}")
            self._learn(result, False)
        if result.converged:
            with self.space.active(self.n):
                self._guess.add(self.space.xp.asarray(result.x))
        return result

    def _checked(self, omega, b):
        """Return b as an array of the space; raise InputError for a bad b or omega."""
        if not real(omega) or not np.isfinite(omega):
            raise InputError(f"omega={omega!r}: expected an angular frequency, a finite number in 1/s")
        b, expected = self.space.xp.asarray(b, dtype=self.system.dtype), (self.space.local_rows(self.n),)
        if b.shape != expected:
            raise InputError(f"b has shape {b.shape}: expected {expected}, an entry for each unknown (across ranks, "
                             "each of the rank's own); for several right-hand sides call solve for each")
        return b

    @property
    def rows(self):
        """An index of the free dofs whose rows of A this rank has: all of them on one rank."""
        return slice(None) if self.space.single_rank else self.system.A.rows

    def gather(self, x):
        """Return the values of all free dofs on the host, from x, this rank's part of a solution. All ranks call it
        together."""
        A = self.system.A
        return self.space.to_host(x) if A.space.single_rank else A.gather(x)

    def any(self, flag) -> bool:
        """True if ``flag`` is true on any rank."""
        return self.space.max_over_ranks(float(bool(flag))) > 0

    def _take_values(self, kept):
        """Update the solver with A(ω), and recompute its preconditioner unless ``kept``; the first call makes the
        solver."""
        if self.solver is None:
            from swell.advisor.choose import default_format
            from swell.api import prepare
            with self.space.active(self.n):
                form = self._format or default_format(self.system.A.diagonal_block)
            self.solver = prepare(self.system.A, format=form, **self._named)
        else:
            self.solver.update(self.system.A, keep_preconditioner=kept)
        self.setups += not kept

    def _learn(self, result, kept):
        """Decide from a Result whether to keep the preconditioner for the next frequency, and which of the advisor's
        choices to try first. ``kept``: this solve used an old preconditioner."""
        if result.converged and result.attempts:                 # the advisor's later choice converged: begin with it
            self.solver.prefer(result.choice)
        if not result.converged or result.attempts or not result.iterations:
            self._serves = result.converged and not result.attempts
        elif kept:
            self._serves = result.iterations <= self._fresh + self._worth
        else:
            timings = result.timings
            setup = timings.get("preconditioner", timings["setup"])
            # the maximum over ranks, since all must come to the same decision
            worth = self.space.max_over_ranks(setup / (timings["solve"] / result.iterations))
            self._fresh, self._worth, self._serves = result.iterations, worth, True

    @staticmethod
    def _hopeless(result):
        """Return True if the x of a failed solve (``result``) is no better than x = 0."""
        return not np.isfinite(result.residual) or result.residual >= 1


def _system(K, M, B, device, dtype, part, free):
    """Return the System of K, M and B on one device, or this rank's PartOfSystem if ``part`` is a Part. ``free``: the
    free dofs."""
    if part is not None:
        from swell.pde.helmholtz.across_ranks import PartOfSystem
        part.take_free(free)
        return PartOfSystem(part, K, M, B, device, dtype)
    space = make_space(device)
    with space.active(K.shape[0]):
        return System(K, M, B, space, dtype)
