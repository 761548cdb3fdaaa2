"""GMRES(30) with block ILU(0): the experiments of "Developing a Multi-GPU-Enabled Preconditioned GMRES with Inexact
Triangular Solves for Block Sparse Matrices", by Ma, Hu, Yuan and Liu, 2021, tables 1 to 4 and figures 8 to 15.

``device`` measures on one device, without MPI. With ``--ranks``, ``across`` starts ``ranks`` under mpiexec, a GPU each,
once for each number of ranks, and shows their records beside PETSc's (``petsc``) and cuSPARSE's (``cusparse``).
"""
from __future__ import annotations


OF_RANKS = {"unknowns": None, "partition": "rows", "sweeps": None, "threads": None, "repeat": None,
            "no_cusparse": False, "petsc": None, "petsc_ranks": None}         # options that need --ranks, and defaults


def run(arguments) -> int:
    """Run the benchmark; return the exit status. ``arguments``: the parsed command line."""
    from swell.bench.block_gmres import across, device
    from swell.core.errors import InputError
    if arguments.ranks is None:
        for option, default in OF_RANKS.items():
            if getattr(arguments, option) != default:
                raise InputError(f"--{option.replace('_', '-')} is for --ranks: name numbers of ranks, such as --ranks "
                                 "1,2, or leave it out")
    elif arguments.unknowns is not None and arguments.files:
        raise InputError("--unknowns generates --matrices anew for each number of ranks, and --files cannot grow: "
                         "leave one of them out")
    elif arguments.petsc_ranks is not None and arguments.petsc is None:
        raise InputError("--petsc-ranks is for --petsc: name the command that starts PETSc, or leave it out")
    return (device if arguments.ranks is None else across).run(arguments)
