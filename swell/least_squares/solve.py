"""``lstsq``: least squares with a matrix of any shape, by LSQR or LSMR.

validate -> [A D; damp D] and its adjoint (``Stacked``) -> iterate -> compute r and Aᴴ r from A and x ->
``LeastSquaresResult``.
"""
from __future__ import annotations

import logging
import math

import numpy as np

from swell import inputs
from swell.core.compilation import Stopwatch
from swell.core.devices import make_space
from swell.core.errors import InputError
from swell.core.log import LOG
from swell.core.operator import LinearOperator
from swell.core.registry import name_of, resolve
from swell.core.space import accumulator
from swell.core.settings import real, shown
from swell.core.stopping import Reason, Stopping
from swell.core.workspace import Workspace
from swell.least_squares.golub_kahan import Stacked
from swell.least_squares.result import LeastSquaresResult
from swell.solving.measure import EPS, ROUNDING, NORM_RANGE, read_b, uncertain
from swell.solving.result import FINAL
from swell.solving.solve import OUT_OF_RANGE, MAX_RUNS
from swell.solving.verdict import decide

VECTORS = 8             # most vectors of length m, and of length n, that a method keeps


def lstsq(A, b, *, method="lsmr", damp=0.0, rtol=None, atol=0.0, maxiter=None, x0=None, scaling=None, device=None,
          monitor=None) -> LeastSquaresResult:
    """Minimise ‖b − A x‖² + damp² ‖x‖².

    Without damp and x0, it finds the x of least norm if several x are minimisers.

    Parameters
    ----------
    A : matrix, shape (m, n)
        SciPy or CuPy sparse of any kind, a dense array, a matrix of torch, JAX or PETSc, or one of swell's own formats.
    b : array, shape (m,)
    method : {"lsmr", "lsqr"}
        In every step, LSMR reduces ‖Aᴴ r‖, and LSQR reduces ‖r‖.
    damp : float
        Weight of ‖x‖, for ill-posed problems.
    rtol, atol : float
        Tolerances; the default rtol is 1e-8, and 1e-5 in float32 and complex64. Let r̄ = [b − A x; −damp x] and Ā = [A;
        damp I]. Converged means ‖r̄‖ ≤ max(rtol ‖b‖, atol) or ‖Āᴴ r̄‖ ≤ rtol ‖A‖_F ‖r̄‖, computed from A, b and the
        returned x, and certain in spite of rounding.
    maxiter : int, optional
        Iteration limit; by default n, but at least 1000 and at most 20 000.
    x0 : array, shape (n,), optional
        Starting vector. It is not modified, and does not change the minimised function.
    scaling : {"columns"}, optional
        Divide each column by its norm while iterating: fewer iterations if the norms differ much. The tolerance for
        Aᴴ r then holds for the scaled columns. Among several solutions, it finds the one of least norm in the scaled
        unknowns.
    device : {"cpu", "cuda", "cuda:1"}, optional
        Device to solve on; by default the device of A.
    monitor : callable, optional
        Called as ``monitor(iteration, measure)``. The measure is the smaller of ‖r̄‖/‖b‖ and ‖Āᴴ r̄‖/(‖A‖_F ‖r̄‖),
        from the method's recurrences. A true return value stops the solve.

    Returns
    -------
    LeastSquaresResult

    Raises
    ------
    InputError
        For shapes that do not fit, NaN or Inf, a matrix-free operator, a matrix distributed over ranks, and invalid
        settings.
    OutOfMemory
        If the matrix, its adjoint and the vectors would not fit.
    MissingDependency
        If the GPU or a library is missing.

    Examples
    --------
    >>> import numpy as np, swell
    >>> t = np.linspace(0, 1, 50)
    >>> r = swell.lstsq(np.vander(t, 3), 2 * t**2 - 1)
    >>> r.converged, r.solved, np.round(r.x, 6) + 0.0
    (True, 'equations', array([ 2.,  0., -1.]))
    """
    settings = resolve("least_squares", method)
    if settings is None:
        raise InputError("method=None: expected 'lsmr' or 'lsqr'")
    stopping = Stopping(rtol=rtol, atol=atol, maxiter=maxiter, growth=np.inf)
    if not real(damp) or not 0 <= damp < NORM_RANGE[1]:
        raise InputError(f"damp={shown(damp)}: expected a number, not negative, such as 1e-3")
    if scaling not in (None, "columns"):
        raise InputError(f"scaling={shown(scaling)}: expected 'columns' or None")
    inputs.check_monitor(monitor, shows_x=False)
    space = _space(A, device)
    with space.active():
        csr, rhs, guess = _read(A, b, x0, space)
    with space.active(max(csr.shape)):
        solve = Solve(csr, rhs, settings, float(damp), stopping.for_type(csr.dtype), scaling, monitor)
        result = solve.run(guess)
        result.x = inputs.returned(result.x, space, b)
        LOG.log(logging.INFO if result.reason in FINAL else logging.WARNING, "%r: %s", result, result.message)
        return result


