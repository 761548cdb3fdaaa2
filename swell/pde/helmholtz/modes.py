"""Modes: the eigenfrequencies and mode shapes of a cavity, K φ = ω² M φ, and the response that they give.

Shift-invert Lanczos (Ericsson and Ruhe 1980), by SciPy's ARPACK. Its operator (K − σM)⁻¹ is a prepared swell Solver: at
σ below zero the matrix is positive definite, so CG with multigrid serves; between eigenvalues it is indefinite.

The eigenproblem leaves out all damping: loss factors, Impedance and Absorbing walls. The modal response has them: it
projects A(ω) = K − ω² M + iω B onto the modes (Galerkin), and solves a small dense system for each frequency. Modes
alone converge slowly near a source. So the loads at the first and the last frequency add residual vectors to the basis:
the static answers (K − σM)⁻¹ (f − M Φ Φᵀ f) to the part that the modes miss (MacNeal 1971).
"""
from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Unpack

import numpy as np

from swell.core.encoding import printable
from swell.core.errors import InputError, SwellError
from swell.core.settings import real
from swell.core.stopping import Reason
from swell.options import Accepted, OptionsDict
from swell.pde.helmholtz.field import decibels
from swell.pde.helmholtz.frequencies import checked
from swell.pde.helmholtz.locating import locate
from swell.pde.helmholtz.mesh_file import write_point_data
from swell.pde.helmholtz.sources import separate

if TYPE_CHECKING:
    from swell.pde.helmholtz.problem import Helmholtz

OPTIONS = Accepted(without=("M", "block", "atol", "stopping", "dtype"), rtol=1e-8, device="cpu")
INNER = 1e-2            # tolerance of a solve over the tolerance of a mode
ROUNDING = 1e-12        # eigenvalues below this fraction of |σ| are zero
DEPENDENT = 1e-8        # residual vectors below this fraction of their norm lie in the span of the others


