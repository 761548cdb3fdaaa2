"""Transmission conditions between subdomains of a wave equation.

∂p/∂n + S p replaces the Dirichlet condition on the artificial boundaries, so that waves leave a subdomain without
reflection.

    robin           S = ik.  Després 1991: exact for a plane wave of normal incidence.
    second_order    S = (αβ − k² − Δ_τ)/(α + β).  Gander, Magoulès and Nataf, SIAM J. Sci. Comput. 24 (2002) 38. With
                    e^{+iωt} it is exact for a wave with ∂p/∂n = −αp on the boundary and for one with ∂p/∂n = −βp.
    two_sided       S = α for one of two neighbours, β for the other.  Gander, Halpern and Magoulès, Int. J. Numer.
                    Meth. Fluids 55 (2007) 163: nearly as good, without derivatives.

    α = i ((k² − k_min²)(k² − k_-²))^¼ for travelling waves, β = ((k_max² − k²)(k_+² − k²))^¼ for decaying ones,

optimal for two half planes without overlap. k_min = 0; k_max = π/h with h the mesh width. k_± = k ± π/H leave out the
waves next to k that a subdomain of width H cannot resolve (`optimised`).

All conditions need the faces between subdomains, which a front end gives as an `Interface`. Without one only "robin"
is possible, estimated from the rows of A (`RowRobin`).
"""
import math
from abc import ABC, abstractmethod

from swell.core.errors import InputError
from swell.formats.csr import CSRMatrix
from swell.preconditioners.shifted_laplacian import damping_sign, row_masses

CONDITIONS = ("dirichlet", "robin", "second_order", "two_sided")
FARTHEST = 1.0          # largest trusted estimate of kh from rows: about six nodes a wavelength


class Interface(ABC):
    """The faces between subdomains, from a front end."""

    @abstractmethod
    def terms(self, condition, rows, domain, owner, indptr, columns):
        """Return the `Terms` of a transmission condition, which can then be added to the matrices of the subdomains.

        Parameters
        ----------
        condition : {"robin", "second_order", "two_sided"}
        rows, domain : int host arrays, shape (copies,)
            The row of A and the subdomain of each copy, ascending by subdomain, then row.
        owner : int host array, shape (n,)
            The subdomain that owns each row of A.
        indptr, columns : int host arrays
            The pattern of the block-diagonal matrix of the copies.
        """


class Terms(ABC):
    """The terms of a transmission condition in the matrices of the subdomains."""

    @abstractmethod
    def add(self, A, data):
        """Add the terms, for A's present values, to ``data`` in place: the entries of the block-diagonal matrix of the
        subdomains' copies."""


def optimised(k, h, H):
    """Return the coefficients (α, β) of the optimised conditions in 1/m. The wave
    number k is in 1/m, the mesh width h and the subdomain width H in m."""
    apart = math.pi / H
    slow, fast, most = max(k - apart, 0.0), k + apart, max(math.pi / h, 2 * k)
    alpha = 1j * (k ** 2 * (k ** 2 - slow ** 2)) ** 0.25
    return alpha, ((most ** 2 - k ** 2) * (fast ** 2 - k ** 2)) ** 0.25


class RowRobin(Terms):
    """Robin's condition from the rows of A alone, on the diagonal.

    A copy has lost the couplings d = Σ aᵢⱼ to neighbours outside its subdomain. An outgoing wave has the value
    e^{−ikh} pᵢ there, at the distance h. So d e^{−ikh} is added to the diagonal. In one dimension, with linear
    elements, this is exact up to dispersion. kh is estimated from the row: (kh)² = ω²m/|Re d| with the lumped mass
    ω²m = −Re Σⱼ aᵢⱼ, and kh at most `FARTHEST`. If Re d ≥ 0, h cannot be estimated, and the copy stays unchanged. The
    sign of i is the sign of the imaginary part of A's trace, so that the condition absorbs where A does.

    Parameters
    ----------
    A : CSRMatrix
    copies : int array, the row of A of each copy
    lost : (of, entries), int arrays
        For each lost coupling: the copy, ascending, and the place in A.data.
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
