"""Flexible restarted GMRES(m): the preconditioner may change from step to step.

For any square A and any M, linear or not. Saad 1993. The cycle is in ``restarted.py`` (``flexible=True``). It keeps the
preconditioned vectors z_j = M(u_j): A Z = V H, and x += Z y. The second pass of the orthogonalisation must not use that
A M is linear, and need not: it orthogonalises w = A z_j directly.

A step: 1 product, 1 application of M, 1 reduction. Storage: 2 m + 2 vectors. Reports ‖b − A x‖₂. With
``basis="single"`` V and Z are stored in single precision. Then w is A times the stored z, so that x += Z y fits A Z.
"""
from dataclasses import dataclass

from swell.krylov.restarted import RestartedMethod


@dataclass(frozen=True)
class FGMRES(RestartedMethod):
    """Flexible GMRES, for any square matrix and a preconditioner that varies.

    Attributes
    ----------
    restart : int
        Steps of a cycle, m; at most 500.
    batch : int
        Basis vectors per launch of inner products, or of updates; 0: all.
    basis : {"full", "single"}
        Precision in which V and Z are stored: the system's, or single.
    lengthen : bool
        Double the restart, up to 500 and within memory, if cycles are too slow for the iteration limit or stagnate;
        the result notes it. The next solve begins with ``restart`` again.
    """

    problem = "any square matrix, with a preconditioner that varies"
    vectors = "2 restart + 2; single: restart + 3"
    flexible = True
