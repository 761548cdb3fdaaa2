"""Search for equal subdomains and equal interiors, so that each different one is eliminated once.

A cube of 4³ subdomains with one coefficient has 27 different subdomains, by their place at the boundary, and all its
interiors are equal. Fronts depend on the pattern alone, and are found once for every different pattern.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from swell.core.errors import FactorisationError
from swell.formats.csr import CSRMatrix
from swell.preconditioners.bddc.dissection import dissect
from swell.preconditioners.bddc.elimination import Elimination
from swell.preconditioners.bddc.fronts import fronts_of
from swell.preconditioners.bddc.layers import distances, layers
from swell.preconditioners.bddc.renumbering import equal, numbers, pattern, renumbered
from swell.preconditioners.bddc.symmetry import HERMITIAN, double

SMALL = 250             # rows of an interior that is one front: its factorisation costs less than a search for more


@dataclass(eq=False)
class Different:
    """A subdomain matrix that differs from all others, and its subdomains.

    Attributes
    ----------
    A : CSRMatrix
        In double precision, its pattern symmetric.
    inner, own : int host arrays
        Its dofs in the interior and on the interface, ascending.
    members : list of int
        The equal subdomains that have it.
    order : int array
        ``inner`` in the order of the fronts.
    """

    A: CSRMatrix
    inner: np.ndarray
    own: np.ndarray
    members: list
    order: np.ndarray = None


@dataclass(eq=False)
class Interior:
    """An interior, and the different subdomain matrices that have it.

    Attributes
    ----------
    subdomains : list of Different
    A : CSRMatrix or None
        A_II, its rows in the order of the fronts; None without interior dofs.
    order, ends : int host arrays
        The result of ``dissect`` on a CPU, of ``layers`` on a GPU.
    fronts : Tree, Chain or None
    """

    subdomains: list
    A: CSRMatrix
    order: np.ndarray
    ends: np.ndarray
    fronts: Any = None

    @property
    def entries(self):
        """Number of entries of the dense blocks of its factors."""
        return self.fronts.entries if self.fronts else 0

    def factors(self, symmetry):
        """Return the `Elimination` of this interior, newly factored; None without interior dofs. LU takes the place of
        Cholesky's factorisation if A_II is not positive definite, or not Hermitian (``symmetry``, a Symmetry)."""
        if self.A is None:
            return None
        if symmetry is HERMITIAN:
            try:
                return Elimination(self.A, self.ends, True, self.fronts)
            except FactorisationError:           # not positive definite
                pass
        return Elimination(self.A, self.ends, False, self.fronts)

    def places(self, subdomains, interface):
        """Return an int array for each subdomain with this interior: the places of its interior dofs, in the order of
        the fronts, among all dofs that are not on the interface. ``subdomains`` is a `Subdomains`, ``interface`` its
        `Interface`."""
        number = np.cumsum(interface.number < 0) - 1
        return [number[subdomains.dofs[k][one.order]] for one in self.subdomains for k in one.members]


def eliminations(space, subdomains, interface):
    """Find equal subdomains and equal interiors. Returns a list with one `Interior` for each different interior.

    ``subdomains`` is a `Subdomains`, ``interface`` its `Interface`. Matrices of the result are in ``space``."""
    every = []
    for members in equal((m.indptr, m.indices, m.data, boundary)
                         for m, boundary in zip(subdomains.matrices, interface.local, strict=True)):
        matrix, boundary = subdomains.matrices[members[0]], interface.local[members[0]]
        mask = np.ones(matrix.shape[0], bool)
        mask[boundary] = False
        A = CSRMatrix.from_scipy(matrix.astype(double(matrix.dtype), copy=False), space)
        every.append(Different(A, np.flatnonzero(mask), boundary, members))
    interiors = [_inside(one) for one in every]
    groups, patterns = [], []
    for group in equal(((A.indptr, A.indices, A.data) for A in interiors), space):
        A, some = interiors[group[0]], [every[k] for k in group]
        patterns.append((A.indptr, A.indices))
        groups.append((A, some))
    like = {k: same[0] for same in equal(patterns, space) for k in same}
    made, result = {}, []
    for k, (A, some) in enumerate(groups):
        if not A.shape[0]:
            none = np.zeros(0, np.int64)
            result.append(Interior(_ordered(some, none), None, none, np.zeros(1, np.int64)))
            continue
        if like[k] not in made:
            made[like[k]] = *_fronts(A, some[0], interface), None
        order, ends, fronts = made[like[k]]
        place = numbers(space, order, A.shape[0])
        A = renumbered(A, place, place, A.shape)
        made[like[k]] = order, ends, fronts or fronts_of(A, ends)
        result.append(Interior(_ordered(some, order), A, *made[like[k]]))
    return result


def _inside(one):
    """Return the interior block A_II of ``one``, a `Different`, as a new CSRMatrix."""
    place = numbers(one.A.space, one.inner, one.A.shape[0])
    return renumbered(one.A, place, place, (one.inner.size,) * 2)


def _fronts(A, one, interface):
    """Return (order, ends) for A, the interior block of the subdomain ``one``, a `Different`."""
    n = A.shape[0]
    if n <= SMALL:
        return np.arange(n), np.array([0, n])
    sides, coupling = _sides(one, interface)
    graph = pattern(A.to_scipy())
    if A.space.name != "cpu":
        return layers(graph, sides, coupling)
    return dissect(graph, [distances(graph, side) for side in ([], *sides)])


def _ordered(some, order):
    """Set ``order`` of each `Different` in the list ``some``, and return the list. ``order`` numbers the interior dofs
    by front."""
    for one in some:
        one.order = one.inner[order]
    return some


def _sides(one, interface):
    """Return (sides, coupling) of the subdomain ``one``, a `Different`, for `layers`: for each face the interior dofs
    that are coupled to it, int arrays; and all couplings, a scipy.sparse.csr_array with a row for each interface dof
    and a column for each interior dof."""
    space, n, k = one.A.space, one.A.shape[0], one.members[0]
    coupling = renumbered(one.A, numbers(space, one.own, n), numbers(space, one.inner, n),
                          (one.own.size, one.inner.size)).to_scipy()
    classes = interface.classes[interface.copies[k]]
    faces = [number for number in np.unique(classes) if interface.kinds[number] == 2]
    of = np.repeat(classes, np.diff(coupling.indptr))
    return [np.unique(coupling.indices[of == number]) for number in faces], coupling