@dataclass(eq=False)
class Modes:
    """Modes of a cavity, ascending in frequency.

    Attributes
    ----------
    problem : Helmholtz
    frequencies : ndarray, shape (modes,)
        Hz.
    shapes : ndarray, shape (dofs, modes)
        Φᵀ M Φ = I; zero on walls of given pressure.
    residuals : ndarray, shape (modes,)
        ‖K φ − λ M φ‖ / ((λ + |σ|) ‖M φ‖), with λ = ω² and the shift σ.
    rtol : float
        Tolerance of the residuals.
    asked : int
        Number of modes that were asked for.
    solves, iterations : int
        Solves with K − σM, and their iterations.
    configuration : str
        What solved them.
    notes : list of str
    """

    problem: Helmholtz
    frequencies: np.ndarray
    shapes: np.ndarray
    residuals: np.ndarray
    rtol: float
    asked: int
    solves: int
    iterations: int
    configuration: str
    notes: list = field(default_factory=list)
    _inverse: ShiftInvert | None = field(default=None, repr=False)

    @property
    def converged(self) -> bool:
        """True if all modes were found, and the true residual of each meets the tolerance."""
        return len(self.frequencies) == self.asked and bool((self.residuals <= self.rtol).all())

    def at(self, points) -> np.ndarray:
        """Return the mode shapes at points (k, dim), shape (k, modes)."""
        mesh, space = self.problem.mesh, self.problem.space
        places = [space.at(*locate(mesh, x, "point")) for x in self.problem._ears(points)]
        return np.array([weights @ self.shapes[dofs] for dofs, weights in places])

    def response(self, source=None, ear=None, frequencies=(), *, sources=None) -> ModalResponse:
        """Compute the response at the ears by the modes, with the parameters of `Helmholtz.response`.

        It is an approximation: accurate up to about the highest mode, and best between the modes that are there."""
        if sources is not None and source is not None:
            raise InputError("both source and sources were given: put all sources into sources")
        problem, frequencies = self.problem, checked(frequencies)
        sources = None if sources is None else separate(sources)
        free, rhs = problem._free(), problem._right_hand_side(source, sources)
        omegas = 2 * math.pi * frequencies
        loads = [rhs.on_host(omega).reshape(free.size, -1) for omega in omegas]
        V = self._inverse.extended(self.shapes[free], np.hstack([loads[0], loads[-1]]))
        (K, M, B), varying = ([V.T @ (A @ V) for A in problem._system(free)[0]], problem.varying)
        ears = problem._ears(ear)
        if not ears:
            raise InputError("a response by modes needs an ear: give ear, a point or a list of points")
        at = [problem.space.at(*locate(problem.mesh, x, "ear")) for x in ears]
        full, fixed = np.zeros((problem.space.n, V.shape[1])), problem._given[1]
        full[free] = V
        heard = np.array([weights @ full[dofs] for dofs, weights in at]).reshape(len(ears), V.shape[1])
        constant = np.array([weights @ fixed[dofs] for dofs, weights in at])
        pressure = []
        for omega, b in zip(omegas, loads):
            A = K - omega ** 2 * M + 1j * omega * B
            for part in varying:
                A = A + V.T @ (part.matrix(omega)[free][:, free] @ V)
            q = np.linalg.solve(A, V.T @ b)
            pressure.append((heard @ q).T + constant)
        pressure = np.array(pressure).reshape(len(frequencies), -1, len(ears))
        return ModalResponse(frequencies, np.array(ears), pressure if sources else pressure[:, 0],
                             len(self.frequencies))

    def write(self, path):
        """Write all mode shapes at the mesh's points to ``path``, a .vtu file for ParaView; each one's largest value is
        1."""
        shapes = self.shapes[:len(self.problem.mesh.points)]
        largest = shapes[abs(shapes).argmax(axis=0), np.arange(shapes.shape[1])]
        write_point_data(path, self.problem.mesh, {
            f"mode_{k:03d}_{f:.4g}Hz": shapes[:, k - 1] / largest[k - 1] for k, f in enumerate(self.frequencies, 1)})

    def as_dict(self) -> dict:
        """Everything except the shapes, in plain types for JSON."""
        return {"frequencies": self.frequencies.tolist(), "residuals": self.residuals.tolist(), "rtol": self.rtol,
                "converged": self.converged, "asked": self.asked, "solves": self.solves,
                "iterations": self.iterations, "configuration": self.configuration, "notes": self.notes}

    def __repr__(self):
        return f"Modes({self._summary()})"

    def _repr_html_(self):
        from swell.display import page
        done = f"{len(self.frequencies)} of {self.asked}"
        return page.fragment([f"<p>{page.badge(done, self.converged)} {page.escape(self._summary())}</p>",
                              page.preformatted(self._table()), page.bullets(self.notes)])       # a notebook shows this

    def _summary(self):
        state = "converged" if self.converged else "NOT converged"
        span = f" from {self.frequencies[0]:.4g} to {self.frequencies[-1]:.4g} Hz" if len(self.frequencies) else ""
        return (f"{len(self.frequencies)} of {self.asked} modes{span}, {state}: residuals up to "
                f"{self.residuals.max(initial=0):.1e}, {self.solves} solves, {self.iterations} iterations")

    def _table(self):
        return [f"  {k:4d}  {f:10.4f} Hz  residual {r:.1e}"
                for k, (f, r) in enumerate(zip(self.frequencies, self.residuals), 1)]

    @printable
    def __str__(self):
        return "\n".join([self._summary(), *self._table(), f"  {self.configuration}",
                          *(f"  note: {note}" for note in self.notes)])


