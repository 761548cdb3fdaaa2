"""Which kernels common calls launch on a GPU, in order: what ``swell/core/ahead.json`` says, measured.

    PYTHONPATH=tests/emulation:. python tests/foreseen.py [--check]

Writes the table, or says where it differs. The row "matrix" has what all solves launch, a method's row what it launches
without a preconditioner, a preconditioner's row what it adds to its usual method, "choice" what it takes to choose.
"""
from __future__ import annotations

import json
import sys

import numpy as np

import swell
from swell.core import cuda_kernels
from swell.core.ahead import CHOICE, MATRIX, ROOT, TABLE

ROWS = 2500
SYMMETRIC = "cg", "resident_cg", "minres", "cocg"
METHODS = (*SYMMETRIC, "bicgstab", "gmres")
# Method, system and rows, of which each adds its kernels: large levels of a hierarchy have others than small ones.
PRECONDS = {"jacobi": [("cg", "poisson2d", ROWS)], "ic": [("cg", "poisson2d", ROWS)],
            "ilu": [("gmres", "convection_diffusion2d", ROWS)],
            "amg": [("cg", "poisson2d", 9 * ROWS), ("bicgstab", "convection_diffusion2d", ROWS)],
            "smoothed_aggregation": [("cg", "elasticity2d", 2 * ROWS)]}
OF_THE_DEVICE = "iterate<",      # instantiations that the number of multiprocessors chooses


def launched(method, system, rows, precond=None):
    """The kernels of one solve of a gallery's system, as the table has them."""
    found, original = {}, cuda_kernels.loaded

    def noted(path, device, expression):
        if not expression.startswith(OF_THE_DEVICE):
            found[f"{path.relative_to(ROOT)} {expression}"] = None
        return original(path, device, expression)

    cuda_kernels.form.cache_clear()              # so that this solve binds its kernels anew
    A = swell.gallery.get(system, rows)
    cuda_kernels.loaded = noted
    try:
        result = swell.solve(A, np.ones(A.shape[0]), device="cuda", method=method, precond=precond, maxiter=40)
        assert result.reason.name in ("CONVERGED", "MAXITER"), str(result)
    finally:
        cuda_kernels.loaded = original
    return list(found)


def table():
    """The whole table."""
    systems = {method: "poisson2d" if method in SYMMETRIC else "convection_diffusion2d" for method in METHODS}
    by_method = {method: launched(method, system, ROWS) for method, system in systems.items()}
    rows = {MATRIX: [kernel for kernel in by_method["cg"] if all(kernel in kernels for kernels in by_method.values())]}
    for method, kernels in by_method.items():
        rows[f"method {method}"] = [kernel for kernel in kernels if kernel not in rows[MATRIX]]
    for precond, solves in PRECONDS.items():
        found = dict.fromkeys(kernel for method, system, size in solves
                              for kernel in launched(method, system, size, precond) if kernel not in by_method[method])
        rows[f"precond {precond}"] = list(found)
    others = {kernel for kernels in rows.values() for kernel in kernels}
    rows[CHOICE] = [kernel for kernel in launched(None, "poisson2d", ROWS) if kernel not in others]
    return rows


def main(check=False):
    """Write the table, or end with a word on each difference."""
    found = table()
    if not check:
        TABLE.write_text(json.dumps(found, indent=1) + "\n")
        return
    known = json.loads(TABLE.read_text())
    differences = [f"{part}: {'missing' if kernel in found.get(part, ()) else 'in vain'}: {kernel}"
                   for part in {**known, **found}
                   for kernel in dict.fromkeys([*known.get(part, ()), *found.get(part, ())])
                   if (kernel in known.get(part, ())) != (kernel in found.get(part, ()))]
    if differences:
        sys.exit("\n".join([f"{TABLE} differs from what solves launch; run this without --check:", *differences]))


if __name__ == "__main__":
    main("--check" in sys.argv)
