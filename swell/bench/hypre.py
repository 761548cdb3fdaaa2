"""hypre's BoomerAMG in the same run, by a driver that whoever measures has built.

The driver is called ``PATH FOLDER RTOL SETTINGS ...``. The folder has A and b as raw files: ``indptr`` and ``indices``
of 32 bits, ``data`` and ``b`` in double precision. Settings are "interpolation,aggressive levels,entries a
row,strength,relaxation,unknowns a point,method" in hypre's own numbers, with the methods cg and gm. For each it solves
twice, and prints ``... rep 1: setup S ms solve S ms its N true R``, with the true relative residual R.
"""
from __future__ import annotations

import pathlib
import re
import subprocess
import tempfile

import numpy as np

from swell.core.errors import InputError

LINE = re.compile(r"\[(?P<settings>[^\]]*)\] rep (?P<turn>\d+): setup (?P<setup>\S+) ms solve (?P<solve>\S+) ms "
                  r"its (?P<iterations>\d+) true (?P<residual>\S+)")
# Extended+i interpolation, by matrices or by itself; strength 0.25 and 0.5; one aggressive level; ℓ1-Jacobi, Chebyshev.
SETTINGS = "17,0,4,0.25,18", "6,0,4,0.25,18", "17,0,4,0.5,18", "17,1,4,0.25,18", "6,0,4,0.25,16"
SECONDS = 120           # limit for a system


def solve(driver, A, b, rtol, symmetric, unknowns=1) -> dict:
    """Return the record of the fastest of the settings that meets ``rtol``, a dict.

    The five settings run for one unknown a point, and again for ``unknowns`` if these are several.

    Parameters
    ----------
    driver : str
        Path of the driver.
    A : scipy.sparse.csr_matrix
    b : array, shape (n,)
    rtol : float
        Of the true residual.
    symmetric : bool
        CG solves; else GMRES.
    unknowns : int
        Unknowns of a point, 2 or 3 for elastic bodies; hypre calls them functions.

    Raises
    ------
    InputError
        If the driver cannot be run, or no setting converges.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, array in (("indptr", A.indptr.astype(np.int32)), ("indices", A.indices.astype(np.int32)),
                            ("data", A.data.astype(np.float64)), ("b", np.asarray(b, np.float64))):
            array.tofile(pathlib.Path(folder) / name)
        settings = [f"{one},{functions},{'cg' if symmetric else 'gm'}" for functions in dict.fromkeys((1, unknowns))
                    for one in SETTINGS]
        try:
            run = subprocess.run([driver, folder, f"{rtol:g}", *settings], capture_output=True, text=True,
                                 timeout=SECONDS, check=False)
            text, ended = run.stdout, f"status {run.returncode}: {run.stderr.strip()[-200:]}"
        except subprocess.TimeoutExpired as error:
            text, ended = (error.stdout or b"").decode(), f"it took more than {SECONDS} s"
        except OSError as error:
            raise InputError(f"--hypre {driver}: {error}; expected the path of a driver (swell/bench/hypre.py)"
                             ) from None
    found = [record(match) for match in LINE.finditer(text) if match["turn"] == "1"]
    best = min((r for r in found if r["residual"] <= 1.01 * rtol), default=None,
               key=lambda r: r["setup_ms"] + r["solve_ms"])
    if best is None:
        raise InputError(f"hypre did not reach {rtol:g} with any of {len(found)} settings ({ended})")
    return best


def record(match) -> dict:
    """Return one line of the driver as a dict."""
    return {"setup_ms": float(match["setup"]), "solve_ms": float(match["solve"]),
            "iterations": int(match["iterations"]), "residual": float(match["residual"]), "settings": match["settings"]}
