"""Field: the sound pressure in the whole mesh at one frequency."""
from __future__ import annotations

import math

import numpy as np

from swell.core.encoding import printable
from swell.pde.helmholtz.locating import locate
from swell.pde.helmholtz.mesh_file import write_point_data

REFERENCE = 20e-6       # Pa, RMS: 0 dB


def decibels(p):
    """Return the levels in dB re 20 µPa, of the RMS value |p|/√2, of complex amplitudes p (peaks, Pa)."""
    with np.errstate(divide="ignore"):
        return 20 * np.log10(np.abs(p) / (math.sqrt(2) * REFERENCE))


class Field:
    """The solution at one frequency.

    Attributes
    ----------
    frequency : float
        Hz.
    p : ndarray, shape (dofs,), complex
        Amplitudes in Pa, at the mesh's points first.
    result : Result
        The Result of the linear solve, without x.
    """

    def __init__(self, problem, frequency, p, result):
        self.problem, self.frequency, self.p, self.result = problem, frequency, p, result

    @property
    def converged(self) -> bool:
        """True if the true residual met the tolerance."""
        return self.result.converged

    def at(self, point) -> complex:
        """Return the pressure at a point (coordinates in m), a complex amplitude in Pa."""
        dofs, weights = self.problem.space.at(*locate(self.problem.mesh, point, "point"))
        return complex(self.p[dofs] @ weights)

    def dissipation(self) -> dict:
        """The dissipated power (W, mean over a period): a dict with "medium", by its damping, "walls", and "layer" for
        a perfectly matched layer.

        Apart from the solve's residual, the sum equals the sources' power, ½ Re ∫ p v̄. A wall of given pressure may
        also supply or take power.
        """
        _, M, B = self.problem.matrices
        omega = 2 * math.pi * self.frequency
        powers = {"medium": float(-omega / 2 * np.vdot(self.p, M @ self.p).imag),
                  "walls": float(np.vdot(self.p, B @ self.p).real / 2)}
        for part in self.problem.varying:
            power = float(np.vdot(self.p, part.matrix(omega) @ self.p).imag / (2 * omega))
            powers[part.kind] = powers.get(part.kind, 0.0) + power
        return powers

    def write(self, path):
        """Write p at the mesh's points to ``path``, a .vtu file for ParaView: real part, imaginary part, amplitude and
        level."""
        p = self.p[:len(self.problem.mesh.points)]
        level = np.maximum(decibels(p), -400)                    # a pressure of 0 has no level
        write_point_data(path, self.problem.mesh, {"p_real": p.real.copy(), "p_imag": p.imag.copy(),
                                                   "p_amplitude": abs(p), "level_dB": level})

    def plot(self, path):
        """Draw the level on the mesh's surface and in a cut through its middle, to ``path``, a .png file."""
        from swell.io.files import to_write
        from swell.report.sound import plot
        plot(self, decibels, to_write(path, ".png"))

    def __repr__(self):
        return f"Field({self._summary()})"

    def _repr_html_(self):
        from swell.display import page
        from swell.solving.cards import of_result
        return page.fragment([page.paragraph(self._summary()), *of_result(self.result)])         # a notebook shows this

    def _summary(self):
        state = "converged" if self.converged else f"NOT converged ({self.result.reason.name})"
        return f"{self.frequency:g} Hz, {state}: |p| up to {abs(self.p).max():.4g} Pa ({decibels(self.p).max():.1f} dB)"

    @printable
    def __str__(self):
        return "\n".join([self._summary(), *("  " + line for line in str(self.result).splitlines())])
