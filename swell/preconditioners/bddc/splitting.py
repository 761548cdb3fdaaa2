"""An assembled matrix split into subdomain matrices: A = Σ over pairs of coupled rows + Σ sᵢ eᵢ eᵢᵀ, the pairs

    [d, aᵢⱼ; aⱼᵢ, d]    with d = −(aᵢⱼ + aⱼᵢ)/2,    sᵢ = (row sum i + column sum i)/2.

A pair is a symmetric part d [1, −1; −1, 1] and a skew part. The symmetric part is positive semidefinite if d is not
negative. For convection this is the splitting of b·∇u into its skew half and its symmetric half, by which Tu and Li
(2008) and Achdou et al. (2000) make subdomains coercive: their Robin conditions are the diagonal's share. For a
symmetric A the pairs are |aᵢⱼ| (eᵢ − eⱼ)(eᵢ − eⱼ)ᵀ, and sᵢ the row sums.

So A can be split if no aᵢⱼ + aⱼᵢ is positive and no sᵢ negative (their real parts, in a complex A), as for finite
volumes, upwind schemes and many finite differences. A pair within a subdomain belongs to it. A pair across two
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
          "swell.gallery.elastic_subdomains and swell.pde.poisson_cube do, or use precond='ic0'")


def split(A, owner):
    """Split an assembled matrix into new `Subdomains`, whose matrices add up to A.

    Parameters
    ----------
    A : scipy.sparse.csr_array
    owner : int array
        The subdomain of each row.

    Raises
    ------
    InputError
        If the sum of A and its transpose has a positive entry off the diagonal, or a negative row sum, beyond rounding.
    """
    return Subdomains(summed(*elements(A, owner)))


def elements(A, owner, numbers=None):
    """Return the element matrices of A as entries: int arrays (subdomains, rows, columns), and values, in a list.

    An element is a pair of coupled rows, or a row's sum; entry k belongs to subdomain subdomains[k].

    Parameters
    ----------
    A : scipy.sparse.csr_array, shape (m, n)
        The local rows of a matrix, which is symmetric if m < n; its first m columns belong to these rows.
    owner : int array
        The subdomain of each of the n rows.
    numbers : int array, optional
        The numbers of the n rows in the whole matrix.

    Raises
    ------
    InputError
        If A has a positive entry off the diagonal, or a negative row sum, beyond rounding.
    """
    H = A if A.shape[0] < A.shape[1] else 0.5 * (A + A.T)
    entries, diagonal = H.tocoo(), H.diagonal()
    numbers = np.arange(A.shape[1]) if numbers is None else numbers
    rows, columns, values = entries.row, entries.col, entries.data
    level = ROUNDING * abs(diagonal).max(initial=0)
    off = rows != columns
    positive = off & (values.real > level)
    name = "entry" if H is A or abs(A - A.T).max() == 0 else "symmetric part, (A + Aᵀ)/2, at"
    if positive.any():
        k = int(positive.argmax())
        raise InputError(f"BDDC cannot split this matrix into subdomains: its {name} ({numbers[rows[k]]}, "
                         f"{numbers[columns[k]]}) is {values[k]:.3g}, positive off the diagonal, so that its elements "
                         f"are not known; {NEEDED}")
    sums = np.asarray(H.sum(axis=1)).ravel()
    tolerance = ROUNDING * np.maximum(abs(diagonal), 1e-300) * np.maximum(np.diff(H.indptr), 1)
    if (sums.real < -1e3 * tolerance).any():
        k = int(sums.real.argmin())
        raise InputError(f"BDDC cannot split this matrix into subdomains: row {numbers[k]} "
                         f"{'' if name == 'entry' else 'of its symmetric part, (A + Aᵀ)/2, '}sums to {sums[k]:.3g}, "
                         f"less than zero, so that its diagonal does not hold its elements; {NEEDED}")
    sums = np.where(abs(sums) > tolerance, sums, 0)
    rows, columns, values = rows[off], columns[off], -values[off]
    of, here = np.minimum(owner[rows], owner[columns]), numbers[:A.shape[0]]
    entries = A.tocoo()
    off = entries.row != entries.col
    of_entry = np.minimum(owner[entries.row[off]], owner[entries.col[off]])
    rows = numbers[rows]
    return [np.concatenate(part) for part in (
        (of_entry, of, owner[:A.shape[0]]), (numbers[entries.row[off]], rows, here),
        (numbers[entries.col[off]], rows, here), (entries.data[off], values, sums))]


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
