"""Warnings about mesh and damping before a sweep, and advice on a solve that failed or came close to a resonance."""
from swell.core.stopping import Reason
from swell.pde.helmholtz.frequencies import NODES

# Reasons with which solves fail at an undamped resonance.
RESONANT = (Reason.STAGNATED, Reason.MAXITER, Reason.SINGULAR, Reason.BREAKDOWN, Reason.ATTAINABLE_ACCURACY,
            Reason.DIVERGED, Reason.FALSE_CONVERGENCE, Reason.NONFINITE)
AMPLIFIED = 1e6         # ‖A‖ ‖p‖ / ‖b‖ above which a frequency counts as close to a resonance


def of_band(problem, frequencies):
    """Return a list of warnings about the mesh and the damping of a Helmholtz problem, for the response's notes."""
    notes, most, finest = list(problem._given[2]), float(frequencies.max()), problem.finest
    if most > finest:
        notes.append(f"the mesh is too coarse above {finest:.4g} Hz: at {most:g} Hz its coarsest cell has "
                     f"{NODES * finest / most:.2g} nodes a wavelength, and {NODES} are needed: refine it"
                     + (", or take degree=2" if problem.degree == 1 else ""))
    if problem.mesh.parts > 1:
        notes.append(f"the mesh is in {problem.mesh.parts} parts that share no face: no sound crosses from one to "
                     "another; where they should be one, merge them before meshing (fragment in gmsh)")
    if not problem.damped:
        notes.append("nothing takes energy out of the sound: at a resonance the response has no bound; give the "
                     "medium a damping, or a wall an Impedance")
    return notes


def advice(problem, result):
    """Return advice on a failed solve, or on one too close to an undamped resonance; otherwise ""."""
    amplified = result.residual > AMPLIFIED * result.backward_error
    if result.converged:
        return "" if problem.damped or not amplified else (
            "nothing damps the sound, and this is so close to a resonance that ‖A‖ ‖p‖ is "
            f"{result.residual / result.backward_error:.0e} of ‖b‖: rounding and mesh decide on p; give the medium "
            "a damping, say 0.01")
    if problem.damped or result.reason not in RESONANT:
        return result.message
    if amplified:
        return "nothing damps the sound, and this may be (near) a resonance: give the medium a damping, say 0.01"
    if result.reason is Reason.ATTAINABLE_ACCURACY:
        return result.message
    return result.message + ("; or, since nothing damps the sound, this may be (near) a resonance: give the medium "
                             "a damping, say 0.01")
