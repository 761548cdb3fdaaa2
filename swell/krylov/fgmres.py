"""Flexible restarted GMRES(m): the preconditioner may change from step to step.

For any square A and any M, linear or not. Saad 1993. The cycle is in ``restarted.py`` (``flexible=True``): the
preconditioned vectors z_j = M(u_j) are kept, A Z = V H, and x += Z y. The second pass of the orthogonalisation may
not use the linearity of A M, and does not need it: w = A z_j is orthogonalised as it stands.

A step: 1 product, 1 application of M, 1 reduction. Storage: 2 m + 2 vectors. Reports ‖b − A x‖₂. With
``basis="single"`` V and Z are stored in single precision, and w is A times z as it is stored: x += Z y fits A Z.
"""
from __future__ import annotations

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
        Basis vectors that one launch of inner products, or of updates, handles; 0: all.
    basis : {"full", "single"}
        Precision in which V and Z are stored: the system's, or single.
    lengthen : bool
        Go on with twice the restart, up to 500 and within memory, where the iteration limit would come first; the
        result notes it. The next solve begins with ``restart`` again.
    """

    problem = "any square matrix, with a preconditioner that varies"
    vectors = "2 restart + 2; single: restart + 3"
    flexible = True
