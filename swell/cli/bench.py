"""Measure: vector operations, products, iterations, whole solves; the tables of papers.

Every figure stands beside the peer that was measured in the same run (SciPy on a CPU, CuPy on a GPU) and beside the
stored figures of others. ``swell bench NAME --help`` says what each measures and takes.
"""
from __future__ import annotations

import argparse
import importlib

from swell.cli.output import check_paths
from swell.core.errors import InputError

HELP = "measure products and solves beside their peers"
DEFINITE = ("thermal2~", "ecology2~", "parabolic_fem~")
ACOUSTIC = ("audi3d1~", "audi3d2~", "audi3d3~", "audi3d4~", "twingo3d0~", "twingo3d1~", "twingo3d2~", "cylinder3d0~",
            "cylinder3d1~", "cylinder3d2~")
MATRICES = {"spmv": (*DEFINITE, "atmosmodd~", "audi3d4~"), "krylov": (*DEFINITE, "atmosmodd~", "audi3d4~"),
            "spgemm": ("thermal2~", "ecology2~", "atmosmodd~"), "smoothers": DEFINITE, "fvm": DEFINITE,
            "amg": ("ecology2~", "poisson3d:1000000", "jumping_diffusion3d:1000000", "anisotropic2d:1000000"),
            "scaling": ("thermal2~", "ecology2~", "atmosmodd~"),
            "block-gmres": ("multiconductor2", "coupled_transport3", "coupled_transport4", "thermal_plate5",
                            "atmosmodd~")}
GENERATED = ("random", "border", "bordered")
POSITIONAL = ("paths",)
BESIDE_A_GPU = 100      # iterations on the host of a GPU, for the time of one

