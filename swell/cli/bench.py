"""Measure: vector operations, products, iterations, whole solves; the tables of papers.

Each result stands beside SciPy (on a CPU) or CuPy (on a GPU), measured in the same run. Stored figures of other
libraries are shown, too. ``swell bench NAME --help`` describes a benchmark and its options.
"""
from __future__ import annotations

import argparse
import importlib

from swell.cli.output import check_paths
from swell.core.errors import InputError

HELP = "measure products and solves, beside other libraries"
DEFINITE = ("thermal2~", "ecology2~", "parabolic_fem~")
ACOUSTIC = ("audi3d1~", "audi3d2~", "audi3d3~", "audi3d4~", "twingo3d0~", "twingo3d1~", "twingo3d2~", "cylinder3d0~",
            "cylinder3d1~", "cylinder3d2~")
MATRICES = {"spmv": (*DEFINITE, "atmosmodd~", "audi3d4~"), "krylov": (*DEFINITE, "atmosmodd~", "audi3d4~"),
            "spgemm": ("thermal2~", "ecology2~", "atmosmodd~"), "smoothers": DEFINITE, "fvm": DEFINITE,
            "amg": ("ecology2~", "poisson3d:1000000", "jumping_diffusion3d:1000000", "anisotropic2d:1000000"),
            "scaling": ("thermal2~", "ecology2~", "atmosmodd~"),
            "block-gmres": ("multiconductor2", "coupled_transport3", "coupled_transport4", "thermal_plate5",
                            "atmosmodd~")}
ONLY_WITH = {("block-gmres", "ranks"): ("unknowns", "partition", "sweeps", "threads", "repeat", "no-cusparse", "petsc",
                                        "petsc-ranks")}           # options that need another one
LIMITS = {("block-gmres", "maxiter"): {"default": 300}}
GENERATED = ("random", "border", "bordered")
POSITIONAL = ("paths",)
BESIDE_A_GPU = 100      # default of --cpu-iterations if the device is a GPU

