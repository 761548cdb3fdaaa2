"""An assembled matrix split into subdomain matrices: A = Σ over pairs |aᵢⱼ| (eᵢ − eⱼ)(eᵢ − eⱼ)ᵀ + Σ sᵢ eᵢ eᵢᵀ, sᵢ the
row sums.

Every term is positive semidefinite if no off-diagonal aᵢⱼ is positive and no row sum is negative, as for finite volumes
and many finite differences. Then each pair is an element. A pair within a subdomain belongs to it. A pair across two
subdomains belongs to the one with the lower number, which gets a copy of the other's row (for cell-centred finite
volumes: interface cells are duplicated). The elements of other matrices cannot be found from the matrix: they need
given subdomain matrices.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import InputError
from swell.preconditioners.bddc.subdomains import Subdomains

ROUNDING = 1e-12        # row sums and entries of the wrong sign below this times the diagonal are rounding
NEEDED = ("give the subdomain matrices, BDDC(subdomains=swell.Subdomains([(matrix, dofs), ...])), as "
          "swell.pde.poisson_cube does, or use precond='ic0'")


def split(A, owner):
    """Split an assembled matrix into new `Subdomains`, whose matrices add up to A.

    Parameters
    ----------
    A : scipy.sparse.csr_array
        Symmetric.
    owner : int array
        The subdomain of each row.

    Raises
    ------
    InputError
        If A has a positive entry off the diagonal, or a negative row sum, beyond rounding.
    """
    return Subdomains(summed(*elements(A, owner)))


def elements(A, owner, numbers=None):
    """Return the element matrices of A as entries: int arrays (subdomains, rows, columns), and values, in a list.

    An element is a pair of coupled rows, or a row's sum; entry k belongs to subdomain subdomains[k].

    Parameters
    ----------
    A : scipy.sparse.csr_array, shape (m, n)
        The local rows of a symmetric matrix; its first m columns belong to these rows.
    owner : int array
        The subdomain of each of the n rows.
    numbers : int array, optional
        The numbers of the n rows in the whole matrix.

    Raises
    ------
    InputError
        If A has a positive entry off the diagonal, or a negative row sum, beyond rounding.
    """
    entries, diagonal = A.tocoo(), A.diagonal()
    numbers = np.arange(A.shape[1]) if numbers is None else numbers
    rows, columns, values = entries.row, entries.col, entries.data
    level = ROUNDING * abs(diagonal).max(initial=0)
    off = rows != columns
    positive = off & (values > level)
    if positive.any():
        k = int(positive.argmax())
        raise InputError(f"BDDC cannot split this matrix into subdomains: its entry ({numbers[rows[k]]}, "
                         f"{numbers[columns[k]]}) is {values[k]:.3g}, positive off the diagonal, so that its elements "
                         f"are not known; {NEEDED}")
    sums = np.asarray(A.sum(axis=1)).ravel()
    tolerance = ROUNDING * np.maximum(abs(diagonal), 1e-300) * np.maximum(np.diff(A.indptr), 1)
    if (sums < -1e3 * tolerance).any():
        k = int(sums.argmin())
        raise InputError(f"BDDC cannot split this matrix into subdomains: row {numbers[k]} sums to {sums[k]:.3g}, "
                         f"less than zero, so that its diagonal does not hold its elements; {NEEDED}")
    sums = np.where(sums > tolerance, sums, 0)
    rows, columns, values = rows[off], columns[off], values[off]
    of, here = np.minimum(owner[rows], owner[columns]), numbers[:A.shape[0]]
    rows, columns = numbers[rows], numbers[columns]
    return [np.concatenate(part) for part in ((of, of, owner[:A.shape[0]]), (rows, rows, here), (columns, rows, here),
                                              (values, -values, sums))]


def summed(of, rows, columns, values):
    """Sum entries into subdomain matrices: return the list of (matrix, dofs) of subdomains 0, 1, ....

    of[k] is the subdomain of entry k, at (rows[k], columns[k]) of the whole matrix. ``matrix`` is a
    scipy.sparse.csr_array; its row i is row dofs[i] of the whole matrix."""
    import scipy.sparse as sp
    order = np.argsort(of, kind="stable")
    parts = []
    for at in np.split(order, np.cumsum(np.bincount(of))[:-1]):
        dofs, place = np.unique(np.concatenate((rows[at], columns[at])), return_inverse=True)
        i, j = place.reshape(2, -1)
        parts.append((sp.coo_array((values[at], (i, j)), shape=(dofs.size,) * 2).tocsr(), dofs))
    return parts
