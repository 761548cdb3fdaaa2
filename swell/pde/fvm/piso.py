"""Transient incompressible flow by PISO: Issa 1986, on a collocated grid with the fluxes of Rhie and Chow.

A step from tⁿ to tⁿ⁺¹, with D the diagonal of the momentum matrix, time term included:

1. Predictor: solve A u = b − V ∇pⁿ for all components together. Convection takes the fluxes, and deferred terms the
   velocities, extrapolated to tⁿ⁺¹; with Euler, both of tⁿ.
2. Corrector, ``correctors`` times: with h = (b − (A − D) u)/D, the velocity without pressure,
       φₕ = h_f·s + (V/(D Δt))_f (φ_old − (u_old)_f·s)
       −∇·(V/D ∇p) = −∇·φₕ,  φ = φₕ − (V/D)_f g (p_N − p_O),  u = h − (V/D) ∇p.
   φ conserves to the tolerance of the pressure solve.

The second term of φₕ replaces interpolated old velocities by the old fluxes, so that a steady flow hardly depends on Δt
(Choi 1999). Non-orthogonal terms of the pressure equation are explicit, from the last corrector.

Linear convection is in the matrix, other schemes are deferred. Upwind adds ½ Σ |φ| to D; linear does not, so φ − u_f·s
would decay slowly, and errors of space grow. The linear scheme's weight of the old fluxes is ½ Σ |φ| smaller instead.

The step is implicit, but the correctors neglect terms that grow with Δt: a Courant number near 1 is right for accuracy.
Above some 2 a run may diverge; it then stops with a note.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import choose_by_none, positive, real
from swell.core.stopping import Stopping
from swell.pde.fvm.boundary import Boundary, Neumann
from swell.pde.fvm.convection import check_scheme
from swell.pde.fvm.coupling import Coupling
from swell.pde.fvm.laplacian import Laplacian
from swell.pde.fvm.slots import Scheme
from swell.pde.fvm.time import SLIVER, check_step, count_steps

if TYPE_CHECKING:
    from swell.core.preconditioner import Preconditioner
    from swell.krylov.method import Method

LOST = 1e3              # growth of the largest speed, over the boundary's and the start's, that counts as divergence
CAREFUL = 1.0           # Courant number that the advice on divergence aims at


@dataclass(frozen=True)
class PISO:
    """Settings of a march in time.

    Attributes
    ----------
    dt, end : float
        The step, and the time at the end, from 0. The last step is shortened to end there, but to no less than 1e-4 dt.
    every : float
        Time between two calls of ``watch``; 0: at the end only.
    correctors : int
        Pressure corrections a step; 2 make the step second-order.
    time : {"bdf2", "euler"}
    scheme : {"linear", "linear_upwind", "upwind"}
        Scheme of convection. "linear" is in the matrix; the others are deferred.
    momentum, pressure_solver : str or settings object
        Methods of the two linear solves. None: the advisor chooses, once, for the first momentum matrix of a fluid
        that moves; with a preconditioner named, bicgstab.
    momentum_precond, pressure_precond : str, settings object or None
        Their preconditioners; without one, the pressure equation is scaled by its diagonal.
    momentum_rtol, pressure_rtol : float
        Relative tolerance of each linear solve; the pressure's is relative to its right-hand side.
    pressure_renewal : int
        As in `SIMPLE`.
    """

    dt: float
    end: float
    every: float = 0.0
    correctors: int = 2
    time: str = "bdf2"
    scheme: str = "linear"
    momentum: str | type | Method | None = None
    momentum_precond: str | type | Preconditioner | None = None
    momentum_rtol: float = 1e-6
    pressure_solver: str | type | Method = "cg"
    pressure_precond: str | type | Preconditioner | None = "amg"
    pressure_rtol: float = 1e-6
    pressure_renewal: int = 2

    def __post_init__(self):
        choose_by_none(self, "auto", "momentum")
        check_scheme(self.scheme)
        check_step(self.dt, self.time)
        positive(self, "correctors")
        positive(self, "pressure_renewal", minimum=0)
        for name, least in (("end", 0.0), ("every", -1.0)):
            value = getattr(self, name)
            if not real(value) or not least < value < math.inf or value < 0:
                raise InputError(f"PISO({name}={value!r}): expected a time "
                                 + ("above 0" if least == 0 else "of 0 or more"))
        count_steps(self.end, self.dt)
        for name in ("momentum_rtol", "pressure_rtol"):
            value = getattr(self, name)
            if not real(value) or not 0 < value < 1:
                raise InputError(f"PISO({name}={value!r}): expected a number above 0 and below 1")


class March(Coupling):
    """One run of PISO."""

    def __init__(self, flow, settings, space, forces=()):
        super().__init__(flow, settings, space, forces)
        if settings.scheme == "linear":          # deferred, two correctors do not suffice from Courant 1 or 2 on
            self.scheme = Scheme.CENTRAL
        known = {name: flow.pressure.get(name, Neumann()) for name in flow.velocity}
        self.pressure = Laplacian(self.metrics, Boundary.of(self.metrics, known), interpolation="linear")
        self.floating = self.pressure.boundary.floating
        self.stopping = Stopping(rtol=settings.momentum_rtol)
        self.imbalance = space.xp.zeros(self.metrics.n)

    def run(self, start, watch, progress=None):
        """March from ``start`` to the end; return the FlowSolution. ``watch``, ``progress``: as in `Flow.march`."""
        settings = self.settings
        self.begin(start)
        self.before, t, shown, shown_at = None, 0.0, 0, 0.0
        residuals, notes, self.times, self.diverged = [], [], [], False
        steps = count_steps(settings.end, settings.dt)
        for step in range(1, steps + 1):
            before, t = t, step * settings.dt if step < steps else settings.end
            dt = t - before
            if abs(dt - settings.dt) > 2 * SLIVER * settings.dt:
                self.before = None               # BDF2 needs equal steps: the last one is Euler's
            momentum, mass, fastest = self.step(dt)
            courant = self.courant(dt)
            residuals.append((momentum, mass))
            self.record_forces()
            self.times.append((t, courant))
            if progress is not None:
                progress(t, courant, mass)
            if self.lost(fastest, LOST):
                self.diverged = True
                notes.append(f"it diverged at t = {t:.6g}{self._remedy(courant)}, or scheme='upwind'")
                break
            if self.interrupted:
                notes.append(f"interrupted at t = {t:.6g} of {settings.end:g}: this is the last step, from which a new "
                             "run may start (start=...)")
                break
            if self.failed:
                notes.append(f"{self.failed} at t = {t:.6g}{self._remedy(courant)}, another preconditioner, or a "
                             "looser rtol")
                break
            if settings.every and watch is not None and t >= (shown + 1) * settings.every * (1 - 1e-9):
                shown, shown_at = math.floor(t / settings.every * (1 + 1e-9)), t
                watch(self._at(t, residuals, notes, courant))
        solution = self._at(t, residuals, notes, courant)
        if watch is not None and shown_at < t:
            watch(solution)
        return solution

    def _remedy(self, courant):
        """Return the Courant number and a smaller step as words, by the first step's: later ones grow with speeds."""
        dt, first = self.times[0]
        better = dt * CAREFUL / first if math.isfinite(first) and first > CAREFUL else dt / 4
        return f", at a Courant number of {courant:.3g}: take dt={better:.2g}"

    def _at(self, t, residuals, notes, courant):
        solution = self.solution(not notes, residuals, list(notes), t)
        solution.courant, solution.times, solution.diverged = courant, np.array(self.times), self.diverged
        return solution

    def courant(self, dt):
        """Return the largest Courant number, ½ Σ |φ| Δt/V."""
        metrics = self.metrics
        numbers = 0.5 * dt * metrics.pattern.collect(abs(self.phi), 1) / metrics.volumes
        return max(self.of_ranks(float(numbers[:metrics.own].max())))

    def step(self, dt):
        """Advance by dt. Return (residual of the momentum predictor, continuity error of the new fluxes, largest
        speed)."""
        metrics, settings, pattern, xp = self.metrics, self.settings, self.metrics.pattern, self.space.xp
        u, phi, rate = self.u, self.phi, 1.0 / dt
        old, phi_old, explicit, carried = u, phi, u, phi
        if settings.time == "bdf2" and self.before is not None:                 # (3u⁺ − 4u + u⁻)/(2Δt)
            u_, phi_ = self.before
            rate, explicit, carried = 1.5 / dt, 2 * u - u_, 2 * phi - phi_
            old, phi_old = (4 * u - u_) / 3, (4 * phi - phi_) / 3
        self.before = u, phi                     # no step writes into their arrays
        self.slope(self.p, self.grad_p)
        self.momentum(explicit, carried, old, rate, 1.0)
        known = self.rhs + metrics.volumes * self.grad_p[self.axes]
        self.u = self.solve_momentum(old)
        mobility = metrics.volumes / self.D
        kept = rate * metrics.volumes
        if self.scheme == Scheme.CENTRAL:        # less weight, in place of upwind's addition to D
            kept = metrics.refresh(xp.maximum(kept - 0.5 * pattern.collect(abs(carried), 1), 0))
        share = metrics.interpolate(kept / self.D)
        moved = share * (phi_old[:metrics.n_internal] - self.through(old))
        self.pressure.k = self.pressure.on_faces(mobility)
        flux = self.pressure.flux()
        self.P = pattern.matrix(flux, out=self.P)
        self.update_pressure()
        for _ in range(settings.correctors):
            self._correct(known, moved, flux)
        self.kernels.balance(pattern.ptr, pattern.faces, self.phi, self.way, self.imbalance, *self.measures[2:])
        lost, acting, imbalance, through, fastest = self.measure()
        return lost / (acting or 1.0), imbalance / (through or 1.0), fastest

    def _correct(self, known, moved, flux):
        """Do step 2, the corrector, once. ``known``: b; ``moved``: the second term of φₕ on the internal faces;
        ``flux``: the pressure equation's Flux."""
        metrics, xp = self.metrics, self.space.xp
        inside, diagonal = slice(0, metrics.n_internal), self.D + self.extra
        x, b = self.unknowns(self.u), self.unknowns(known)
        r = xp.empty_like(b)
        for rows in zip(x, b, r):
            self.A.residual(*rows)
        self.u = free = metrics.refresh((self.components(r) + diagonal * self.u) / diagonal)               # h
        phi = xp.zeros(metrics.owner.size)
        phi[inside] = self.through(free) + moved
        self._flux_at_boundary(phi)
        explicit = flux.c + self.pressure.explicit(self.slope(self.p))
        self.p = self.solve_pressure(-metrics.divergence(phi + explicit), self.p)
        self.phi = phi + flux.with_explicit(explicit - flux.c).of(metrics, self.p)
        self._flux_of_walls(self.phi, phi)
        self.u = metrics.refresh(free - metrics.volumes / diagonal * self.slope(self.p)[self.axes])

    def _flux_of_walls(self, phi, fixed):
        """Set ``phi`` to ``fixed`` on the boundary faces whose velocity is given."""
        acting = self.pressure.boundary.slope != 0
        outside = self.outside
        phi[outside] = self.space.xp.where(acting, phi[outside], fixed[outside])