# name: (description for the help, options besides the common ones)
BENCHMARKS = {
    "blas1": ("Vector operations of several sizes and types, beside NumPy or CuPy.", ("dtypes", "repeat")),
    "spmv": ("Products: time, bytes, share of the copy speed.", ("matrices", "formats", "tune", "complex", "repeat")),
    "spgemm": ("Sparse products A A and PᵀAP: time, products a second, the numeric phase alone.",
               ("matrices", "files", "repeat")),
    "krylov": ("An iteration of CG, GMRES(30) and BiCGSTAB, and whole solves to 1e-8.",
               ("matrices", "iterations", "repeat", "no-solves")),
    "amg": ("Algebraic multigrid: whole solves beside PyAMG, IC(0) and Jacobi; with --scaling iterations over n, "
            "anisotropy, jumps and stretched cells.",
            ("matrices", "files", "repeat", "scaling", "most", "solvers", "hypre")),
    "auto": ("Regret: a solve by swell's own choice, beside every sensible configuration, SuperLU and PyAMG, on "
             "generated systems of every class and on files.", ("files", "sets", "only", "limit", "quick")),
    "smoothers": ("Smoothers by the protocol of the finite-volume paper: table 4.1, figures 4.2 and 4.3.",
                  ("matrices", "files", "outer-iterations", "cpu-iterations")),
    "fvm": ("The finite-volume paper: products (table 3.1), smoothers (4.1), preconditioners of CG (5.1).",
            ("matrices", "files", "iterations", "outer-iterations", "cpu-iterations", "repeat", "no-cpu",
             "no-smoothers")),
    "block-gmres": ("The paper on block GMRES: ILU(0) with exact and inexact solves in GMRES(30), tables 1 to 4; "
                    "inner products and updates by batches, figures 8 and 9; with --ranks across ranks that mpiexec "
                    "starts, beside cuSPARSE and PETSc, figures 10 to 15.",
                    ("matrices", "files", "block", "cpu-iterations", "no-cpu", "ranks", "unknowns", "partition",
                     "sweeps", "threads", "repeat", "maxiter", "no-cusparse", "petsc", "petsc-ranks")),
    "scaling": ("Strong and weak scaling across ranks, which mpiexec starts: products with and without overlap "
                "(figure 10 of the same paper), iterations (11), ILU(0) of each rank's block (tables 2 to 4), and a "
                "model that predicts 8 to 1024 ranks (docs/SCALING.md).",
                ("ranks", "matrices", "files", "block", "unknowns", "partition", "sweeps", "threads", "repeat",
                 "no-solves", "csv")),
    "dense-lu": ("Dense LU: decomposers and solvers by the protocol of the thesis on it, with both measures of "
                 "accuracy.",
                 ("paths", "generated", "sizes", "decomposers", "solvers", "types", "repeat", "batch", "tolerances",
                  "changes", "csv")),
    "bddc": ("BDDC on Poisson's cube by the protocol of the same thesis: its three stages with each decomposer, "
             "iterations, the spectrum, and their growth with H/h; also on elastic cubes and squares.",
             ("problem", "subdomains", "elements", "levels", "decomposers", "constraints", "interior", "adaptive",
              "coefficient", "ratio", "pressure", "near-nullspace", "averages", "random-rhs", "repeat", "csv")),
    "helmholtz": ("The paper on Helmholtz's equation: methods for complex systems in cabins and cylinders, tables 10 "
                  "to 12, on both devices.",
                  ("meshes", "files", "frequencies", "methods", "preconds", "rtol", "maxiter", "cpu-iterations",
                   "repeat", "csv")),
}
OPTIONS = {
    "only": {"metavar": "TEXT", "help": "only systems whose names contain this text, or one of several, separated by "
             "commas"},
    "sets": {"default": "standard", "metavar": "LIST", "help": "sets of generated systems, separated by commas: "
             "standard, fitted, judged (two halves of further families: rules may be fitted to one, the other judges "
             "them); default %(default)s"},
    "quick": {"action": "store_true", "help": "end each configuration at twice the best time so far"},
    "hypre": {"metavar": "PATH", "help": "a driver of hypre's BoomerAMG that you have built, to measure beside "
              "(swell/bench/hypre.py says how it is called)"},
    "limit": {"type": float, "default": 20.0, "metavar": "S", "help": "time limit in seconds; failures and longer "
              "solves count as this; default %(default)g"},
    "matrices": {"metavar": "LIST", "help": "names of the gallery, separated by commas; for amg and block-gmres also "
                 "NAME:UNKNOWNS, for block-gmres NAME/BLOCK, with blocks laid over points; default %(default)s"},
    "files": {"nargs": "*", "metavar": "PATH", "help": "files, besides the generated systems: matrices "
              "and folders of OpenFOAM; helmholtz takes meshes, and folders with K.npz, M.npz and B.npz"},
    "paths": {"nargs": "*", "metavar": "PATH", "help": "matrix files, and folders with .mtx and .mtx.gz files; sparse "
              "matrices are made dense"},
    "generated": {"nargs": "*", "metavar": "KIND", "choices": GENERATED, "help": "also generate matrices, of kinds "
                  f"{', '.join(GENERATED)} (BDDC's bordered local matrices); without kinds, or without PATH: all"},
    "batch": {"type": int, "metavar": "N", "help": "also factor N generated matrices of each kind and size, one after "
              "the other and together"},
    "tolerances": {"metavar": "LIST", "help": "also factor each matrix by ICM with these processing tolerances, such "
                   "as 0,1e-10,1e-5,1e-2,0.1,1; 0: exact"},
    "changes": {"metavar": "LIST", "help": "also let ICM begin from the factors of a matrix whose entries differ by up "
                "to these shares, such as 1e-1,1e-4,1e-8, and count its iterations"},
    "block": {"type": int, "metavar": "N", "help": "size of the blocks of --matrices and --files, whose zeros are "
              "stored; default: the detected size"},
    "formats": {"metavar": "LIST", "default": "csr,sell", "help": "formats; default csr,sell"},
    "tune": {"action": "store_true", "help": "also compare the default format with the tuned one"},
    "complex": {"action": "store_true", "help": "stand-ins for the acoustic matrices of table 9 of the paper on "
                "Helmholtz's equation"},
    "dtypes": {"metavar": "LIST", "default": "complex128", "help": "some of float32, float64, complex64, complex128; "
               "default complex128"},
    "repeat": {"type": int, "metavar": "N", "help": "repetitions, of which the median counts; default 100 vector "
               "operations (and their mean), 50 products (fvm on a CPU: 20; scaling: 20, and 10 solves), 5 sparse "
               "products, 3 solves, 10 in dense-lu or as many as begin within 2 s"},
    "ranks": {"metavar": "LIST", "help": "numbers of ranks, separated by commas; default of scaling: 1,2; block-gmres: "
              "one device, without MPI"},
    "unknowns": {"type": int, "metavar": "N", "help": "rows of a rank in weak scaling: of scaling for "
                 "Poisson in 3D, default 262144 (times --scale); of block-gmres for all --matrices, default: none, "
                 "strong scaling"},
    "partition": {"default": "rows", "choices": ("rows", "graph"), "help": "distribution of the rows: consecutive "
                  "rows, or parts of the matrix' graph; default rows"},
    "sweeps": {"metavar": "LIST", "help": "numbers of sweeps of the inexact solves with ILU(0), separated by commas; "
               "default 1 to 8; of block-gmres with --ranks 1 to 5, without always 1 to 8"},
    "no-cusparse": {"action": "store_true", "help": "if --device is a GPU: leave out cuSPARSE's solves"},
    "petsc": {"metavar": "COMMAND", "help": "with --ranks: also solve by PETSc; COMMAND starts the program made from "
              "benchmarks/petsc_bjacobi.c, such as 'mpiexec -n {ranks} ./petsc_bjacobi'"},
    "petsc-ranks": {"metavar": "LIST", "help": "numbers of PETSc's ranks; default: as --ranks"},
    "threads": {"type": int, "metavar": "N", "help": "threads of a rank, for every number of ranks; default: the "
                "number of cores over the largest number of ranks"},
    "iterations": {"type": int, "default": 300, "metavar": "N", "help": "iterations timed; default 300"},
    "outer-iterations": {"type": int, "default": 1000, "metavar": "N", "help": "outer iterations of smoothers, a "
                         "multiple of 10; default 1000"},
    "cpu-iterations": {"type": int, "metavar": "N", "help": "limit of outer iterations, and of a solve's iterations, "
                       f"on a CPU, where they take long; default: none, or {BESIDE_A_GPU} if --device is a GPU"},
    "no-cpu": {"action": "store_true", "help": "if --device is a GPU: leave out its host, except for smoothers"},
    "no-smoothers": {"action": "store_true", "help": "leave out the smoothers' table"},
    "sizes": {"metavar": "LIST", "help": "rows of the generated matrices, separated by commas (bordered ones have the "
              "nearest possible number); default 100,300,558, on a GPU 558,2599,4156"},
    "decomposers": {"nargs": "*", "metavar": "NAME", "help": "such as getrf 'icm(x=8, form=plain)'; default: one of "
                    "each"},
    "solvers": {"nargs": "*", "metavar": "NAME", "help": "such as trsm 'is(x=64)', default one of each; for amg such "
                "as AMG 'by itself', default all"},
    "types": {"metavar": "LIST", "default": "float64,float32", "help": "types, separated by commas; default "
              "%(default)s"},
    "csv": {"metavar": "FILE", "help": "also write the records as CSV"},
    "subdomains": {"metavar": "LIST", "default": "4", "help": "subdomains along an edge of the cube; default 4"},
    "elements": {"metavar": "LIST", "help": "elements along an edge of a subdomain, H/h; default 4,6,8 (5,10,15,20,25 "
                 "on a GPU)"},
    "levels": {"metavar": "LIST", "default": "2", "help": "levels; default 2"},
    "constraints": {"metavar": "LETTERS", "default": "cef", "help": "corners, edges, faces; default cef"},
    "interior": {"metavar": "NAME", "default": "blocks", "help": "solver for the interiors of subdomains: blocks, ic0, "
                 "or direct, which on a GPU needs cuDSS; default %(default)s"},
    "adaptive": {"type": float, "default": 0.0, "metavar": "T", "help": "add constraints on faces, for eigenvalues "
                 "above T; default 0, none"},
    "coefficient": {"default": "constant", "choices": ("constant", "checkerboard", "channels"),
                    "help": "coefficient of the equation; jumps are by 1e4; default constant"},
    "problem": {"default": "poisson", "choices": ("poisson", "elasticity", "elasticity2d"), "help": "Poisson's "
                "equation, or an elastic cube or square that is clamped at one side; default poisson"},
    "ratio": {"metavar": "LIST", "help": "Poisson's ratios of the elastic cube; default 0.3"},
    "pressure": {"choices": ("none", "patches"), "help": "elastic cube: patches, a stable pair of displacements and "
                 "pressures near a ratio of 0.5; default none"},
    "near-nullspace": {"choices": ("rigid", "constants"), "help": "elastic cube: constraints represent rigid motions, "
                       "or are averages; default rigid"},
    "averages": {"default": "constraints", "choices": ("constraints", "basis"), "help": "constraints border local "
                 "matrices, or become unknowns by a change of basis; default constraints"},
    "random-rhs": {"action": "store_true", "help": "a random right-hand side, which leaves no eigenvalue out, instead "
                   "of ones"},
    "meshes": {"metavar": "LIST", "help": "cavities, separated by commas: names of the paper's table 1 such as "
               "Audi3D-2, cabin:SIZE, cabin:SIZE:divided (a hard one), cylinder:SIZE (edges in m); default: the "
               "paper's, on a CPU the smaller ones"},
    "frequencies": {"metavar": "BAND", "help": "frequencies in Hz for all cavities, FROM:TO:STEP or a list; default: "
                    "each cavity has its own"},
    "methods": {"nargs": "*", "metavar": "NAME", "help": "such as bicgstab 'bicgstabl(l=4)'; default: the paper's "
                "methods, and cocg"},
    "preconds": {"nargs": "*", "metavar": "NAME", "help": "default: none jacobi ilu0"},
    "rtol": {"type": float, "default": 1e-9, "metavar": "R", "help": "relative tolerance; default 1e-9, the paper's"},
    "maxiter": {"type": int, "default": 1000, "metavar": "N", "help": "iteration limit; default %(default)s, the "
                "paper's"},
    "scaling": {"action": "store_true", "help": "iterations over n, anisotropy, jumps and stretched cells, instead of "
                "whole solves"},
    "most": {"type": int, "metavar": "N", "help": "unknowns of the largest systems of --scaling; default 2200000, on a "
             "GPU 64000000"},
    "no-solves": {"action": "store_true", "help": "leave out the whole solves"},
}


