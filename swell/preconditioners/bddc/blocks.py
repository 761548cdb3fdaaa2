"""interior="blocks" on a GPU: A_II⁻¹ for all subdomains, by the block tridiagonal factors that Schur complements need
anyway.

    t₀ = r₀,  tₖ = rₖ − C Dₖ₋₁⁻¹ tₖ₋₁;   zₖ = Dₖ⁻¹ (tₖ − C' zₖ₊₁)

from the first layer to the last and back. C couples layer k to layer k − 1, C' couples layer k to k + 1. The inverses
of D are stored; they are as large as the factors. So a layer is one dense product, for all subdomains with layers of
these sizes together; the couplings remain sparse. Equal interiors are stored once, and their subdomains are columns of
one product: a cube with one coefficient has one interior for all subdomains.

Storage: Σ s² over the layers of every different interior, in the precision of A. Cost: two dense products and two
sparse ones a layer.
"""
from __future__ import annotations

from itertools import pairwise

import numpy as np

from swell.core.columns import plain
from swell.core.operator import LinearOperator
from swell.formats.csr import CSRMatrix
from swell.preconditioners.bddc.symmetry import product


class Inverses:
    """Dₖ⁻ᵀ of every layer and the couplings, from an ``Elimination`` that can then be freed."""

    def __init__(self, factors, dtype):
        self.ends, self.D, xp = factors.ends, [], factors.space.xp
        for one, size in zip(factors.factors, np.diff(self.ends).tolist(), strict=True):
            self.D.append(xp.ascontiguousarray(one.inverse(size).T.astype(dtype, copy=False)))
        self.down, self.up = (_couplings(factors.A, self.ends, step, dtype) for step in (-1, 1))


def _couplings(A, ends, step, dtype):
    """Return the couplings of each layer to the one before it (``step`` −1) or after it (1), for the layers that have
    one: new CSRMatrix objects of type ``dtype``. The rows of A are sorted by layer; layer k begins at row ends[k]."""
    space, xp, sizes = A.space, A.space.xp, np.diff(ends)
    layer, starts, rows = space.from_host(np.repeat(np.arange(sizes.size), sizes)), space.from_host(ends), A.rows()
    there = layer[A.indices] == layer[rows] + step
    rows, columns, data = rows[there], A.indices[there], A.data[there].astype(dtype, copy=False)
    columns = columns - starts[layer[columns]].astype(columns.dtype)
    indptr = xp.searchsorted(rows, xp.arange(int(ends[-1]) + 1, dtype=rows.dtype))
    at, result = space.to_host(indptr[starts]), []  # sync
    for k in range(max(0, -step), sizes.size - max(0, step)):
        some = slice(int(at[k]), int(at[k + 1]))
        result.append(CSRMatrix(space, indptr[ends[k]:ends[k + 1] + 1] - some.start, columns[some], data[some],
                                (int(sizes[k]), int(sizes[k + step]))))
    return result


class InteriorBlocks(LinearOperator):
    """A_II⁻¹ for all subdomains.

    Parameters
    ----------
    space : Space
    inverses : list of Inverses
        One for every different interior.
    places : list of lists of int arrays
        For each interior and each of its subdomains: the places of its dofs among all interior dofs, in the order of
        the layers.
    n : int
        Number of interior dofs of all subdomains.
    dtype : numpy.dtype
    spd : bool
        All interiors are positive definite.
    """

    capturable = False

    scratch = ("_t", "_z")

    def __init__(self, space, inverses, places, n, dtype, spd=True):
        super().__init__((n, n), np.dtype(dtype), space)
        self.spd = spd
        alike = {}
        for k, (one, of) in enumerate(zip(inverses, places, strict=True)):
            alike.setdefault((tuple(np.diff(one.ends)), len(of)), []).append(k)
        order, self._stacks, at = [], [], 0
        self._t, self._z = (space.empty(n, self.dtype) for _ in range(2))
        for some in alike.values():
            stack = _Stack(space, [inverses[k] for k in some], len(places[some[0]]), self._t[at:], self._z[at:])
            self._stacks.append(stack)
            ends = inverses[some[0]].ends
            order += [place[a:b] for a, b in pairwise(ends) for k in some for place in places[k]]
            at += stack.n
        self._order = space.from_host(np.concatenate(order))

    def apply(self, x, out, alpha=1, beta=0, adjoint=False):
        self._t[...] = x[self._order]
        for stack in self._stacks:
            stack.solve(adjoint)
        if beta == 0:
            out[self._order] = self._z if alpha == 1 else self.dtype.type(alpha) * self._z
        else:
            out *= self.dtype.type(beta)
            out[self._order] += self.dtype.type(alpha) * self._z

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self.apply(x, out, alpha, beta, adjoint=True)

    @property
    def nbytes(self):
        return sum(stack.nbytes for stack in self._stacks)

    def describe(self):
        different = sum(len(stack.D[0]) for stack in self._stacks)
        return f"blocks, {different} different interiors of {min(len(s.D) for s in self._stacks)} layers and more"


