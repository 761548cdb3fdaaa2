"""Solution: cell values, the consistent face fluxes, and measures of their accuracy. FlowSolution: a flow's values."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from swell.core.encoding import printable
from swell.core.stopping import Reason
from swell.io.files import as_path, write_rows
from swell.pde.fvm.boundary import UNCONDITIONED
from swell.solving.choice_cost import count

if TYPE_CHECKING:
    from swell.pde.fvm.mesh import Mesh
    from swell.pde.fvm.part_mesh import PartMesh
    from swell.solving.result import Result


@dataclass(eq=False)
class Solution:
    """The outcome of a scalar problem.

    Attributes
    ----------
    p : ndarray, shape (n,)
        Values at the cells' centres.
    mesh : Mesh
    results : list of Result
        One for each linear solve.
    fluxes : ndarray, shape (f,)
        The flux through each face, integrated over it; positive from owner to neighbour, or out of the domain.
    sources : ndarray, shape (n,)
        V q of each cell.
    residual : float
        ‖V q − Σ F‖₂ relative to the right-hand side, with all explicit terms.
    imbalance : float
        Σ |V q − Σ F| over all cells, relative to the flow: boundary fluxes, sources and the storage in time. It bounds
        the imbalance of the whole domain, and of any part of it. Dirichlet values at faces of tiny cells make the
        right-hand side large, and so the residual small; they do not make the flow large.
    rtol : float
        The tolerance for both.
    corrections : int
        Number of outer corrections.
    notes : list of str
        Remarks on the solve.
    between : bool
        True if Ctrl-C came between two linear solves, and ended the corrections.
    """

    p: np.ndarray
    mesh: Mesh
    results: list[Result]
    fluxes: np.ndarray
    sources: np.ndarray
    residual: float
    imbalance: float
    rtol: float
    corrections: int = 0
    notes: list[str] = field(default_factory=list)
    between: bool = False

    @property
    def cells(self) -> int:
        """Number of cells, on all ranks."""
        return self.mesh.n_cells

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C ended the run, during a linear solve or between two."""
        return self.between or self.result.reason.name == "INTERRUPTED"

    @property
    def result(self):
        """The Result of the last linear solve."""
        return self.results[-1]

    @property
    def longest(self):
        """The Result of the linear solve with the most iterations; solves after the first correction are short."""
        return max(self.results, key=lambda result: result.iterations)

    @property
    def converged(self) -> bool:
        """True if both ``residual`` and ``imbalance`` meet the tolerance."""
        return self.residual <= self.rtol and self.imbalance <= self.rtol

    @property
    def reason(self) -> Reason:
        """Why the run ended."""
        if self.converged:
            return Reason.CONVERGED
        if self.between:
            return Reason.INTERRUPTED
        if not self.result.converged:
            return self.result.reason
        return Reason.MAXITER if self.residual <= 1 else Reason.DIVERGED

    @property
    def message(self) -> str:
        """The reason in a sentence, with advice on what to do next."""
        if self.converged:
            return "the residual of the equation and the imbalances of its cells meet the tolerance"
        if self.between:
            return Reason.INTERRUPTED.sentence
        if not self.result.converged and not self.residual <= self.rtol:
            return self.result.message
        if self.result.converged and self.corrections:
            return ("the corrections did not bring the equation to the tolerance: allow more of them, take another "
                    "correction or gradient, or improve the mesh where it is least orthogonal")
        wider = "use dtype='float64', " if self.result.dtype == "float32" else ""
        return (f"the residual is small beside the right-hand side, but the cells' imbalances add up to "
                f"{self.imbalance:.1e} of what flows, and the last linear solve ({self.result.reason.name}) brings "
                f"them no lower: {wider}raise maxiter, take a stronger preconditioner, or relax rtol")

    def facts(self) -> list:
        """A report's lines on the equation, as a list of (name, value)."""
        balance = self.conservation()
        return [("residual of the equation", f"{self.residual:.3e} (asked for: {self.rtol:.3g})"),
                ("the cells' imbalances over what flows", f"{self.imbalance:.3e} (asked for: {self.rtol:.3g})"),
                ("imbalance of the whole", f"{balance['imbalance']:.3e} of a source of {balance['source']:.6g}"),
                ("corrections", self.corrections), ("linear solves", len(self.results)),
                ("iterations of all", sum(result.iterations for result in self.results))]

    def conservation(self) -> dict:
        """The outflow through each patch, and the imbalance of the domain.

        Returns
        -------
        dict
            "patches": outflow by name; "outflow": their sum; "source": ∫ q; "imbalance": source − outflow, which is the
            sum of the cells' residuals in a steady problem; "relative": the imbalance divided by the sum of all
            |fluxes| through the boundary and all |sources|.
        """
        return _balance([self._account()])

    def _account(self):
        """Return (outflow by patch, Σ outflow, Σ source, Σ |fluxes| + Σ |sources|) of this solution's cells and
        faces."""
        through = {p.name: self.fluxes[p.faces] for p in self.mesh.patches if p.kind not in UNCONDITIONED}
        boundary = [flux.sum() for flux in through.values()]
        size = sum(np.abs(flux).sum() for flux in through.values()) + np.abs(self.sources).sum()
        return ({name: float(flow) for name, flow in zip(through, boundary)}, float(sum(boundary)),
                float(self.sources.sum()), float(size))

    def span(self) -> dict:
        """A dict with the "min", "max" and volume-average "mean" of p."""
        return _span([self._values()])

    def _values(self):
        """Return (minimum of p, maximum of p, ∫ p, volume) of this solution's cells."""
        volumes = self.mesh.volumes
        return float(self.p.min()), float(self.p.max()), float((volumes * self.p).sum()), float(volumes.sum())

    def write(self, path, name="p"):
        """Write the values as a VTU file for ParaView; ``name``: the name of p in the file."""
        from swell.pde.fvm.vtu import write_vtu
        write_vtu(path, self.mesh, {name: self.p})

    def __repr__(self):
        return (f"{type(self).__name__}({'converged' if self.converged else 'NOT converged'}, {self.cells} cells, "
                f"residual {self.residual:.2e}, imbalance {self.imbalance:.1e}, {count(len(self.results), 'solve')})")

    def _repr_html_(self):
        from swell.display import page
        from swell.solving import cards
        patches = self.conservation()["patches"].items()
        return page.fragment([                   # a notebook shows this
            *cards.state(self, f"{self.cells} cells"), page.table(self.facts()), page.bullets(self.notes),
            page.details("Flow out of each patch", page.table([(name, f"{flow:+.6g}") for name, flow in patches])),
            page.details("The longest linear solve", *cards.of_result(self.longest))])

    @printable
    def __str__(self):
        state = "converged" if self.converged else "NOT converged"
        lines = [f"{state}: {self.cells} cells, residual of the equation {self.residual:.2e}, the cells' imbalances "
                 f"{self.imbalance:.1e} of what flows (asked for: {self.rtol:.3g}), {self.corrections} corrections, "
                 f"{sum(r.iterations for r in self.results)} iterations"]
        lines += [] if self.converged else [f"  {self.message}"]
        balance = self.conservation()
        lines += [f"  {name}: {flow:+.6g} out" for name, flow in balance["patches"].items()]
        lines.append(f"  source {balance['source']:.6g}, imbalance of the whole {balance['imbalance']:.1e}")
        lines += [f"  note: {note}" for note in self.notes]
        if len(self.results) > 1:
            lines.append(f"  the longest of {len(self.results)} linear solves:")
        return "\n".join([*lines, *("  " + line for line in str(self.longest).splitlines())])


