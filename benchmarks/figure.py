"""Draws docs/iterations.png from benchmarks/results/h200_krylov.jsonl: python benchmarks/figure.py."""
from __future__ import annotations

import json
import pathlib

from matplotlib.figure import Figure

HERE = pathlib.Path(__file__).parent
NAMES = {"cg_jacobi": "CG + Jacobi", "gmres30": "GMRES(30)", "bicgstab": "BiCGSTAB"}
STORED = {"Ginkgo 1.12 (SELL-P)": ("ginkgo_sellp", "ginkgo_sellp_no_precond"), "AmgX 2.5": ("amgx", "amgx_fgmres_jacobi")}

records = [json.loads(line) for line in (HERE / "results" / "h200_krylov.jsonl").read_text().splitlines()]
records = [r for r in records if r["benchmark"] == "krylov iteration"]
series = {"swell": [1e6 * r["seconds"] for r in records],
          "CuPy 14.2, same run": [1e6 * r["peer_seconds"] if r["peer_seconds"] else (r["published_us"].get("cupy") or 0)
                                  for r in records]}
for label, keys in STORED.items():
    series[label] = [next((r["published_us"][k] for k in keys if k in r["published_us"]), 0) for r in records]

figure = Figure(figsize=(9, 3.6), layout="constrained")
axes = figure.add_subplot()
width = 0.8 / len(series)
for k, ((label, values), color) in enumerate(zip(series.items(), ("#0b5fa5", "#7fb2d9", "#c9a66b", "#b0b0b0"))):
    places = [i + (k - (len(series) - 1) / 2) * width for i in range(len(records))]
    bars = axes.bar(places, values, width, label=label, color=color)
    axes.bar_label(bars, [f"{v:.0f}" if v else "" for v in values], fontsize=7)
axes.set_xticks(range(len(records)), [f"{NAMES[r['case']]}\n{r['matrix']}" for r in records], fontsize=8)
axes.set_ylabel("µs an iteration, H200")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, fontsize=8)
figure.savefig(HERE.parent / "docs" / "iterations.png", dpi=130)