class _Stack:
    """Interiors with layers of equal sizes and ``many`` subdomains each. t and z are their parts of two vectors: layer
    by layer, in it interior by interior, subdomain by subdomain."""

    def __init__(self, space, inverses, many, t, z):
        xp, ends, count = space.xp, inverses[0].ends, len(inverses)
        self._matmul, self.n = xp.matmul, int(ends[-1]) * count * many
        self.D = []
        for k in range(len(ends) - 1):
            of = [one.D[k] for one in inverses]
            self.D.append(xp.stack(of) if count > 1 else of[0][None])
            for one in inverses:
                one.D[k] = None                  # stacked: not kept twice
        self._down, self._up = ([_diagonal(of, many) for of in zip(*couplings, strict=True)] for couplings in
                                ([one.down for one in inverses], [one.up for one in inverses]))
        parts = [slice(a * count * many, b * count * many) for a, b in pairwise(ends)]
        self._t, self._z = ([v[part] for part in parts] for v in (t, z))
        shapes = [(count, many, int(b - a)) for a, b in pairwise(ends)]
        self._blocks = [tuple(v[k].reshape(shape) for v in (self._t, self._z)) for k, shape in enumerate(shapes)]

    def solve(self, adjoint=False):
        """Write z = A_II⁻¹ t, or A_II⁻ᴴ t, for the vectors t and z given to the constructor; t is overwritten."""
        last = len(self.D) - 1
        for k in range(last + 1):
            if k:
                self._couple(self._down[k - 1], self._up[k - 1], k - 1, k, adjoint)
            self._multiply(k, adjoint)
        for k in range(last - 1, -1, -1):
            self._couple(self._up[k], self._down[k], k + 1, k, adjoint)
            self._multiply(k, adjoint)

    def _couple(self, C, opposite, of, to, adjoint):
        """Subtract C z from t, for z of one layer and t of another; with ``adjoint`` the adjoint of the ``opposite``
        coupling times z."""
        product(C, opposite, self._z[of], self._t[to], -1, 1, adjoint)

    def _multiply(self, k, adjoint):
        """Write zₖ = Dₖ⁻¹ tₖ, or Dₖ⁻ᴴ tₖ, for layer k of the stored t and z; each subdomain has a row of them."""
        t, z = map(plain, self._blocks[k])
        if adjoint:
            z[...] = self._matmul(t.conj(), self.D[k].swapaxes(1, 2)).conj()
        else:
            self._matmul(t, self.D[k], out=z)

    @property
    def nbytes(self):
        return sum(D.nbytes for D in self.D) + sum(C.nbytes for C in (*self._down, *self._up))


def _diagonal(matrices, many):
    """Return a new block diagonal CSRMatrix, with each of the ``matrices``, all of one shape, ``many`` times."""
    space, xp, (rows, columns) = matrices[0].space, matrices[0].space.xp, matrices[0].shape
    indptr, indices, data, entries = [xp.zeros(1, np.int64)], [], [], 0
    for k, C in enumerate(matrices):
        copy = xp.arange(many, dtype=np.int64)[:, None]
        indptr.append((entries + copy * C.nnz + C.indptr[1:]).ravel())
        indices.append(((k * many + copy) * columns + C.indices).ravel())
        data.append(xp.broadcast_to(C.data, (many, C.nnz)).ravel())
        entries += many * C.nnz
    count = len(matrices) * many
    return CSRMatrix(space, *(xp.concatenate(part) for part in (indptr, indices, data)),
                     (count * rows, count * columns))
