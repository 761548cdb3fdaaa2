"""An OpenFOAM case of laminar flow: a cavity with a moving lid, written, solved steady, then in time, and restarted.

On the command line the same is: swell flow CASE --steady, and swell flow CASE --write-case --forces ymax --history FILE
"""
import pathlib
import tempfile

import numpy as np

from swell.pde import fvm

case = pathlib.Path(tempfile.mkdtemp(prefix="swell-")) / "cavity"
files = {
    "0/U": """dimensions [0 1 -1 0 0 0 0];
internalField uniform (0 0 0);
boundaryField
{
    ymax { type fixedValue; value uniform (1 0 0); }
    "(xmin|xmax|ymin)" { type noSlip; }
    "z.*" { type empty; }
}""",
    "0/p": """dimensions [0 2 -2 0 0 0 0];
internalField uniform 0;
boundaryField { ".*" { type zeroGradient; } "z.*" { type empty; } }""",
    "constant/transportProperties": "nu [0 2 -1 0 0 0 0] 0.01;",
    "system/controlDict": "application icoFoam; startFrom latestTime; endTime 1; deltaT 0.02; writeInterval 25;"}

fvm.write_polymesh(fvm.box((24, 24)), case)                  # or the case's own blockMesh, snappyHexMesh, ...
for place, text in files.items():
    path = case / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"FoamFile {{ format ascii; object {path.name}; }}\n{text}\n")

# 1. The steady state, by SIMPLEC.
cavity = fvm.read_case(case)
steady = cavity.flow.solve(fvm.SIMPLE(velocity=0.9, scheme="linear", pressure_precond="amg"), start=cavity.start)
print(f"steady: {steady}")
for name, (pressure, viscous) in cavity.flow.forces(steady).items():
    print(f"  force on {name}: pressure {pressure[:2].round(5)}, viscous {viscous[:2].round(5)}")
assert steady.converged

# 2. In time, by PISO; every output becomes a folder of the case.
assert cavity.dt and cavity.end and cavity.write_every                    # of system/controlDict
march = fvm.PISO(dt=cavity.dt, end=cavity.end, every=cavity.write_every, pressure_precond="amg")
flow = cavity.flow.march(march, start=cavity.start, watch=lambda now: cavity.write(f"{now.time:g}", now),
                         forces=("ymax",))
print(f"in time: {flow}")
assert flow.times is not None                                # the time and Courant number of each step
pressure, viscous = flow.forces["ymax"][:, 0], flow.forces["ymax"][:, 1]
print(f"  drag of the lid at t = {flow.times[4, 0]:g}: {viscous[4, 0]:.4f}, at the end {viscous[-1, 0]:.4f}")
flow.write_history(case / "history.csv")                     # residuals, Courant numbers and forces of each step
assert flow.converged and {"0.5", "1"} <= {path.name for path in case.iterdir()}

# 3. A restart: the latest time has U, p and the fluxes phi.
again = fvm.read_case(case)
assert again.time == "1" and np.array_equal(again.start.velocity, flow.velocity)
later = again.flow.march(fvm.PISO(dt=0.05, end=30.0, pressure_precond="amg"), start=again.start)
print(f"at t = 31 the flow is {abs(later.velocity - steady.velocity).max():.1e} lid speeds from the steady state")
assert later.converged and abs(later.velocity - steady.velocity).max() < 1e-3