def _space(A, device):
    """Return the Space to solve in, on ``device``, or on A's device if ``device`` is None."""
    if isinstance(A, LinearOperator):
        if not A.space.ranks.single:
            raise InputError("lstsq runs on one device, and A is in parts on several ranks: give it the whole matrix")
        if device is None:
            return A.space
    if device == "cuda:all":
        raise InputError("lstsq runs on one device: give device='cuda', 'cuda:1' or 'cpu'")
    return make_space(inputs.device_of(A) if device is None else device)


def _read(A, b, x0, space):
    """Return (A as CSR, b, x0 or None): checked, of one type, in one space. The arguments are not changed."""
    csr = inputs.read_factor(A, space)
    csr.discard_facts()                          # A may be swell's own matrix, and its owner may have changed values
    inputs.check_finite_matrix(csr)
    m, n = csr.shape
    vectors = [("b", b, m, "")] + ([] if x0 is None else [("x0", x0, n, ", one number for each column of A")])
    read = []
    for name, vector, size, part in vectors:
        v = inputs.read_vector(vector, size, name, part, space)
        if v.ndim != 1:
            raise InputError(f"{name} has shape {tuple(v.shape)}: expected ({size},); solve for one right-hand side "
                             "after the other")
        read.append(v)
    dtype = np.result_type(csr.dtype, *(np.complex64 for v in read if v.dtype.kind == "c"))
    csr = csr if csr.dtype == dtype else csr.astype(dtype)
    return csr, read[0], read[1] if len(read) > 1 else None


