"""interior="blocks": A_II⁻¹ for all subdomains, by the block tridiagonal factors that Schur complements need anyway.

    t₀ = r₀,  tₖ = rₖ − C Dₖ₋₁⁻¹ tₖ₋₁;   zₖ = Dₖ⁻¹ (tₖ − C'ᵀ zₖ₊₁)

from the first layer to the last and back. C couples layer k to layer k − 1, C' couples layer k + 1 to k. The inverses
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
from swell.preconditioners.bddc.elimination import solve_lower
from swell.preconditioners.bddc.renumbering import numbers, renumbered


class Inverses:
    """Dₖ⁻¹ of every layer and the couplings, from an ``Elimination`` that can then be freed."""

    def __init__(self, factors, dtype):
        self.ends, self.D, space = factors.ends, [], factors.space
        for L in factors.L:
            X = solve_lower(space, L, space.xp.eye(len(L), order="F"))
            self.D.append((X.T @ X).astype(dtype, copy=False))
        self.couplings = [_block(factors.A, self.ends, k, dtype) for k in range(1, len(self.ends) - 1)]


def _block(A, ends, k, dtype):
    """Return the coupling of layer k to layer k − 1, a new CSRMatrix of type ``dtype``. The rows of A are sorted by
    layer; layer k begins at row ends[k]."""
    some = slice(*A.space.to_host(A.indptr[ends[k]:ends[k + 1] + 1])[[0, -1]].tolist())  # sync
    rows = CSRMatrix(A.space, A.indptr[ends[k]:ends[k + 1] + 1] - some.start, A.indices[some],
                     A.data[some].astype(dtype, copy=False), (int(ends[k + 1] - ends[k]), A.shape[1]))
    here, before = np.arange(rows.shape[0]), np.arange(ends[k - 1], ends[k])
    return renumbered(rows, A.space.from_host(here), numbers(A.space, before, A.shape[1]), (here.size, before.size))


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
    """

    spd = True
    capturable = False

    scratch = ("_t", "_z")

    def __init__(self, space, inverses, places, n, dtype):
        super().__init__((n, n), np.dtype(dtype), space)
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

    def apply(self, x, out, alpha=1, beta=0):
        self._t[...] = x[self._order]
        for stack in self._stacks:
            stack.solve()
        if beta == 0:
            out[self._order] = self._z if alpha == 1 else self.dtype.type(alpha) * self._z
        else:
            out *= self.dtype.type(beta)
            out[self._order] += self.dtype.type(alpha) * self._z

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self.apply(x, out, alpha, beta)

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
        self._down = [_diagonal(of, many) for of in zip(*(one.couplings for one in inverses), strict=True)]
        self._up = [C.transpose() for C in self._down]
        parts = [slice(a * count * many, b * count * many) for a, b in pairwise(ends)]
        self._t, self._z = ([v[part] for part in parts] for v in (t, z))
        shapes = [(count, many, int(b - a)) for a, b in pairwise(ends)]
        self._blocks = [tuple(v[k].reshape(shape) for v in (self._t, self._z)) for k, shape in enumerate(shapes)]

    def solve(self):
        """Write z = A_II⁻¹ t for the vectors t and z given to the constructor; t is overwritten."""
        last = len(self.D) - 1
        for k in range(last + 1):
            if k:
                self._down[k - 1].apply(self._z[k - 1], self._t[k], -1, 1)
            self._multiply(k)
        for k in range(last - 1, -1, -1):
            self._up[k].apply(self._z[k + 1], self._t[k], -1, 1)
            self._multiply(k)

    def _multiply(self, k):
        """Write zₖ = Dₖ⁻¹ tₖ for layer k of the stored t and z; each subdomain has a row of them."""
        t, z = self._blocks[k]
        self._matmul(plain(t), self.D[k], out=plain(z))        # the inverse is symmetric

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