@dataclass(frozen=True, eq=False)
class ModalResponse:
    """The response at the ears by modes.

    Attributes
    ----------
    frequencies : ndarray, shape (points,)
        Hz.
    ears : ndarray, shape (ears, dim)
    pressure : ndarray, shape (points, ears), or (points, sources, ears) for several sources, complex
        Amplitudes, Pa.
    modes : int
        Number of modes.
    """

    frequencies: np.ndarray
    ears: np.ndarray
    pressure: np.ndarray
    modes: int

    @property
    def level(self) -> np.ndarray:
        """Levels in dB re 20 µPa, of the RMS values |p|/√2."""
        return decibels(self.pressure)


class ShiftInvert:
    """(K − σM)⁻¹ by a prepared Solver, which counts its solves.

    Parameters
    ----------
    K, M : scipy.sparse matrices, n × n, real and symmetric
    shift : float
        σ.
    rtol : float
        Relative tolerance of a solve.
    options : Options
        How to solve, apart from the tolerance.
    """

    def __init__(self, K, M, shift, rtol, options):
        from swell.api import prepare
        self.M, self.shift = M, shift
        self.solver = prepare(K - shift * M, **replace(options, rtol=rtol).keywords())
        self.solves = self.iterations = 0
        self.configuration = ""

    def solve(self, b):
        """Return x = (K − σM)⁻¹ b.

        Raises SwellError if the solve fails. An accuracy limited by rounding is no failure: the residuals of the modes
        judge it."""
        result = self.solver.solve(np.ascontiguousarray(b))
        self.solves, self.iterations = self.solves + 1, self.iterations + result.iterations
        if result.reason is Reason.INTERRUPTED:
            raise KeyboardInterrupt
        if not result.converged and result.reason is not Reason.ATTAINABLE_ACCURACY:
            raise SwellError(f"modes: a solve with K − σM, σ = (2π · {_hertz(self.shift):.6g} Hz)², failed: "
                             f"{result.reason.name}, {result.message}; name method='direct', or another near=")
        self.configuration = result.method + (f" with {result.precond}" if result.precond != "none" else "")
        return result.x

    def extended(self, shapes, loads):
        """Return the modes and one residual vector for each independent load, as columns that are orthonormal in M.

        ``shapes``: (n, modes), orthonormal in M. ``loads``: (n, k), complex."""
        V = shapes
        for load in np.hstack([loads.real, loads.imag]).T if np.iscomplexobj(loads) else loads.T:
            missed = load - self.M @ (V @ (V.T @ load))
            if not np.linalg.norm(missed) > DEPENDENT * np.linalg.norm(load):
                continue
            new = self.solve(missed)
            before = math.sqrt(abs(new @ (self.M @ new)))
            for _ in range(2):                   # twice is enough
                new = new - V @ (V.T @ (self.M @ new))
            size = math.sqrt(abs(new @ (self.M @ new)))
            if size > DEPENDENT * before:
                V = np.column_stack((V, new / size))
        return V


