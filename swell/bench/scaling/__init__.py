"""Strong and weak scaling across ranks: figures 10 and 11, tables 2 to 4 and equation 13 of "Developing a
Multi-GPU-Enabled Preconditioned GMRES with Inexact Triangular Solves for Block Sparse Matrices", and a model.

``command`` starts ``ranks`` under mpiexec once for each number of ranks, collects the records that rank 0 prints, and
shows them. ``model`` predicts the times of more ranks; docs/SCALING.md states its assumptions.
"""
from __future__ import annotations

from swell.bench.scaling.command import run

__all__ = ["run"]
