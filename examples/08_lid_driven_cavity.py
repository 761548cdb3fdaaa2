"""The lid-driven cavity by SIMPLE, compared with the tables of Ghia, Ghia and Shin.

U. Ghia, K. N. Ghia, C. T. Shin, J. Comput. Phys. 48 (1982) 387-411: u along the vertical centre line (table I), v along
the horizontal centre line (table II). The entry of v at x = 0.9063 for Re 400 is a misprint and is left out.
"""
import pathlib
import tempfile

import numpy as np

from swell.pde import fvm

Y = np.array([1, .9766, .9688, .9609, .9531, .8516, .7344, .6172, .5, .4531, .2813, .1719, .1016, .0703, .0625, .0547,
              0])
X = np.array([1, .9688, .9609, .9531, .9453, .9063, .8594, .8047, .5, .2344, .2266, .1563, .0938, .0781, .0703, .0625,
              0])
U = {100: [1, .84123, .78871, .73722, .68717, .23151, .00332, -.13641, -.20581, -.21090, -.15662, -.10150, -.06434,
           -.04775, -.04192, -.03717, 0],
     400: [1, .75837, .68439, .61756, .55892, .29093, .16256, .02135, -.11477, -.17119, -.32726, -.24299, -.14612,
           -.10338, -.09266, -.08186, 0]}
V = {100: [0, -.05906, -.07391, -.08864, -.10313, -.16914, -.22445, -.24533, .05454, .17527, .17507, .16077, .12317,
           .10890, .10091, .09233, 0],
     400: [0, -.12146, -.15663, -.19254, -.22847, np.nan, -.44993, -.38598, .05186, .30174, .30203, .28124, .22965,
           .20920, .19713, .18360, 0]}

n = 64
mesh = fvm.box((n, n))
walls = {name: fvm.Dirichlet((0.0, 0.0, 0.0)) for name in ("xmin", "xmax", "ymin")}
lid = {"ymax": fvm.Dirichlet((1.0, 0.0, 0.0))}
settings = fvm.SIMPLE(velocity=0.9, scheme="linear", rtol=1e-6)

last, lines = None, {}
for reynolds in (100, 400):
    flow = fvm.Flow(mesh, {**walls, **lid}, viscosity=1 / reynolds).solve(settings, start=last)
    u, v = (flow.velocity[:, i].reshape(n, n) for i in (0, 1))
    at = np.concatenate([[0], mesh.centres[:n, 0], [1]])
    u = np.concatenate([[0], u[:, n // 2 - 1:n // 2 + 1].mean(1), [1]])     # the centre line lies between two columns
    v = np.concatenate([[0], v[n // 2 - 1:n // 2 + 1].mean(0), [0]])
    lines[reynolds] = at, u, v
    off_u, off_v = abs(np.interp(Y, at, u) - U[reynolds]), abs(np.interp(X, at, v) - V[reynolds])
    print(f"Re {reynolds}: {flow}")
    print(f"  largest difference from the tables: {np.nanmax(off_u):.4f} (u), {np.nanmax(off_v):.4f} (v) lid speeds")
    assert flow.converged and np.nanmax(off_u) < 0.015 and np.nanmax(off_v) < 0.015
    last = flow                                                                     # the next one begins with it

folder = pathlib.Path(tempfile.mkdtemp(prefix="swell-"))
flow.write(folder / "cavity.vtu")

import matplotlib                                                                   # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt                                                     # noqa: E402

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
for colour, (reynolds, (at, u, v)) in zip(("C0", "C3"), lines.items()):
    left.plot(u, at, colour, label=f"swell, Re {reynolds}")
    left.plot(U[reynolds], Y, colour + "o", fillstyle="none", label="Ghia et al.")
    middle.plot(at, v, colour)
    middle.plot(X, V[reynolds], colour + "o", fillstyle="none")
left.set(xlabel="u on the vertical centre line", ylabel="y")
middle.set(xlabel="x", ylabel="v on the horizontal centre line")
left.legend(fontsize="small")
grid = mesh.centres[:n, 0]
field = (flow.velocity[:, i].reshape(n, n) for i in (0, 1))
right.streamplot(grid, grid, *field, density=1.4, linewidth=0.6, arrowsize=0.6)
right.set(aspect="equal", xlim=(0, 1), ylim=(0, 1), title="Re 400")
figure.savefig(folder / "cavity.png", dpi=110)
print(f"{folder / 'cavity.png'}, {folder / 'cavity.vtu'}")