class Solve:
    """One least-squares problem and the state of its solution.

    Parameters
    ----------
    A : CSRMatrix
    b : array, shape (m,)
    settings : LSQR or LSMR
    stopping : Stopping
    damp, scaling, monitor
        See ``lstsq``.

    Attributes
    ----------
    norm_b, norm_A : float
        ‖b‖₂ and ‖A‖_F; with scaled columns ‖A D‖_F.
    residual, whole, normal, norm_x : float
        The latest ‖b − A x‖, ‖r̄‖, ‖Āᴴ r̄‖ and ‖x‖, computed from A and x.
    solved : str
        The condition that the latest computed norms meet: "equations" or "least squares"; empty if they meet neither.
    """

    def __init__(self, A, b, settings, damp, stopping, scaling, monitor):
        self.watch, self.A, self.space, self.damp, self.stopping = Stopwatch(), A, A.space, damp, stopping
        self.settings, self.monitor, self.notes = settings, monitor, []
        self.history, self.iterations, self.products, self.solved = [], 0, 0, ""
        m, n = A.shape
        size = A.dtype.itemsize
        self.space.check_fits(2 * A.nbytes + VECTORS * (m + n) * size, f"least squares with {m} × {n}, {A.nnz} entries",
                              "use float32, or a larger machine")
        self.workspace = Workspace(self.space)
        self.b, self.x, self.step = (self.workspace.array(name, count, A.dtype)
                                     for name, count in (("b", m), ("x", n), ("D y", n)))
        double = accumulator(A.dtype)
        self.r, self.terms = (self.workspace.array(name, m, kind) for name, kind in (
            ("residual", double), ("terms", np.dtype(np.float64))))
        self.exact_b, self.norm_b, _ = read_b(self.space, self.workspace, b, self.b)
        largest = A.norm_inf()
        if largest and not NORM_RANGE[0] < largest < NORM_RANGE[1]:
            raise InputError(f"‖A‖∞ is {largest:.1e}, whose square leaves the range of double precision: divide A, and "
                             "damp, by this norm, and x by it afterwards")
        self.system = Stacked(A, damp, self._column_factors() if scaling else None)
        self.norm_A = self.system.norm_frobenius()
        self.setup_seconds = self.watch.seconds

    def _column_factors(self):
        """Return the array of 1/‖aⱼ‖ for each column aⱼ of A, and 1 for a column of zeros, which is noted."""
        xp = self.space.xp
        norms = xp.sqrt(self.A.transpose().absolute().power(2).row_sums())
        empty = self.space.find_true(norms == 0)[1]
        if empty:
            self.notes.append(f"{empty} columns of A are zero and were not scaled")
        return 1 / xp.where(norms == 0, norms.dtype.type(1), norms)

    def run(self, x0) -> LeastSquaresResult:
        """Iterate from x0 (None: from 0) and return the result.

        Convergence is decided from norms computed from A and x. If they do not confirm the method's own, the method
        runs again from x.
        """
        self.x.fill(0)
        if x0 is not None:
            self.space.from_host(x0, out=self.x)
        if not (all(self.A.shape) and self.norm_b):              # x = 0, or x is empty: nothing to find
            self.x.fill(0)
            self._judge_empty()
            return self.result(Reason.CONVERGED)
        loop = self.space.loop(self.stopping, self.A.shape[1])
        bound = self.settings.bind(self.system, self.workspace, loop)
        allowed, last = self.stopping.threshold(self.norm_b), np.inf
        measure = self._judge(bound, allowed)
        reason = Reason.MAXITER                  # if no iteration is allowed
        self.history = [measure]
        for _ in range(MAX_RUNS):
            if self.solved or loop.maxiter <= self.iterations:
                break
            reason = self._iterate(bound, loop, allowed)
            measure = self._judge(bound, allowed)
            if self.solved or reason is not Reason.CONVERGED or measure > 0.5 * last:
                break
            last = measure
        return self.result(self._verdict(reason))

    def _iterate(self, bound, loop, allowed) -> Reason:
        """Run the method ``bound`` once from x, with its residual in u; then x = x + D y. Return why the run ended.

        ``loop``: its Loop. ``allowed``: the ‖r̄‖ at which the equations count as solved.
        """
        scale = self.stopping.rtol or 1.0
        tell = self.monitor and (lambda k, measure: self.monitor(k, scale * measure))
        loop.begin(1.0, 1.0, max(1000, self.A.shape[1]), self.iterations, tell)
        bound.start((allowed, self.stopping.rtol * self.norm_A))
        loop.run(bound.body)
        loop.end()
        self.iterations += loop.iterations
        self.products += 2 * loop.iterations + 1
        self.history = [*self.history[:-1], *(scale * loop.history[:loop.iterations + 1])]
        self.system.x_of(bound.y, self.step)
        self.space.axpy(1, self.step, self.x)
        return loop.reason

    def _judge(self, bound, allowed) -> float:
        """Compute r̄ (left in ``bound.u``), Āᴴ r̄ and their norms from A and x; return the smaller relative norm.

        Sets ``solved`` and the norms. ``allowed``: the ‖r̄‖ at which the equations count as solved.
        """
        self._residual(bound, self.A.residual_terms, self.terms)
        floor = ROUNDING * EPS * self.space.norms(self.terms)[0]
        self.solved = self._condition(allowed)
        if uncertain(self.whole, allowed, floor) or self.solved and floor > self.stopping.rtol * self.whole:
            low = self.workspace.array("residual's low part", self.r.size, self.r.dtype)
            self._residual(bound, self.A.precise_residual, low)                # rounding could decide
            level = allowed if self.whole <= allowed else self.stopping.rtol * self.whole
            self.solved = "" if level < floor * EPS else self._condition(allowed)
        if not self.whole < NORM_RANGE[1]:
            if not self.iterations:
                raise InputError(OUT_OF_RANGE.format(self.whole))
            return np.inf
        product = self.norm_A * self.whole
        return min(self.whole / self.norm_b, self.normal / product if product else 0.0)

    def _condition(self, allowed) -> str:
        """The condition that the latest norms meet, as ``LeastSquaresResult.solved``. ``allowed``: the ‖r̄‖ at which
        the equations count as solved."""
        if self.whole <= allowed:
            return "equations"
        return "least squares" if self.normal <= self.stopping.rtol * self.norm_A * self.whole else ""

    def _residual(self, bound, compute, buffer):
        """Compute r̄ (left in ``bound.u``), Āᴴ r̄ and the norms. ``compute``: the function for b − A x, which
        also writes ``buffer``."""
        u, system = bound.u, self.system
        compute(self.x, self.exact_b, self.r, buffer)                          # b − A x
        u.fill(0)
        u[:system.m] = self.r
        if self.damp:
            self.space.copy(self.x, u[system.below:])
            self.space.scale(-self.damp, u[system.below:])                     # −damp x
        system.multiply_adjoint(u, bound.Au)                                   # Āᴴ r̄
        self.products += 2
        self.residual, self.normal, self.norm_x = (self.space.norms(v)[0] for v in (self.r, bound.Au, self.x))
        self.whole = math.hypot(self.residual, self.damp * self.norm_x)
        if self.r.dtype != u.dtype:
            self.normal = self._normal_in_double()

    def _normal_in_double(self) -> float:
        """Return ‖Āᴴ r̄‖₂ for a matrix of single precision, in whose own arithmetic it would be rounding error.

        r is the sum of two vectors of single precision, and Aᴴ multiplies each in double precision."""
        upper = self.r.astype(self.b.dtype)
        lower = (self.r - upper).astype(self.b.dtype)
        normal, terms = (self.workspace.array(name, self.x.size, kind) for name, kind in (
            ("normal", self.r.dtype), ("terms of the normal", self.terms.dtype)))
        normal.fill(0)
        for part in (upper, lower):
            self.system.adjoint.residual_terms(part, normal, normal, terms)    # normal −= Aᴴ part
        if self.damp:
            weight = self.damp**2 if self.system.D is None else self.damp**2 * self.system.D
            normal += weight * self.x                                          # −Āᴴ r̄ = −Aᴴ r + damp² D x
        return self.space.norms(normal)[0]

    def _judge_empty(self):
        """Set ``solved``, the history and the norms for a problem that x = 0, or an empty x, solves."""
        self.residual = self.whole = self.norm_b
        self.normal, self.norm_x, self.history = 0.0, 0.0, [0.0]
        self.solved = "least squares" if self.norm_b else "equations"

    def _verdict(self, reason) -> Reason:
        """Return the reason for the result, given the reason for which the last run of the method ended."""
        terms = self.norm_A * (self.whole + self.norm_A * self.norm_x)
        return decide(reason, bool(self.solved), math.isfinite(self.whole + self.normal),
                      self.normal <= ROUNDING * np.finfo(self.A.dtype).eps * terms)

    def result(self, reason) -> LeastSquaresResult:
        """Return a new LeastSquaresResult with this reason; its x stays in the solver's space."""
        self.space.synchronize()
        product = self.norm_A * self.whole
        return LeastSquaresResult(
            x=self.x, reason=reason, solved=self.solved if reason is Reason.CONVERGED else "",
            iterations=self.iterations, residual=self.residual / (self.norm_b or 1.0),
            normal_residual=self.normal / product if product else 0.0, norm_x=self.norm_x,
            history=np.array(self.history), method=name_of("least_squares", type(self.settings)), shape=self.A.shape,
            nnz=self.A.nnz, damp=self.damp, rtol=self.stopping.rtol, atol=self.stopping.atol,
            device=self.space.device_name, dtype=self.A.dtype.name, products=self.products,
            timings={"setup": self.setup_seconds, "solve": self.watch.seconds - self.setup_seconds,
                     "compile": self.watch.compiled},
            notes=self.notes)
