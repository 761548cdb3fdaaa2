"""Draws docs/multigrid.png (README), docs/iterations.png and docs/on_a_cpu.png (docs/measured) from benchmarks/results.

Run it by ``python benchmarks/figure.py``.
"""
from __future__ import annotations

import json
import pathlib
import re

from matplotlib.figure import Figure

HERE = pathlib.Path(__file__).parent
COLOURS = "#0b5fa5", "#7fb2d9", "#c9a66b", "#b0b0b0", "#8a9a5b", "#5b4a8a"
ON_A_CPU = {"swell, nothing named": "swell, nothing", "swell, multigrid": "swell, multigrid", "PETSc, best of three": "PETSc",
            "PyAMG, best of two": "PyAMG", "SciPy, CG + Jacobi": "SciPy"}           # label: how solvers begin
NAMES = {"cg_jacobi": "CG + Jacobi", "gmres30": "GMRES(30)", "bicgstab": "BiCGSTAB"}
STORED = {"Ginkgo 1.12 (SELL-P)": ("ginkgo_sellp", "ginkgo_sellp_no_precond"), "AmgX 2.5": ("amgx", "amgx_fgmres_jacobi")}


def read(name):
    """The records of a file of results."""
    return [json.loads(line) for line in (HERE / "results" / name).read_text().splitlines()]


def bars(series, names, unit, file, form=lambda value: f"{value:.0f}", scale="linear"):
    """Groups of bars: ``series`` is a list of values for each label, 0 where there is none. ``form`` makes the text of
    a value."""
    figure = Figure(figsize=(max(9.0, 1.1 * len(names)), 3.6), layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / len(series)
    for k, ((label, values), colour) in enumerate(zip(series.items(), COLOURS)):
        places = [i + (k - (len(series) - 1) / 2) * width for i in range(len(names))]
        drawn = axes.bar(places, values, width, label=label, color=colour)
        axes.bar_label(drawn, [form(v) if v else "" for v in values], fontsize=7)
    axes.set_yscale(scale)
    axes.set_xticks(range(len(names)), names, fontsize=8)
    axes.set_ylabel(unit)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(HERE.parent / "docs" / file, dpi=130)


def iterations():
    """An iteration's time beside the peers'."""
    records = [r for r in read("h200_krylov.jsonl") if r["benchmark"] == "krylov iteration"]
    series = {"swell": [1e6 * r["seconds"] for r in records],
              "CuPy 14.2, same run": [1e6 * r["peer_seconds"] if r["peer_seconds"] else r["published_us"].get("cupy") or 0
                                      for r in records]}
    for label, keys in STORED.items():
        series[label] = [next((r["published_us"][k] for k in keys if k in r["published_us"]), 0) for r in records]
    names = [f"{NAMES[r['case']]}\n{r['matrix']}" for r in records]
    bars(series, names, "µs an iteration, H200", "iterations.png")


def multigrid():
    """Whole solves beside hypre's in the same run, and solving again."""
    records = read("h200_hypre_same_run.jsonl")
    series = {"swell, setup and solve": [r["named_ms"] for r in records],
              "swell, solve again": [r["named_again_ms"] for r in records],
              "hypre BoomerAMG, setup and solve": [r["hypre"]["setup_ms"] + r["hypre"]["solve_ms"] for r in records],
              "hypre BoomerAMG, solve again": [r["hypre"]["again_ms"] for r in records]}
    names = [f"{re.sub('foam_|_diffusion|_fem', '', r['matrix'])}\n"
             + (f"{r['n'] / 1e6:.2g} M rows" if r["n"] > 1e5 else f"{r['n'] / 1e3:.2g} k rows") for r in records]
    bars(series, names, "ms to a true 1e-8, H200", "multigrid.png")


def on_a_cpu():
    """Whole solves beside PETSc, PyAMG and SciPy in one run; the best of a peer's choices that gave the answer."""
    records = [r for r in read("cpu_beside.jsonl") if r["residual"] <= 1.1e-8]
    systems = list(dict.fromkeys((r["system"], r["n"]) for r in records))
    series = {label: [min((r["seconds"] for r in records if (r["system"], r["n"]) == system
                           and r["solver"].startswith(start)), default=0) for system in systems]
              for label, start in ON_A_CPU.items()}
    names = [f"{re.sub('foam_|_ldu|_fem', '', name)}\n{n / 1e6:.2g} M rows" for name, n in systems]
    bars(series, names, "CPU-seconds of one thread to 1e-8", "on_a_cpu.png", lambda v: f"{v:.2g}", "log")


iterations()
multigrid()
on_a_cpu()