class PartSolution(Solution):
    """A rank's part of a solution.

    Values, fluxes and sources are on the rank's own cells and faces. ``converged``, ``residual``, ``imbalance``,
    ``conservation()``, ``span()`` and the text describe the solution of all ranks.

    Attributes
    ----------
    cells : int
        Number of cells, on all ranks.
    """

    mesh: PartMesh
    cells = 0
    _conservation: dict
    _span: dict

    @classmethod
    def of(cls, local: Solution) -> "PartSolution":
        """Return a PartSolution made from ``local``, this rank's Solution. All ranks call it together."""
        solution = cls(**vars(local))
        mesh = local.mesh
        accounts, values, sizes = zip(*mesh.ranks.allgather((local._account(), local._values(), mesh.n_cells)))
        solution.cells, solution._conservation, solution._span = sum(sizes), _balance(accounts), _span(values)
        return solution

    def conservation(self) -> dict:
        return self._conservation

    def span(self) -> dict:
        return self._span

    def write(self, path, name="p"):
        """Write the values for ParaView: a VTU file by each rank, and a PVTU file ``path``. ``name``: the name of p in
        the files. All ranks call it together."""
        from swell.pde.fvm.vtu import write_fields
        write_fields(path, self.mesh, {name: self.p})


@dataclass(eq=False)
class FlowSolution:
    """Velocity and pressure of the cells.

    Attributes
    ----------
    velocity : ndarray, shape (n, 3)
    p : ndarray, shape (n,)
        Kinematic pressure; its mean is zero if no patch fixes it.
    fluxes : ndarray, shape (f,)
        Volume flux of each face.
    converged : bool
        Steady: both residuals meet the tolerance. In time: the march reached its end, and every linear solve converged.
    residuals : ndarray, shape (iterations, 2)
        Residuals of momentum and continuity before each iteration's solves, as ``SIMPLE.rtol`` measures them.
    linear_iterations : tuple of int
        Total iterations of the momentum solver and of the pressure solver.
    mesh : Mesh
    notes : list of str
        Remarks on the run, such as an interruption.
    time : float or None
        Of a flow that marches in time.
    courant : float or None
        The largest Courant number of its last step.
    times : ndarray, shape (steps, 2), or None
        In time: the time after each step, and the step's largest Courant number.
    diverged : bool
        The run ended because speeds or residuals grew without bound.
    forces : dict of str to ndarray
        Patch → forces after each iteration or step, (pressure, viscous) of shape (iterations, 2, 3), for a fluid of
        density 1; empty unless they were recorded.
    """

    velocity: np.ndarray
    p: np.ndarray
    fluxes: np.ndarray
    converged: bool
    residuals: np.ndarray
    linear_iterations: tuple[int, int]
    mesh: Mesh
    notes: list[str] = field(default_factory=list)
    time: float | None = None
    courant: float | None = None
    times: np.ndarray | None = None
    diverged: bool = False
    forces: dict = field(default_factory=dict)

    @property
    def cells(self) -> int:
        """Number of cells, on all ranks."""
        return self.mesh.n_cells if self.mesh.ranks is None else int(self.mesh.starts[-1])

    @property
    def iterations(self) -> int:
        """Number of outer iterations, or of steps in time."""
        return len(self.residuals)

    def write_history(self, path):
        """Write a CSV file with a row for each iteration or step: residuals, time and Courant number, forces."""
        columns = {"iteration" if self.time is None else "step": np.arange(1, self.iterations + 1)}
        if self.times is not None:
            columns |= {"time": self.times[:, 0], "Courant number": self.times[:, 1]}
        columns |= {"momentum": self.residuals[:, 0], "continuity": self.residuals[:, 1]}
        for patch, history in self.forces.items():
            columns |= {f"{patch} {kind} {axis}": history[:, k, i]
                        for k, kind in enumerate(("pressure", "viscous")) for i, axis in enumerate("xyz")}
        write_rows(as_path(path), [columns, *([f"{value:.10g}" for value in row] for row in zip(*columns.values()))])

    def write(self, path):
        """Write velocity and pressure for ParaView, as a VTU file. Of a rank's part: a VTU file by each rank, and a
        PVTU file ``path``; all ranks call it together."""
        from swell.pde.fvm.vtu import write_fields
        write_fields(path, self.mesh, {"U": self.velocity, "p": self.p})

    def __repr__(self):
        return (f"FlowSolution({'converged' if self.converged else 'NOT converged'}, "
                f"{count(self.iterations, 'iteration')}, {self.cells} cells)")

    @printable
    def __str__(self):
        state = "converged" if self.converged else "NOT converged"
        momentum, mass = self.residuals[-1] if len(self.residuals) else (float("nan"),) * 2
        of_u, of_p = self.linear_iterations
        if self.time is None:
            done = f"{state} in {self.iterations} iterations: momentum {momentum:.1e}, continuity {mass:.1e}"
        else:
            done = (f"{'t' if self.converged else 'ended early, at t'} = {self.time:g} in {self.iterations} steps: "
                    f"continuity {mass:.1e}, Courant number {self.courant:.3g}")
        return "\n".join([f"{done}; {of_u} iterations on momentum, {of_p} on pressure",
                          *(f"  note: {note}" for note in self.notes)])


def _balance(accounts) -> dict:
    """Return the dict of `Solution.conservation`; ``accounts``: `Solution._account` of each part."""
    patches, outflows, sources, sizes = zip(*accounts)
    source, outflow, size = sum(sources), sum(outflows), sum(sizes)
    return {"patches": {name: sum(part[name] for part in patches) for name in patches[0]}, "outflow": outflow,
            "source": source, "imbalance": source - outflow,
            "relative": abs(source - outflow) / size if size else 0.0}


def _span(values) -> dict:
    """Return the dict of `Solution.span`; ``values``: `Solution._values` of each part."""
    least, most, moments, volumes = zip(*values)
    return {"min": min(least), "max": max(most), "mean": sum(moments) / sum(volumes)}
