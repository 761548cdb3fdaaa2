"""Reproduce a paper: its tables and figures beside swell's numbers, and a verdict on each of its conclusions.

Verdicts come from rules that compare numbers: reproduced, contradicted, or not tested. The full run measures at the
paper's sizes; stored records, with machine and date, stand for what this machine cannot do.
"""
from __future__ import annotations

import importlib

from swell.cli.output import check_paths

HELP = "a paper's tables, figures and conclusions, with verdicts"
PAPERS = ("lu-bddc", "block-gmres", "fvm-spd", "helmholtz")


def add_arguments(parser):
    """Add the arguments of ``swell reproduce`` to its parser."""
    parser.add_argument("paper", choices=PAPERS, help="the paper: %(choices)s")
    parser.add_argument("--small", action="store_true", help="small sizes: minutes on two cores")
    parser.add_argument("--device", default="cpu", metavar="DEVICE", help="cpu (the default), cuda, ...")
    parser.add_argument("--out", metavar="FILE", help="write an HTML report, which needs no other file")
    parser.add_argument("--records", metavar="FOLDER", help="folder with stored records; default: benchmarks/results "
                        "of swell's source tree")


def run(arguments) -> int:
    """Measure and read the paper's parts, judge, print, and write the report; return the exit status."""
    check_paths({"--out": arguments.out}, endings={"--out": (".html", ".htm")})
    return importlib.import_module("swell.papers.run").run(arguments)