# name: (what it measures, its options beside those that all have)
BENCHMARKS = {
    "blas1": ("Vector operations of several sizes and types, beside the same in NumPy or CuPy.", ("dtypes", "repeat")),
    "spmv": ("Products: time, bytes, share of the copy speed.", ("matrices", "formats", "tune", "complex", "repeat")),
    "spgemm": ("Sparse products A A and PᵀAP: time, products a second, the numeric phase alone.",
               ("matrices", "files", "repeat")),
    "krylov": ("An iteration of CG, GMRES(30) and BiCGSTAB, and whole solves to 1e-8.",
               ("matrices", "iterations", "repeat", "no-solves")),
    "amg": ("Algebraic multigrid: whole solves beside PyAMG, IC(0) and Jacobi; with --scaling iterations over n, "
            "anisotropy, jumps and stretched cells.",
            ("matrices", "files", "repeat", "scaling", "most", "solvers")),
    "auto": ("Regret: a solve with nothing named beside every sensible configuration, SuperLU and PyAMG, on generated "
             "systems of every class and on files.", ("files", "only", "limit")),
    "smoothers": ("Smoothers by the protocol of the finite-volume paper: table 4.1, figures 4.2 and 4.3.",
                  ("matrices", "files", "outer-iterations", "cpu-iterations")),
    "fvm": ("The finite-volume paper: products (table 3.1), smoothers (4.1), preconditioners of CG (5.1).",
            ("matrices", "files", "iterations", "outer-iterations", "cpu-iterations", "repeat", "no-cpu",
             "no-smoothers")),
    "block-gmres": ("The paper on block GMRES: ILU(0) with exact and inexact solves in GMRES(30), tables 1 to 4; "
                    "inner products and updates by batches, figures 8 and 9.",
                    ("matrices", "files", "block", "cpu-iterations", "no-cpu")),
    "scaling": ("Strong and weak scaling across ranks, which mpiexec starts: products with and without overlap "
                "(figure 10 of the same paper), iterations (11), ILU(0) of each rank's block (tables 2 to 4), and a "
                "model that predicts 8 to 1024 ranks (docs/SCALING.md).",
                ("ranks", "matrices", "files", "unknowns", "partition", "sweeps", "threads", "repeat", "no-solves",
                 "csv")),
    "dense-lu": ("Dense LU: decomposers and solvers by the protocol of the thesis on it, with both measures of "
                 "accuracy.",
                 ("paths", "generated", "sizes", "decomposers", "solvers", "types", "repeat", "batch", "csv")),
    "bddc": ("BDDC on Poisson's cube by the protocol of the same thesis: its three stages with each decomposer, "
             "iterations, the spectrum, and their growth with H/h.",
             ("subdomains", "elements", "levels", "decomposers", "constraints", "interior", "adaptive", "coefficient",
              "random-rhs", "repeat", "csv")),
    "helmholtz": ("The paper on Helmholtz's equation: methods for complex systems in cabins and cylinders, tables 10 "
                  "to 12, on both devices.",
                  ("meshes", "files", "frequencies", "methods", "preconds", "rtol", "maxiter", "cpu-iterations",
                   "repeat", "csv")),
}
OPTIONS = {
    "only": {"metavar": "TEXT", "help": "only systems whose names hold this text, or one of several, by commas"},
    "limit": {"type": float, "default": 20.0, "metavar": "S", "help": "seconds as which failures and longer solves "
              "count; default %(default)g"},
    "matrices": {"metavar": "LIST", "help": "names of the gallery, apart by commas, of amg also NAME:UNKNOWNS; default "
                 "%(default)s"},
    "files": {"nargs": "*", "metavar": "PATH", "help": "files, besides the generated systems: matrices "
              "and folders of OpenFOAM; helmholtz takes meshes, and folders with K.npz, M.npz and B.npz"},
    "paths": {"nargs": "*", "metavar": "PATH", "help": "matrix files, and folders of which every .mtx and .mtx.gz is "
              "taken; sparse ones are made dense"},
    "generated": {"nargs": "*", "metavar": "KIND", "choices": GENERATED, "help": "matrices made here, beside those of "
                  f"PATH; some of {', '.join(GENERATED)} (BDDC's bordered local matrices); default all, and also where "
                  "there is no PATH"},
    "batch": {"type": int, "metavar": "N", "help": "besides, N generated matrices of a kind and size, one after the "
              "other and together"},
    "block": {"type": int, "metavar": "N", "help": "size of the blocks, whose zeros are stored; default: as detected"},
    "formats": {"metavar": "LIST", "default": "csr,sell", "help": "formats; default csr,sell"},
    "tune": {"action": "store_true", "help": "the default format beside the tuned one"},
    "complex": {"action": "store_true", "help": "the acoustic matrices' stand-ins, as table 9 of the paper on "
                "Helmholtz's equation has them"},
    "dtypes": {"metavar": "LIST", "default": "complex128", "help": "some of float32, float64, complex64, complex128; "
               "default complex128"},
    "repeat": {"type": int, "metavar": "N", "help": "repetitions, of which the median counts; default 100 vector "
               "operations (and their mean), 50 products (20 of fvm on a CPU; 20 and 3 of scaling), 5 sparse "
               "products, 3 solves, 10 of dense-lu"},
    "ranks": {"metavar": "LIST", "default": "1,2", "help": "numbers of ranks, apart by commas; default 1,2"},
    "unknowns": {"type": int, "metavar": "N", "help": "rows of a rank in weak scaling, of Poisson in 3D; default "
                 "262144 (times --scale)"},
    "partition": {"default": "rows", "choices": ("rows", "graph"), "help": "which rows a rank has: consecutive ones or "
                  "a part of the matrix' graph; default rows"},
    "sweeps": {"metavar": "LIST", "default": "1,2,3,4,5,6,7,8", "help": "sweeps of the inexact solves with ILU(0), "
               "apart by commas; default 1 to 8"},
    "threads": {"type": int, "metavar": "N", "help": "threads of a rank, the same for any number of ranks; default: "
                "the cores over the most ranks"},
    "iterations": {"type": int, "default": 300, "metavar": "N", "help": "iterations timed; default 300"},
    "outer-iterations": {"type": int, "default": 1000, "metavar": "N", "help": "outer iterations of smoothers, a "
                         "multiple of 10; default 1000"},
    "cpu-iterations": {"type": int, "metavar": "N", "help": "at most so many outer iterations, and iterations of a "
                       f"solve, on a CPU, where they take long; default all, and {BESIDE_A_GPU} on the host of a GPU"},
    "no-cpu": {"action": "store_true", "help": "leave out the host of a GPU, smoothers excepted"},
    "no-smoothers": {"action": "store_true", "help": "leave out the smoothers' table"},
    "sizes": {"metavar": "LIST", "help": "rows of the generated matrices, apart by commas (bordered ones have the "
              "nearest that there is); default 100,300,558, on a GPU 558,2599,4156"},
    "decomposers": {"nargs": "*", "metavar": "NAME", "help": "such as getrf 'icm(x=8, form=plain)'; default: one of "
                    "each"},
    "solvers": {"nargs": "*", "metavar": "NAME", "help": "such as trsm 'is(x=64)', default one of each; of "
                "amg such as AMG 'by itself', default all"},
    "types": {"metavar": "LIST", "default": "float64,float32", "help": "types, apart by commas; default %(default)s"},
    "csv": {"metavar": "FILE", "help": "write the records as CSV too"},
    "subdomains": {"metavar": "LIST", "default": "4", "help": "subdomains along an edge of the cube; default 4"},
    "elements": {"metavar": "LIST", "help": "elements along an edge of a subdomain, H/h; default 4,6,8 (5,10,15,20,25 "
                 "on a GPU)"},
    "levels": {"metavar": "LIST", "default": "2", "help": "levels; default 2"},
    "constraints": {"metavar": "LETTERS", "default": "cef", "help": "corners, edges, faces; default cef"},
    "interior": {"metavar": "NAME", "default": "blocks", "help": "what solves in the interiors: blocks, ic0, or "
                 "direct, which on a GPU needs cuDSS; default %(default)s"},
    "adaptive": {"type": float, "default": 0.0, "metavar": "T", "help": "more constraints on faces, for eigenvalues "
                 "above T; default 0, none"},
    "coefficient": {"default": "constant", "choices": ("constant", "checkerboard", "channels"),
                    "help": "of the equation; jumps are by 1e4; default constant"},
    "random-rhs": {"action": "store_true", "help": "a random right-hand side, which leaves no eigenvalue out, instead "
                   "of ones"},
    "meshes": {"metavar": "LIST", "help": "cavities, apart by commas: names of the paper's table 1 such as Audi3D-2, "
               "cabin:SIZE, cabin:SIZE:divided (a hard one), cylinder:SIZE (edges in m); default those of the paper, "
               "on a CPU the smaller ones"},
    "frequencies": {"metavar": "BAND", "help": "in Hz, FROM:TO:STEP or a list, of all cavities; default: each has its "
                    "own"},
    "methods": {"nargs": "*", "metavar": "NAME", "help": "such as bicgstab 'bicgstabl(l=4)'; default: the paper's, and "
                "cocg"},
    "preconds": {"nargs": "*", "metavar": "NAME", "help": "default: none jacobi ilu0"},
    "rtol": {"type": float, "default": 1e-9, "metavar": "R", "help": "relative tolerance; default 1e-9, the paper's"},
    "maxiter": {"type": int, "default": 1000, "metavar": "N", "help": "most iterations; default 1000, the paper's"},
    "scaling": {"action": "store_true", "help": "iterations over n, anisotropy, jumps and stretched cells, in place of "
                "whole solves"},
    "most": {"type": int, "metavar": "N", "help": "unknowns of the largest systems of --scaling; default 2200000, on a "
             "GPU 64000000"},
    "no-solves": {"action": "store_true", "help": "leave out the whole solves"},
}


