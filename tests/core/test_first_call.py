"""CuPy takes over a second to compile each of its reductions; a first solve on a GPU needs none."""
from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.conftest import ROOT, cudss_or_skip, space_or_skip

WATCH = """
import sys, traceback
import numpy as np
import scipy.sparse as sp
from cupy.cuda import compiler
import swell

REDUCTION = "cub::", "_CUB", "#define REDUCE", "_REDUCE", "_reduce"
original, solving = compiler._NVRTCProgram.compile, []


def compile(self, *arguments, **named):
    source = self.src if isinstance(self.src, str) else self.src.decode()
    signs = [sign for sign in REDUCTION if sign in source]
    print("compiled", flush=True)
    if signs and "Context* ctx" not in source:                   # which every kernel of swell's has
        lines = [f"{f.filename.rpartition('/swell/')[2]}:{f.lineno} {f.line}" for f in traceback.extract_stack()
                 if "/swell/" in f.filename]
        print("reduction", *solving, signs, "by", " < ".join(lines[:-4:-1]), flush=True)
    return original(self, *arguments, **named)


compiler._NVRTCProgram.compile = compile
spd = swell.gallery.poisson2d(60)
systems = {
    "spd": spd,
    "nonsymmetric": swell.gallery.get("convection_diffusion2d", 3600),
    "blocks": sp.csr_array(sp.kron(swell.gallery.poisson2d(30), np.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]]))),
}
for given in sys.argv[1:]:
    name, method, precond = given.split(":")
    A = systems[name]
    solving[:] = [given]
    x = np.random.default_rng(1).standard_normal(A.shape[0])
    result = swell.solve(A, A @ x, device="cuda", method=method or None, precond=precond or None)
    assert result.converged, f"{given}: {result}"
"""


@pytest.mark.gpu
@pytest.mark.parametrize("cases", [
    pytest.param(["spd:cg:jacobi", "spd:cg:ic0", "nonsymmetric:bicgstab:ilu0(solve=sweeps(count=2))"], id="named"),
    pytest.param(["spd::", "nonsymmetric::", "blocks::"], id="auto"),
])
def test_a_first_solve_compiles_no_reduction(cases, tmp_path):
    """In a process of its own, without kernels of an earlier one."""
    space_or_skip("cuda")
    if cases[0].endswith("::"):
        cudss_or_skip("cuda")                    # what is chosen may be the direct solver
    done = subprocess.run([sys.executable, "-c", WATCH, *cases], capture_output=True, text=True, cwd=ROOT,
                          env={**os.environ, "CUPY_CACHE_DIR": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert "compiled" in lines, f"nothing was compiled, so nothing was watched: {done.stdout}"
    reductions = [line for line in lines if line.startswith("reduction")]
    assert not reductions, "CuPy's reductions were compiled:\n" + "\n".join(reductions)
