"""Restarted GMRES(m), preconditioned on the right, with delayed twice-classical Gram–Schmidt.

For any square A. Saad and Schultz 1986; the cycle, with its orthogonalisation, is in ``restarted.py``.

A step: 1 product, 1 application of M, 1 reduction, no host read; 8 (2 j + 7) bytes a row in double. A cycle adds a
product for the true residual, a reduction and an application of M. Storage: m basis vectors, u and w. Reports
‖b − A x‖₂: recursive inside a cycle, true at the end of each.

``batch`` bounds the vectors of a launch, of inner products or of updates, as in section 3.2 of Ma, Hu, Yuan and Liu,
Developing a multi-GPU-enabled preconditioned GMRES with inexact triangular solves for block sparse matrices, 2021.
Every further launch reads u and w again, and updates write them again: 0, all in one, is fastest.

``basis="single"``: V (and Z) are stored in single precision and all arithmetic stays in double; u and w stay double:
4 (2 j + 13) bytes a row. Aliaga, Anzt, Grützmacher, Quintana-Ortí and Tomás, Compressed basis GMRES on high-performance
graphics processing units, 2023. Then A M V = V H holds to 6e-8 ‖A M‖ only, so a cycle cannot reduce the residual
further than about by that times the condition; the true residual at its end says how far it came, and the next goes on
from there.

Differs from the textbook: the residual after j steps is known, and judged, in step j + 1.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.krylov.fgmres import FGMRES
from swell.krylov.restarted import RestartedMethod


@dataclass(frozen=True)
class GMRES(RestartedMethod):
    """Generalised minimal residuals, for any square matrix: the residual never grows.

    Attributes
    ----------
    restart : int
        Steps of a cycle, m; at most 500.
    batch : int
        Basis vectors that one launch of inner products, or of updates, handles; 0: all.
    basis : {"full", "single"}
        Precision in which the basis is stored: the system's, or single.
    lengthen : bool
        Go on with twice the restart, up to 500 and within memory, where the iteration limit would come first; the
        result notes it. The next solve begins with ``restart`` again.
    """

    problem = "any square matrix; the residual never grows"
    vectors = "restart + 2; single: restart / 2 + 2"

    def flexible_form(self):
        return FGMRES(self.restart, self.batch, self.basis, self.lengthen)