def add_arguments(parser):
    """The arguments of ``swell bench``: a parser for each benchmark."""
    benchmarks = parser.add_subparsers(dest="benchmark", metavar="benchmark", required=True)
    for name, (summary, options) in BENCHMARKS.items():
        one = benchmarks.add_parser(name, help=summary, description=summary)
        one.add_argument("--device", default="cpu", metavar="DEVICE", help="cpu (the default), cuda, ...")
        one.add_argument("--scale", type=float, default=1.0, metavar="S",
                         help="share of the standard sizes, for a quick look; default 1")
        for option in options:
            default = {"default": ",".join(MATRICES[name])} if option == "matrices" else {}
            one.add_argument(option if option in POSITIONAL else f"--{option}", **OPTIONS[option], **default)
        one.add_argument("--out", metavar="FILE", help="append the records as JSON lines: .jsonl")
        one.add_argument("--report", metavar="FILE", help="write an HTML report")
        one.add_argument("--debug", action="store_true", default=argparse.SUPPRESS,
                         help="show the traceback of an unexpected error")


def run(arguments) -> int:
    """Check, then hand over to the benchmark's module."""
    options = BENCHMARKS[arguments.benchmark][1]
    check_paths({"--out": arguments.out, "--report": arguments.report,
                 "--csv": arguments.csv if "csv" in options else None},
                endings={"--out": (".jsonl",), "--report": (".html", ".htm"), "--csv": (".csv",)})
    for option in ("scale", *(option for option in options if OPTIONS[option].get("type") is int)):
        value = getattr(arguments, option.replace("-", "_"))
        if value is not None and not value > 0:
            raise InputError(f"--{option} {value}: expected a positive number")
    if getattr(arguments, "complex", False) and arguments.matrices == ",".join(MATRICES["spmv"]):
        arguments.matrices = ",".join(ACOUSTIC)
    if "cpu-iterations" in options and arguments.cpu_iterations is None and arguments.device != "cpu":
        arguments.cpu_iterations = BESIDE_A_GPU
    from swell.core.devices import make_space
    make_space(arguments.device)
    return importlib.import_module("swell.bench." + arguments.benchmark.replace("-", "_")).run(arguments)