def add_arguments(parser):
    """Add the arguments of ``swell bench`` to its parser: a parser for each benchmark."""
    benchmarks = parser.add_subparsers(dest="benchmark", metavar="benchmark", required=True)
    for name, (summary, options) in BENCHMARKS.items():
        one = benchmarks.add_parser(name, help=summary, description=summary)
        one.add_argument("--device", default="cpu", metavar="DEVICE", help="cpu (the default), cuda, ...")
        one.add_argument("--scale", type=float, default=1.0, metavar="S",
                         help="factor for the standard sizes; below 1 for a quick look; default 1")
        groups = {option: group for (command, needed), needing in ONLY_WITH.items() if command == name
                  for group in [one.add_argument_group(f"only with --{needed}")] for option in needing}
        for option in options:
            default = {"default": ",".join(MATRICES[name])} if option == "matrices" else LIMITS.get((name, option), {})
            groups.get(option, one).add_argument(option if option in POSITIONAL else f"--{option}",
                                                 **{**OPTIONS[option], **default})
        one.add_argument("--out", metavar="FILE", help="append the records as JSON lines: .jsonl")
        one.add_argument("--report", metavar="FILE", help="write an HTML report")
        one.add_argument("--debug", action="store_true", default=argparse.SUPPRESS,
                         help="show the traceback of an unexpected error")


def run(arguments) -> int:
    """Check the arguments, run the module of the named benchmark, and return the exit status."""
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
