"""Solution: values of the cells, the fluxes through the faces that belong to them, and how far to trust both."""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(eq=False)
class Solution:
    """The outcome of a scalar problem.

    Attributes
    ----------
    p : ndarray, shape (n,)
        Values at the cells' centres.
    mesh : Mesh
    results : list of Result
        Of each linear solve.
    fluxes : ndarray, shape (f,)
        What flows through each face, from owner to neighbour, or out of the domain; integrated over the face.
    sources : ndarray, shape (n,)
        V q of each cell.
    residual : float
        ‖V q − Σ F‖₂ relative to the right-hand side, with all explicit terms.
    rtol : float
        What was asked for.
    corrections : int
        Outer corrections that were made.
    notes : list of str
    between : bool
        Ctrl-C came between two linear solves, and ended the corrections.
    """

    p: np.ndarray
    mesh: object
    results: list
    fluxes: np.ndarray
    sources: np.ndarray
    residual: float
    rtol: float
    corrections: int = 0
    notes: list[str] = field(default_factory=list)
    between: bool = False

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C ended it, in a solve or between two."""
        return self.between or self.result.reason.name == "INTERRUPTED"

    @property
    def result(self):
        """The last linear solve."""
        return self.results[-1]

    @property
    def longest(self):
        """The linear solve of most iterations: with deferred corrections the later ones are short."""
        return max(self.results, key=lambda result: result.iterations)

    @property
    def converged(self) -> bool:
        """True if the equation with its explicit terms is solved to the tolerance."""
        return self.results[-1].converged and self.residual <= self.rtol

    def conservation(self) -> dict:
        """What leaves through each patch, and how far the domain is from balance.

        Returns
        -------
        dict
            "patches": outflow by name; "outflow": their sum; "source": ∫ q; "imbalance": source − outflow, which is the
            sum of the cells' residuals (a steady problem); "relative": that over the sum of all |fluxes| and |sources|.
        """
        patches = {p.name: float(self.fluxes[p.start:p.start + p.size].sum()) for p in self.mesh.patches
                   if p.kind != "empty"}
        boundary = self.fluxes[self.mesh.neighbour.size:]
        source, outflow = float(self.sources.sum()), float(boundary.sum())
        size = float(np.abs(boundary).sum() + np.abs(self.sources).sum())
        return {"patches": patches, "outflow": outflow, "source": source, "imbalance": source - outflow,
                "relative": abs(source - outflow) / size if size else 0.0}

    def write(self, path, name="p"):
        """Write the values as a VTU file for ParaView."""
        from swell.pde.fvm.vtu import write_vtu
        write_vtu(path, self.mesh, {name: self.p})

    def __str__(self):
        state = "converged" if self.converged else "NOT converged"
        lines = [f"{state}: {self.mesh.n_cells} cells, residual of the equation {self.residual:.2e}, "
                 f"{self.corrections} corrections, {sum(r.iterations for r in self.results)} iterations"]
        balance = self.conservation()
        lines += [f"  {name}: {flow:+.6g} out" for name, flow in balance["patches"].items()]
        lines.append(f"  source {balance['source']:.6g}, imbalance {balance['imbalance']:.1e}")
        lines += [f"  note: {note}" for note in self.notes]
        if len(self.results) > 1:
            lines.append(f"  the longest of {len(self.results)} linear solves:")
        return "\n".join([*lines, *("  " + line for line in str(self.longest).splitlines())])
