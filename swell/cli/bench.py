"""Measure: products with the gallery's matrices, or iterations and whole solves.

Every figure stands beside the peer that was measured in the same run (SciPy on a CPU, CuPy on a GPU) and beside the
stored figures of others.
"""
from __future__ import annotations

import importlib

from swell.cli.output import check_paths
from swell.core.errors import InputError

HELP = "measure products and solves beside their peers"
BENCHMARKS = ("blas1", "spmv", "krylov", "smoothers", "fvm", "block-gmres")
DEFINITE = ("thermal2~", "ecology2~", "parabolic_fem~")
ACOUSTIC = ("audi3d1~", "audi3d2~", "audi3d3~", "audi3d4~", "twingo3d0~", "twingo3d1~", "twingo3d2~", "cylinder3d0~",
            "cylinder3d1~", "cylinder3d2~")
MATRICES = {"blas1": (), "spmv": (*DEFINITE, "atmosmodd~", "audi3d4~"), "krylov": (*DEFINITE, "atmosmodd~", "audi3d4~"),
            "smoothers": DEFINITE, "fvm": DEFINITE,
            "block-gmres": ("multiconductor2", "coupled_transport3", "coupled_transport4", "thermal_plate5", "atmosmodd~")}
BESIDE_A_GPU = 100      # iterations on the host of a GPU, for the time of one


def add_arguments(parser):
    """The arguments of ``swell bench``."""
    parser.add_argument("benchmark", choices=BENCHMARKS, help="blas1: vector operations; spmv: products; krylov: "
                        "iterations and solves; smoothers: outer iterations and their residuals; fvm: the tables of "
                        "the finite-volume paper; block-gmres: exact and inexact block triangular solves")
    parser.add_argument("--device", default="cpu", metavar="DEVICE", help="cpu (the default), cuda, ...")
    parser.add_argument("--matrices", metavar="LIST",
                        help="names of the gallery, apart by commas; default " + ",".join(MATRICES["spmv"])
                        + "; smoothers and fvm: the definite ones, " + ",".join(DEFINITE) + "; block-gmres: "
                        + ",".join(MATRICES["block-gmres"]))
    parser.add_argument("--formats", metavar="LIST", default="csr,sell", help="spmv: formats; default csr,sell")
    parser.add_argument("--tune", action="store_true", help="spmv: the default format beside the tuned one")
    parser.add_argument("--complex", action="store_true", help="spmv: the acoustic matrices' stand-ins, "
                        "as table 9 of the paper on Helmholtz's equation has them")
    parser.add_argument("--dtypes", metavar="LIST", default="complex128", help="blas1: some of float32, float64, "
                        "complex64, complex128; default complex128")
    parser.add_argument("--scale", type=float, default=1.0, metavar="S",
                        help="share of each matrix's standard size, for a quick look; default 1")
    parser.add_argument("--repeat", type=int, metavar="N", help="repetitions, of which the median counts; "
                        "default 100 vector operations (and their mean), 50 products, 3 solves")
    parser.add_argument("--iterations", type=int, default=300, metavar="N",
                        help="krylov: iterations timed; default 300")
    parser.add_argument("--outer-iterations", type=int, default=1000, metavar="N",
                        help="smoothers: outer iterations, a multiple of 10; default 1000")
    parser.add_argument("--cpu-iterations", type=int, metavar="N",
                        help="smoothers, fvm: at most so many of them, and of a solve's iterations, on a CPU, where "
                        f"they take long; default all, and {BESIDE_A_GPU} on the host of a GPU")
    parser.add_argument("--files", nargs="*", metavar="PATH", help="smoothers, fvm, block-gmres: matrix files and "
                        "OpenFOAM cases besides the gallery's")
    parser.add_argument("--no-smoothers", action="store_true", help="fvm: leave out the smoothers' table")
    parser.add_argument("--no-solves", action="store_true", help="krylov: leave out the whole solves to 1e-8")
    parser.add_argument("--out", metavar="FILE", help="append the records as JSON lines: .jsonl")
    parser.add_argument("--report", metavar="FILE", help="write an HTML report")


def run(arguments) -> int:
    """Check, then hand over to the benchmark's module."""
    check_paths({"--out": arguments.out, "--report": arguments.report},
                endings={"--out": (".jsonl",), "--report": (".html", ".htm")})
    for option in ("scale", "repeat", "iterations"):
        value = getattr(arguments, option)
        if value is not None and not value > 0:
            raise InputError(f"--{option} {value}: expected a positive number")
    for option in ("tune", "complex"):
        if getattr(arguments, option) and arguments.benchmark != "spmv":
            raise InputError(f"--{option} belongs to swell bench spmv")
    if arguments.matrices is None:
        arguments.matrices = ",".join(ACOUSTIC if arguments.complex else MATRICES[arguments.benchmark])
    if arguments.cpu_iterations is None and arguments.device != "cpu":
        arguments.cpu_iterations = BESIDE_A_GPU
    from swell.core.space import make_space
    make_space(arguments.device)
    return importlib.import_module("swell.bench." + arguments.benchmark.replace("-", "_")).run(arguments)
