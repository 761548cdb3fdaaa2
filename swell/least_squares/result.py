"""LeastSquaresResult: the result of ``lstsq``."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from swell.core.encoding import printable
from swell.core.stopping import Reason
from swell.solving.choice_cost import count, seconds

SENTENCES = {
    Reason.MAXITER: "the iteration limit was reached first: raise maxiter, or try scaling='columns' or a larger damp",
    Reason.STAGNATED: "the norms stopped falling: try scaling='columns', a larger damp, or a larger rtol",
    Reason.NONFINITE: "NaN or Inf appeared: divide A and b by their largest entries, or use float64",
    Reason.ATTAINABLE_ACCURACY: "rounding forbids this tolerance: Aᴴ r is at the level of its rounding errors; accept "
                                "this x, raise rtol, or use float64",
    Reason.FALSE_CONVERGENCE: "the method's own norms met the tolerance, but the norms computed from A and x do not: "
                              "raise rtol, or try scaling='columns'",
}


@dataclass
class LeastSquaresResult:
    """The outcome of a least-squares problem. r̄ is [b − A x; −damp x], and Ā is [A; damp I].

    Attributes
    ----------
    x : array, shape (n,)
        The solution, in the same kind of array as b.
    reason : Reason
        Why the solve ended.
    solved : str
        "equations": ‖r̄‖ ≤ max(rtol ‖b‖, atol). "least squares": ‖Āᴴ r̄‖ ≤ rtol ‖A‖_F ‖r̄‖. Empty: neither.
    iterations : int
    residual : float
        ‖b − A x‖₂ / ‖b‖₂, computed from A and x.
    normal_residual : float
        ‖Āᴴ r̄‖₂ / (‖A‖_F ‖r̄‖₂), computed from A and x; with scaled columns if ``scaling`` is set.
    norm_x : float
        ‖x‖₂.
    history : ndarray, shape (iterations + 1,)
        The smaller of ‖r̄‖/‖b‖ and ‖Āᴴ r̄‖/(‖A‖_F ‖r̄‖) after each iteration, from the method's
        recurrences.
    method, device, dtype : str
    shape : (int, int)
    nnz : int
    damp, rtol, atol : float
    products : int
        Number of products with A and with Aᴴ.
    timings : dict
        Seconds: "setup" and "solve", both without compiling kernels, and "compile".
    notes : list of str
    """

    x: Any
    reason: Reason
    solved: str
    iterations: int
    residual: float
    normal_residual: float
    norm_x: float
    history: np.ndarray
    method: str
    shape: tuple
    nnz: int
    damp: float
    rtol: float
    atol: float
    device: str
    dtype: str
    products: int = 0
    timings: dict = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def converged(self) -> bool:
        """True only if A and x meet one of the two conditions of ``solved``."""
        return self.reason is Reason.CONVERGED

    @property
    def message(self) -> str:
        """The reason as a sentence, with advice."""
        if self.solved == "equations":
            return "the residual b − A x meets the tolerance"
        if self.solved:
            return "the normal equations Aᴴ(b − A x) = damp² x meet the tolerance"
        return SENTENCES.get(self.reason, self.reason.sentence)

    def as_dict(self) -> dict:
        """Return everything but x and the history, in plain types, for JSON."""
        return {
            "method": self.method, "device": self.device, "dtype": self.dtype, "rows": self.shape[0],
            "columns": self.shape[1], "nnz": self.nnz, "converged": self.converged, "reason": self.reason.name,
            "solved": self.solved, "message": self.message, "iterations": self.iterations, "residual": self.residual,
            "normal_residual": self.normal_residual, "norm_x": self.norm_x, "damp": self.damp, "rtol": self.rtol,
            "atol": self.atol, "products": self.products, "timings": self.timings, "notes": self.notes,
        }

    def __repr__(self):
        state = f"converged ({self.solved})" if self.converged else f"NOT converged ({self.reason.name})"
        return (f"LeastSquaresResult({state}, {count(self.iterations, 'iteration')}, residual {self.residual:.2e}, "
                f"{self.timings.get('solve', 0):.3g} s, {self.method} on {self.device})")

    def _repr_html_(self):
        from swell.display import page
        from swell.display.convergence import Line
        from swell.solving.cards import convergence, state
        summary, _, *rest = str(self).splitlines()
        measure = min(self.residual, self.normal_residual)
        line = Line(self.method, self.history, self.iterations, measure, self.converged, self.rtol)
        return page.fragment([*state(self, summary), convergence([line], "the measure that ends the iteration"),
                              page.bullets(self.notes),          # a notebook shows this
                              page.details("What ran", page.preformatted(text.strip() for text in rest))])

    @printable
    def __str__(self):
        state = f"converged ({self.solved})" if self.converged else f"NOT converged ({self.reason.name})"
        damped = f", damp {self.damp:g}" if self.damp else ""
        lines = [f"{state} in {count(self.iterations, 'iteration')}: ‖b − Ax‖/‖b‖ = {self.residual:.2e}, "
                 f"‖Aᴴr‖/(‖A‖‖r‖) = {self.normal_residual:.1e}, ‖x‖ = {self.norm_x:.3g}", f"  {self.message}",
                 f"  {self.method} on {self.shape[0]} × {self.shape[1]}, {self.nnz} entries, {self.dtype}, "
                 f"{self.device}{damped}; rtol {self.rtol:g}",
                 f"  cost: {self.products} products; {seconds(self.timings)}"]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])
