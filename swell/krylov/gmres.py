"""Restarted GMRES(m), preconditioned on the right, with delayed twice-classical Gram–Schmidt.

For any square A. Saad and Schultz 1986; the cycle, with its orthogonalisation, is in ``restarted.py``.

A step: 1 product, 1 application of M, 1 reduction, no host read; 8 (2 j + 7) bytes a row in double. A cycle adds a
product for the true residual, a reduction and an application of M. Storage: m basis vectors, u and w. Reports
‖b − A x‖₂: recursive inside a cycle, true at the end of each.

``batch`` limits the basis vectors per launch of inner products or updates, as in section 3.2 of Ma, Hu, Yuan and Liu,
Developing a multi-GPU-enabled preconditioned GMRES with inexact triangular solves for block sparse matrices, 2021.
Each further launch reads u and w again, and updates write them again. So 0, all vectors in one launch, is fastest.

``basis="single"`` stores V (and Z) in single precision; u, w and all arithmetic stay in double: 4 (2 j + 13) bytes a
row. Aliaga, Anzt, Grützmacher, Quintana-Ortí and Tomás, Compressed basis GMRES on high-performance graphics processing
units, 2023. Then A M V = V H holds only to 6e-8 ‖A M‖. So a cycle can reduce the residual at best to about 6e-8 times
the condition number. The true residual at its end shows the progress, and the next cycle continues from there.

Differs from the textbook: the residual after j steps is known, and judged, in step j + 1.
"""
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
        Basis vectors per launch of inner products, or of updates; 0: all.
    basis : {"full", "single"}
        Precision in which the basis is stored: the system's, or single.
    lengthen : bool
        Double the restart, up to 500 and within memory, if cycles are too slow for the iteration limit or stagnate;
        the result notes it. The next solve begins with ``restart`` again.
    """

    problem = "any square matrix; the residual never grows"
    vectors = "restart + 2; single: restart / 2 + 2"

    def flexible_form(self):
        return FGMRES(self.restart, self.batch, self.basis, self.lengthen)
