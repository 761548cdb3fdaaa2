"""Does a smoother before CG, or between its iterations, pay? python benchmarks/smoother_beside_cg.py [DEVICE]

Iterations and seconds to a true residual of 1e-8 of Jacobi-scaled CG with and without a smoother, b all ones.
"""
import sys

import numpy as np

import swell
from swell import gallery

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
SYSTEMS = {"ecology2~, 250 000": ("ecology2~", 250_000), "parabolic_fem~, 100 000": ("parabolic_fem~", 100_000)}
SETTINGS = {"none": {}, "10 before": {"before": 10}, "100 before": {"before": 100},
            "2 between, every 50": {"before": 0, "between": 2, "every": 50},
            "5 between, every 200": {"before": 0, "between": 5, "every": 200}}

for name, (matrix, size) in SYSTEMS.items():
    A = gallery.get(matrix, size)
    b = np.ones(A.shape[0])
    for smoother in ("jacobi_sweeps(omega=0.6667)", "gauss_seidel", "chebyshev"):
        for label, settings in SETTINGS.items():
            if label == "none" and smoother != "jacobi_sweeps(omega=0.6667)":
                continue
            solver = swell.prepare(A, method=swell.CG(**settings), scaling="jacobi", device=device,
                                   smoother=smoother if settings else None)
            solver.solve(b)
            r = solver.solve(b)
            print(f"{name}: {smoother if settings else 'no smoother'}, {label}: {r.reason.name}, {r.iterations} iterations, "
                  f"{1e3 * r.timings['solve']:.0f} ms", flush=True)
