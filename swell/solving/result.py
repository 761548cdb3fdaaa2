"""Result: the outcome of a solve, with the facts needed to trust it or to decide what to do next."""
from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from swell.core.encoding import printable
from swell.core.renamed import renamed
from swell.core.stopping import Reason
from swell.solving.choice_cost import ChoiceCost, count, paired, seconds, table

if TYPE_CHECKING:
    from swell.krylov.spectrum import Spectrum

FINAL = Reason.CONVERGED, Reason.INTERRUPTED, Reason.STOPPED         # no further choice is tried after these
WIDER = {"float32": ", or use dtype='float64'", "complex64": ", or use dtype='complex128'"}      # types, for a message


@dataclass
class Result:
    """The outcome of one solve.

    Attributes
    ----------
    x : array, shape (n,)
        The solution, in the same type of array as b (NumPy, CuPy, torch or a PETSc Vec).
    reason : Reason
        Why the solve ended; ``reason.sentence`` says what to try next.
    iterations : int
        Number of iterations.
    residual : float
        The true relative residual ‖b − A x‖₂ / ‖b‖₂, computed with the original matrix.
    backward_error : float
        ‖b − A x‖∞ / (‖A‖∞ ‖x‖∞ + ‖b‖∞); NaN for a matrix-free A, whose norm is not known.
    componentwise_error : float
        maxᵢ |b − A x|ᵢ / (|A||x| + |b|)ᵢ. It is 1 for a right x that decays below rtol ‖x‖ somewhere; NaN for a
        matrix-free A.
    rounding_floor : float
        The relative residual below which rounding hides ‖b − A x‖₂ in double precision, 8 eps ‖|A||x| + |b|‖₂ / ‖b‖₂.
        A residual below it was computed in doubled precision. NaN for a matrix-free A: unknown.
    error_bound : float
        An estimate from above of the relative error of x, in the norm weighted by A's diagonal, from CG's smallest Ritz
        value. NaN if unknown, and where A's condition leaves at least two digits of x.
    small_rows_unsolved : bool
        True if ‖b − A x‖₂ meets the tolerance by the large rows of A, and smaller rows are solved much less well.
    exact_to_rounding : bool
        True if no x of this type leaves a much smaller residual: b − A x is rounding error in all rows.
    history : ndarray, shape (iterations + 1,)
        ‖b − A x‖₂ / ‖b‖₂ before the first and after each iteration, as the method computes it.
    method, precond, format, ordering, scaling, device, dtype : str
        The parts that ran, by the names of the registry; device is "cpu" or "cuda:0".
    configuration : list of str
        All parts with their settings, one line each, as ``print`` shows them.
    tolerance : float
        The relative residual of convergence: max(rtol, atol / ‖b‖₂).
    products, reductions, preconditioner_applications : int
        Number of products with A, of global reductions, and of applications of the preconditioner.
    timings : dict
        Seconds of "setup" and "solve", and of the parts of the setup. "compile", which the others do not include, is
        the time to compile kernels at their first use.
    memory : dict
        Bytes of "matrix", "preconditioner" and "workspace".
    host_reads : int
        Number of times that the iteration waited for a value from the device.
    notes : list of str
        Remarks for the user on the input and on the choices made.
    spectrum : Spectrum or None
        Estimates for the (scaled, preconditioned) matrix from CG's coefficients: ``.condition``, ``.extremes``.
    attempts : list of Result
        The other choices that ran, in their order.
    choice : int
        Index of this result's configuration in the solver's ``choices``.
    choices : list of ChoiceCost
        Every choice of the advisor, with predicted and actual seconds; empty if the user named the method.
    """

    x: Any
    reason: Reason
    iterations: int
    residual: float
    backward_error: float
    history: np.ndarray
    method: str
    precond: str
    format: str
    ordering: str
    scaling: str
    device: str
    dtype: str
    configuration: list[str]
    tolerance: float = 0.0
    componentwise_error: float = float("nan")
    rounding_floor: float = float("nan")
    error_bound: float = float("nan")
    small_rows_unsolved: bool = False
    exact_to_rounding: bool = False
    products: int = 0
    reductions: int = 0
    preconditioner_applications: int = 0
    timings: dict = field(default_factory=dict)
    memory: dict = field(default_factory=dict)
    host_reads: int = 0
    notes: list[str] = field(default_factory=list)
    spectrum: Spectrum | None = None
    attempts: list["Result"] = field(default_factory=list)
    choice: int = 0
    choices: list[ChoiceCost] = field(default_factory=list)
    considered = renamed("considered", "choices")

    @property
    def converged(self) -> bool:
        """True only if the true residual meets the tolerance."""
        return self.reason is Reason.CONVERGED

    @property
    def message(self) -> str:
        """The reason as a sentence, with advice on what to do next."""
        if self.reason is Reason.ATTAINABLE_ACCURACY and self.exact_to_rounding:
            return (f"x is exact to rounding: the tolerance {self.tolerance:.1e} asks for more than {self.dtype} can "
                    f"hold for this b; accept this x, or relax rtol{WIDER.get(self.dtype, '')}")
        return self.reason.sentence

    @property
    def final(self) -> bool:
        """True if no other choice can do better: x converged in all rows, or is exact to rounding, or the user stopped
        the solve."""
        if self.reason is Reason.ATTAINABLE_ACCURACY:
            return self.exact_to_rounding
        return self.reason in FINAL and not (self.converged and (self.small_rows_unsolved or self.error_bound > 0.1))

    def as_dict(self) -> dict:
        """All fields except x and the history, in plain types, for JSON."""
        choices = [asdict(choice) for choice in self.choices]
        return {
            "method": self.method, "precond": self.precond, "scaling": self.scaling, "format": self.format,
            "ordering": self.ordering, "device": self.device, "dtype": self.dtype, "converged": self.converged,
            "reason": self.reason.name, "message": self.message, "iterations": self.iterations,
            "residual": self.residual, "tolerance": self.tolerance, "rounding_floor": self.rounding_floor,
            "backward_error": self.backward_error, "componentwise_error": self.componentwise_error,
            "error_bound": self.error_bound, "small_rows_unsolved": self.small_rows_unsolved,
            "exact_to_rounding": self.exact_to_rounding, "products": self.products,
            "reductions": self.reductions, "preconditioner_applications": self.preconditioner_applications,
            "setup_seconds": self.timings.get("setup", 0.0), "solve_seconds": self.timings.get("solve", 0.0),
            "timings": self.timings, "memory": self.memory, "host_reads": self.host_reads,
            "condition": self.spectrum.condition if self.spectrum is not None and self.iterations > 1 else None,
            "configuration": self.configuration, "notes": self.notes,
            "attempts": [a.as_dict() for a in self.attempts],
            "choices": choices, "considered": choices,           # the second is the old name
        }

    def __repr__(self):
        return (f"Result({self._state}, {count(self.iterations, 'iteration')}, residual {self.residual:.2e}, "
                f"{self.timings.get('solve', 0):.3g} s, {paired(self.method, self.precond, self.scaling)} on "
                f"{self.device})")

    def _repr_html_(self):
        from swell.display.page import fragment
        from swell.solving.cards import of_result
        return fragment(of_result(self))         # a notebook shows this

    @property
    def _state(self):
        if self.converged:
            return "converged"
        return "exact to rounding, NOT converged" if self.exact_to_rounding else f"NOT converged ({self.reason.name})"

    @printable
    def __str__(self):
        floor = "unknown" if np.isnan(self.rounding_floor) else f"{self.rounding_floor:.0e}"
        lines = [f"{self._state} in {count(self.iterations, 'iteration')}: ‖b − Ax‖/‖b‖ = {self.residual:.2e} "
                 f"(rounding floor {floor}), backward error {self.backward_error:.1e}, componentwise "
                 f"{self.componentwise_error:.1e}"]
        if not self.converged:
            lines.append(f"  {self.message}")
        lines += ["  " + line for line in self.configuration]
        lines.append(f"  cost: {count(self.products, 'product')}, {count(self.reductions, 'reduction')}"
                     + (f", {count(self.preconditioner_applications, 'preconditioner application')}"
                        if self.preconditioner_applications else "")
                     + f"; {seconds(self.timings)}; {sum(self.memory.values()) / 2**20:.1f} MiB")
        if self.spectrum is not None and self.iterations > 1:
            least, largest = self.spectrum.extremes
            lines.append(f"  spectrum from CG's coefficients: {least:.2e} to {largest:.2e}, condition at least "
                         f"{self.spectrum.condition:.2e}")
        explained = {self.reason}
        for attempt in self.attempts:
            why = attempt.reason.name + (f": {attempt.message}" if attempt.reason not in explained else "")
            explained.add(attempt.reason)
            lines.append(f"  also tried: {attempt.method} ended after {count(attempt.iterations, 'iteration')} at "
                         f"{attempt.residual:.2e} ({why})")
        lines += [f"  {row}" for row in table(self.choices)]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)
