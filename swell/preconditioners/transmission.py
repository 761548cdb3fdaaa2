"""Transmission conditions between subdomains of a wave equation: what replaces Dirichlet's on their artificial
boundaries, ∂p/∂n + S p, so that waves leave a subdomain instead of being thrown back.

    robin           S = ik.  Després 1991: exact for a plane wave of normal incidence.
    second_order    S = (αβ − k² − Δ_τ)/(α + β).  Gander, Magoulès and Nataf, SIAM J. Sci. Comput. 24 (2002) 38, which
                    with e^{+iωt} is exact for a wave along the boundary of ∂p/∂n = −αp and for one of −βp.
    two_sided       S = α for one of two neighbours, β for the other.  Gander, Halpern and Magoulès, Int. J. Numer.
                    Meth. Fluids 55 (2007) 163: nearly as good, without derivatives.

    α = i ((k² − k_min²)(k² − k_-²))^¼ for waves that travel, β = ((k_max² − k²)(k_+² − k²))^¼ for those that decay,

optimal for two half planes without overlap; k_min = 0, k_max = π/h with h the mesh width, and k_± = k ± π/H leave out
the waves next to k that a subdomain of the width H cannot tell apart (`optimised`).

A front end gives the faces between subdomains as an `Interface`, and all conditions. Without one there is "robin",
estimated from the rows of A (`RowRobin`).
"""
from __future__ import annotations

import math
from abc import ABC, abstractmethod

from swell.core.errors import InputError
from swell.formats.csr import CSRMatrix
from swell.preconditioners.shifted_laplacian import damping_sign, row_masses

CONDITIONS = ("dirichlet", "robin", "second_order", "two_sided")
FARTHEST = 1.0          # kh beyond which the estimate from rows is not believed: six nodes a wavelength


class Interface(ABC):
    """What a front end knows of the faces between subdomains."""

    @abstractmethod
    def terms(self, condition, rows, domain, owner, indptr, columns):
        """The `Terms` of a condition.

        Parameters
        ----------
        condition : {"robin", "second_order", "two_sided"}
        rows, domain : int arrays of the host, shape (copies,)
            The row of A and the subdomain of each copy, ascending by subdomain, then row.
        owner : int array of the host, shape (n,)
            The subdomain that owns each row of A.
        indptr, columns : int arrays of the host
            The pattern of the block-diagonal matrix of the copies.
        """


class Terms(ABC):
    """What makes of the copies' entries of A the matrices of subdomains with a transmission condition."""

    @abstractmethod
    def add(self, A, data):
        """Add to ``data``, the entries of the copies' matrix, for the values that A has now."""


def optimised(k, h, H):
    """(α, β), 1/m, for the wave number k, the mesh width h and the width H of a subdomain, in m."""
    apart = math.pi / H
    slow, fast, most = max(k - apart, 0.0), k + apart, max(math.pi / h, 2 * k)
    alpha = 1j * (k ** 2 * (k ** 2 - slow ** 2)) ** 0.25
    return alpha, ((most ** 2 - k ** 2) * (fast ** 2 - k ** 2)) ** 0.25


class RowRobin(Terms):
    """Robin's condition from the rows of A alone, on the diagonal.

    A copy has lost the couplings d = Σ aᵢⱼ to neighbours outside its subdomain. A wave that leaves has e^{−ikh} pᵢ
    there, at the distance h: the diagonal takes d e^{−ikh}. In one dimension, with linear elements, that is exact but
    for the dispersion; kh is what the row says, (kh)² = ω²m/|Re d| with ω²m = −Re Σⱼ aᵢⱼ its lumped mass, at most
    `FARTHEST`. Where Re d ≥ 0, no distance can be told, and the copy stays as it is. The sign of i is such that the
    condition takes energy where A does: that of the imaginary part of A's trace.

    Parameters
    ----------
    A : CSRMatrix
    copies : int array, the row of A of each copy
    lost : (of, entries), int arrays
        The copy, ascending, and the place in A's entries of each coupling that is lost.
    indptr, columns : int arrays
        The pattern of the copies' matrix.
    """

    def __init__(self, A, copies, lost, indptr, columns):
        if A.dtype.kind != "c":
            raise InputError(f"transmission='robin' is complex, and the system is {A.dtype.name}: give "
                             "dtype='complex128', or take transmission='dirichlet'")
        xp, space = A.space.xp, A.space
        of, self._entries = lost
        self._at = xp.unique(of)                                 # copies that have lost a coupling
        self._copies = copies[self._at]
        ends = xp.searchsorted(of, self._at, side="right")
        pointers = xp.concatenate([xp.zeros(1, ends.dtype), ends])
        self._lost = CSRMatrix(space, pointers, xp.zeros(of.size, ends.dtype), space.empty(of.size, A.dtype),
                               (self._at.size, 1))
        matrix = CSRMatrix(space, indptr, columns, space.empty(columns.size, A.dtype), (copies.size, copies.size))
        self._diagonal = xp.flatnonzero(matrix.indices == matrix.rows())
        if self._diagonal.size < copies.size:
            raise InputError("transmission='robin' adds to the diagonal, and a row of A has no diagonal entry: store a "
                             "zero there, or take transmission='dirichlet'")
        self._own = xp.flatnonzero(A.indices == A.rows())
        self._diagonal = self._diagonal[self._at]

    def add(self, A, data):
        xp = A.space.xp
        if not self._at.size:
            return
        self._lost.data[...] = A.data[self._entries]
        d, mass = self._lost.row_sums(), row_masses(A)[self._copies]
        stiff = xp.maximum(-d.real, 0)
        kh = xp.minimum(xp.sqrt(mass / xp.where(stiff > 0, stiff, 1)), FARTHEST)
        sign = damping_sign(A, self._own)
        data[self._diagonal] += xp.where(stiff > 0, d * xp.exp(-1j * sign * kh), 0).astype(A.dtype)