@OPTIONS.shown
def find(problem, count=10, near=0.0, **options: Unpack[OptionsDict]) -> Modes:
    """Find the modes of a cavity whose frequencies are nearest to ``near``.

    Parameters
    ----------
    problem : Helmholtz
        Its damping is left out of the eigenproblem, and a note says so.
    count : int
        Number of modes; below the number of free dofs.
    near : float
        Hz. 0: the lowest modes; a closed cavity then begins with 0 Hz, a constant pressure.
    rtol : float
        Tolerance of the modes' residuals.
    method, precond, ..., maxiter
        See `swell.Options`; they solve with K − σM. Without a method, swell chooses, and takes "direct" for
        ``near`` above 0, where the matrix is indefinite and one factorisation serves all solves.

    Returns
    -------
    Modes

    Raises
    ------
    InputError
        For a count or a frequency that is out of range.
    SwellError
        If a solve with K − σM fails.
    """
    import scipy.sparse.linalg as spla
    if problem.pml is not None or any(m.varies for m in problem.media):
        what = "a perfectly matched layer" if problem.pml is not None else "a medium that depends on the frequency"
        raise InputError(f"modes: {what} makes A(ω) no polynomial in ω: expected a closed cavity with "
                         "constant media; walls may have any condition")
    K, M, free = undamped(problem)
    if not isinstance(count, numbers.Integral) or isinstance(count, bool) or not 0 < count < free.size:
        raise InputError(f"modes: count={count!r}: expected a number of modes, 1 to {free.size - 1}: the mesh has "
                         f"{free.size} free dofs")
    if not real(near) or not 0 <= near < np.inf:
        raise InputError(f"modes: near={near!r}: expected a frequency in Hz, 0 or more")
    chosen = OPTIONS.read(options)
    rtol = chosen.rtol
    if not real(rtol) or not 0 < rtol < 1:
        raise InputError(f"modes: rtol={rtol!r}: expected a number above 0 and below 1")
    if near and chosen.method is None:
        chosen = replace(chosen, method="direct")
    inverse = ShiftInvert(K, M, _shift(problem, near), INNER * rtol, chosen)
    notes, start = _notes(problem), np.random.default_rng(0).standard_normal(free.size)
    try:
        values, vectors = spla.eigsh(K, int(count), M, inverse.shift, tol=INNER * rtol, v0=start,
                                     OPinv=spla.LinearOperator(K.shape, inverse.solve, dtype=K.dtype))
    except spla.ArpackNoConvergence as error:
        values, vectors = error.eigenvalues, error.eigenvectors
        notes.append(f"Lanczos ended with {len(values)} of {count} modes: ask for fewer, or for a looser rtol")
    order = np.argsort(values)
    values, vectors = values[order], vectors[:, order]
    vectors /= np.sqrt(np.einsum("ij,ij->j", vectors, M @ vectors))
    pressed = M @ vectors
    residuals = (np.linalg.norm(K @ vectors - pressed * values, axis=0)
                 / ((abs(values) + abs(inverse.shift)) * np.linalg.norm(pressed, axis=0)))
    shapes = np.zeros((problem.space.n, len(values)))
    shapes[free] = vectors
    values[values < ROUNDING * abs(inverse.shift)] = 0               # the constant pressure of a closed cavity; K ≥ 0
    frequencies = np.sqrt(values) / (2 * math.pi)
    return Modes(problem, frequencies, shapes, residuals, rtol, int(count), inverse.solves, inverse.iterations,
                 inverse.configuration, notes, inverse)


def undamped(problem):
    """Return (K, M, free dofs): the real matrices of a problem without its damping, over the dofs whose pressure is not
    given."""
    density = np.array([m.density for m in problem.media])
    bulk = np.array([m.density * m.speed ** 2 for m in problem.media])
    K, M = problem.space.volume(*((1 / v)[problem.medium_of] for v in (density, bulk)))
    free = np.flatnonzero(~problem._given[0])
    if free.size < problem.space.n:
        K, M = (A[free][:, free] for A in (K, M))
    return K, M, free


def _shift(problem, near):
    """Return σ: at ``near`` Hz; for 0 below zero, by a quarter of (π c / L)², about the lowest eigenvalue."""
    if near:
        return (2 * math.pi * near) ** 2
    length = np.ptp(problem.mesh.points, axis=0).max()
    return -0.25 * (math.pi * max(m.speed for m in problem.media) / length) ** 2


def _hertz(shift):
    """Return the frequency of σ in Hz, negative below zero."""
    return math.copysign(math.sqrt(abs(shift)), shift) / (2 * math.pi)


def _notes(problem):
    """Return a list of notes on the damping that the eigenproblem leaves out."""
    parts = ["the media's loss factors"] if any(m.damping for m in problem.media) else []
    walls = [name for name, condition in problem.conditions.items()
             if type(condition).__name__ in ("Impedance", "Absorbing")]
    parts += [f"the walls {', '.join(walls)}, which count as rigid"] if walls else []
    return [f"the modes leave out {' and '.join(parts)}; the modal response has them"] if parts else []
