"""Additive Schwarz: M = Σ R̃ᵢᵀ Bᵢ⁻¹ Rᵢ over overlapping subdomains. Dryja and Widlund 1987; Cai and Sarkis 1999.

Rᵢ selects the rows of subdomain i and all rows within ``overlap`` steps in the graph of A + Aᵀ. The preconditioner
``inner`` gives Bᵢ⁻¹, for Bᵢ ≈ Rᵢ A Rᵢᵀ. "restricted": R̃ᵢ selects only the rows that subdomain i owns. This saves a
transfer, and mostly iterations. "additive": R̃ᵢ = Rᵢ, which keeps the symmetry that CG needs. "weighted" keeps it too:
Σ Rᵢᵀ Dᵢ Bᵢ⁻¹ Dᵢ Rᵢ, where Dᵢ is one over the number of subdomains that have the row (Haferssas, Jolivet and Nataf 2015:
SORAS). Without overlap all three are block Jacobi with large blocks.

For waves, ``transmission`` puts a Robin-type condition on the artificial boundaries (transmission.py). Bᵢ then
approximates the subdomain's matrix with absorbing ends instead of the Dirichlet ends of Rᵢ A Rᵢᵀ. With "restricted"
this is ORAS (St-Cyr, Gander and Thomas 2007).

``coarse="nicolaides"`` adds a second level, for symmetric positive definite matrices and many subdomains
(coarse_space.py).

All Rᵢ A Rᵢᵀ form one block-diagonal matrix, whose rows are copies of rows of A. One inner preconditioner is built on it
and applied once, for any number of subdomains, on any device.

An application: gather the copies, apply the inner preconditioner, gather the result (or sum it over copies).
Storage: the copies' matrix and its inner preconditioner. The host finds the subdomains, once for a pattern.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from swell.core.errors import InputError, MissingDependency
from swell.core.operator import Composite
from swell.core.preconditioner import Preconditioner
from swell.core.registry import rank_operator, resolve
from swell.core.settings import Idle, choose_by_none, describe, idle_notes, one_of, positive, without_effect
from swell.formats.csr import CSRMatrix
from swell.orderings.ordering import adjacency
from swell.preconditioners.coarse_space import CoarseSpace
from swell.preconditioners.near_nullspace import check_word
from swell.preconditioners.transmission import CONDITIONS, Interface, RowRobin

ALONE = "with one subdomain"
ROWS = 4096             # rows of a subdomain if ``domains`` is 0


@dataclass(frozen=True)
class Schwarz(Preconditioner):
    """Overlapping subdomains, with or without a second level.

    Attributes
    ----------
    domains : int
        Number of subdomains; None: so that each has about 4096 rows.
    overlap : int or None
        Layers of neighbours added to each subdomain; 0 is block Jacobi. None: 1, or 2 with a transmission condition,
        which with one layer may do worse than "dirichlet".
    kind : {"restricted", "additive", "weighted"}
    partition : {"rows", "graph"}
        "rows": consecutive rows, the same number in each subdomain up to one; "graph": parts of the graph (needs
        pymetis).
    inner : str or settings object
        Preconditioner of the subdomains.
    transmission : {"dirichlet", "robin", "second_order", "two_sided"}
        Condition on the boundaries between subdomains. The last two need the mesh, and "robin" is better with it; the
        front end `swell.pde.helmholtz` provides it.
    interface : Interface or None
        The boundaries between subdomains, from a front end.
    coarse : {"none", "nicolaides"}
        A second level, of the near null vectors of each subdomain, so that iterations hardly grow with the number of
        subdomains: for symmetric positive definite matrices.
    near_nullspace : "constants" or array, shape (n,) or (n, k)
        Vectors of the second level, linearly independent, such as ``swell.rigid_body_modes(points)`` for elasticity.
        "constants": one vector for each unknown of a node, 1 there and 0 elsewhere. Across ranks every rank has all
        rows, or its own.
    """

    domains: int | None = None
    overlap: int | None = None
    kind: str = "restricted"
    partition: str = "rows"
    inner: Any = "ilu0"
    transmission: str = "dirichlet"
    interface: Any = field(default=None, repr=False, compare=False)
    coarse: str = "none"
    near_nullspace: Any = field(default="constants", repr=False, compare=False)

    across_ranks = True
    idle = tuple(Idle(name, ALONE, "it has no neighbours: give domains=2 or more")
                 for name in ("overlap", "kind", "partition", "transmission"))
    problem = "the problems of its inner preconditioner"
    cost = "the inner preconditioner on all copies, and two gathers"

    def __post_init__(self):
        choose_by_none(self, 0, "domains")
        positive(self, "domains")
        if self.overlap is not None:
            positive(self, "overlap", 0)
        for name, known in (("kind", ("restricted", "additive", "weighted")), ("partition", ("rows", "graph")),
                            ("transmission", CONDITIONS), ("coarse", ("none", "nicolaides"))):
            one_of(self, name, known)
        if self.interface is not None and not isinstance(self.interface, Interface):
            raise InputError(f"Schwarz(interface=...) is of type {type(self.interface).__name__}: expected an "
                             "Interface, as swell.pde.helmholtz makes it, or None")
        if self.interface is not None and not self.layers:
            raise InputError(f"Schwarz(transmission={self.transmission!r}, overlap=0): the faces between subdomains "
                             "need dofs that both have: give overlap=1 or more")
        if not self.layers:
            without_effect(self, "with overlap=0, where every row has one copy", "give overlap=1 or more", "kind")
        if self.transmission == "dirichlet":
            without_effect(self, "with transmission='dirichlet'", "name another transmission", "interface")
        check_word(self.near_nullspace, "Schwarz")
        if self.coarse == "none" and not isinstance(self.near_nullspace, str):
            without_effect(self, "with coarse='none'", "give coarse='nicolaides'", "near_nullspace")
        if resolve("precond", self.inner) is None:
            raise InputError(f"Schwarz(inner={self.inner!r}): expected a preconditioner for the subdomains, such as "
                             "'ic0'")

    @property
    def layers(self):
        """Layers of neighbours added to each subdomain: ``overlap``, or its default value."""
        return self.overlap if self.overlap is not None else 1 if self.transmission == "dirichlet" else 2

    @property
    def as_given(self):
        """True with a transmission condition or given near null vectors, here or in ``inner``, which need the system as
        the user gave it, neither scaled nor reordered."""
        return (self.transmission != "dirichlet" or not isinstance(self.near_nullspace, str)
                or resolve("precond", self.inner).as_given)

    def build(self, A):
        if not A.space.ranks.single:
            return rank_operator("schwarz" if self.coarse == "none" else self.coarse)(A, self)
        if self.transmission in CONDITIONS[2:] and self.interface is None:
            raise InputError(f"Schwarz(transmission={self.transmission!r}) needs the faces between subdomains, which a "
                             "matrix alone does not show: solve by swell.pde.helmholtz, or take transmission='robin'")
        if self.coarse == "none":
            return SchwarzOperator(A, self)
        return CoarseSpace(A, SchwarzOperator(A, self), subdomains(A, self), self.near_nullspace, "Schwarz")


class SchwarzOperator(Composite):
    """z = M r for one matrix.

    Attributes
    ----------
    copies : int device array
        For each row of the block-diagonal matrix, the copied row of A.
    domains : int
        Number of subdomains.
    inner : LinearOperator
        B⁻¹ on all copies.
    """

    scratch = ("_given", "_solved")

    def __init__(self, A, settings):
        super().__init__(A.shape, A.dtype, A.space)
        self.settings, xp = settings, A.space.xp
        owner = subdomains(A, settings)
        self.domains = int(owner.max(initial=-1)) + 1
        rows, domain, owned = overlapping(A, owner, settings.layers)
        place = np.empty(A.shape[0], np.int64)
        place[rows[owned]] = np.flatnonzero(owned)
        self.copies, self.place = A.space.from_host(rows), A.space.from_host(place)
        indptr, columns, self._entries, lost = copied_pattern(A, self.copies, A.space.from_host(domain))
        size = self.copies.size
        self._terms = self._transmission(A, rows, domain, owner, indptr, columns, lost)
        self._matrix = CSRMatrix(A.space, indptr, columns, A.space.empty(columns.size, A.dtype), (size, size),
                                 block=A.block_size)
        self._given, self._solved = A.space.empty(size, A.dtype), A.space.empty(size, A.dtype)
        ones = xp.ones(size, A.dtype)
        if settings.kind == "weighted":
            ones /= A.space.count(self.copies, A.shape[0])[self.copies]
        every = xp.arange(size + 1)
        # R and R̃ are matrices: their products allocate nothing, so a CUDA graph can capture them.
        self._gather = CSRMatrix(A.space, every, self.copies, ones, (size, A.shape[0]))
        self._owned = CSRMatrix(A.space, xp.arange(A.shape[0] + 1), self.place, ones[:A.shape[0]], (A.shape[0], size))
        self._restricted = settings.kind == "restricted" and settings.layers > 0
        self._back = self._owned if self._restricted or not settings.layers else self._gather.transpose()
        self.inner = None
        self.update(A)
        self.self_adjoint = False if self._restricted else self.inner.self_adjoint
        self.spd = self.inner.spd and not self._restricted
        self._idle = idle_notes(settings, (ALONE,)) if self.domains < 2 else ()

    def _transmission(self, A, rows, domain, owner, indptr, columns, lost):
        """Return the `Terms` of the transmission condition, or None for "dirichlet".

        ``rows``, ``domain`` and ``owner`` are host arrays as in `Interface.terms`; ``indptr``, ``columns`` and ``lost``
        are results of `copied_pattern`."""
        settings = self.settings
        if settings.transmission == "dirichlet":
            return None
        if settings.interface is None:
            return RowRobin(A, self.copies, lost, indptr, columns)
        host = A.space.to_host
        return settings.interface.terms(settings.transmission, rows, domain, owner, host(indptr), host(columns))

    def update(self, A):
        """Recompute the copies and the inner preconditioner, in place, for new values of A with the same pattern; the
        subdomains and the analysis stay."""
        self._matrix.data[...] = A.data[self._entries]
        if self._terms is not None:
            self._terms.add(A, self._matrix.data)
        self._matrix.discard_adjoint()
        if self.inner is None:
            copies = self.space.to_host(self.copies)
            inner = resolve("precond", self.settings.inner).restricted(A, lambda array: array[copies])
            self.inner = inner.build(self._matrix)
        else:
            self.inner.update(self._matrix)

    def apply(self, x, out, alpha=1, beta=0):
        self._gather.apply(x, self._given)                                     # R x
        self.inner.apply(self._given, self._solved)                            # B⁻¹ R x
        self._back.apply(self._solved, out, alpha, beta)                       # Σ R̃ᵀ B⁻¹ R x

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self._back.adjoint().apply(x, self._given)
        self.inner.apply_adjoint(self._given, self._solved)
        self._gather.adjoint().apply(self._solved, out, alpha, beta)

    @property
    def notes(self):
        """Notes on settings without effect, and the inner preconditioner's notes."""
        return (*self._idle, *self.inner.notes)

    @property
    def nbytes(self):
        return self._matrix.nbytes + self._gather.nbytes + self._back.nbytes + self.inner.nbytes

    def describe(self):
        share = self.copies.size / max(self.shape[0], 1)
        source = "the rows of A" if self.settings.interface is None else "the mesh"
        known = f", its transmission from {source}" if self._terms is not None else ""
        return (f"{describe(self.settings)}{known}, {self.domains} subdomains with {share:.2f} copies a row, each by "
                f"{self.inner.describe()}")


def subdomains(A, settings) -> np.ndarray:
    """Return the subdomain that owns each row, an int host array; the rows of a block have one owner. ``settings`` is a
    `Schwarz`."""
    size = A.block_size
    blocks = A.shape[0] // size
    count = min(settings.domains or -(-A.shape[0] // ROWS), blocks)
    if settings.partition == "rows" or count < 2:
        sizes = np.full(count, blocks // max(count, 1))
        sizes[:blocks - sizes.sum()] += 1        # the first blocks mod count subdomains get one block more
        return np.repeat(np.arange(count), size * sizes)
    try:
        import pymetis
    except ImportError as error:
        raise MissingDependency(f"Schwarz(partition='graph') needs pymetis ({error}): pip install "
                                "'swell[partition]'") from None
    _, part = pymetis.part_graph(count, pymetis.CSRAdjacency(*_block_graph(A)))
    used, owner = np.unique(np.asarray(part), return_inverse=True)             # a part may be empty
    return np.repeat(owner, size)


def _block_graph(A):
    """Return [indptr, neighbours], host arrays: the graph whose vertices are the row blocks of A, in CSR form."""
    return [A.space.to_host(array) for array in adjacency(A.block_graph())]


def overlapping(A, owner, overlap):
    """Extend the subdomains by ``overlap`` layers of neighbouring blocks. Returns host arrays (rows, domain, owned)
    with an entry for each copy of a row, sorted by subdomain, then row.

    The copy belongs to row rows[k] of A and subdomain domain[k]; owned[k] is True if this subdomain owns the row.
    ``owner`` is the result of `subdomains`."""
    import scipy.sparse as sp

    size = A.block_size
    blocks = owner[::size]                       # the owner of each block
    n = blocks.size
    members = sp.csr_array((np.ones(n, np.int32), (blocks, np.arange(n))), shape=(int(blocks.max(initial=-1)) + 1, n))
    if overlap:
        pointers, neighbours = _block_graph(A)
        graph = sp.csr_array((np.ones(neighbours.size, np.int32), neighbours, pointers), shape=(n, n))
        for _ in range(overlap):
            members = members + members @ graph
            members.data[:] = 1
    members.sort_indices()
    rows = (members.indices.astype(np.int64)[:, None] * size + np.arange(size)).reshape(-1)
    domain = np.repeat(np.arange(members.shape[0]), size * np.diff(members.indptr))
    return rows, domain, owner[rows] == domain


def copied_pattern(A, copies, domain):
    """Return device arrays (indptr, columns, entries, lost) of the block-diagonal matrix of the copies, one block for
    each subdomain.

    ``copies`` has the row of A, ``domain`` the subdomain of each copy. A's entry (i, j) appears once in each subdomain
    that has both rows; ``entries`` are its places in A's data. ``lost`` is (copies, places in A's data) of the copied
    rows' entries whose column is not in the subdomain."""
    xp, n = A.space.xp, A.shape[1]
    starts = xp.empty(copies.size + 1, np.int64)
    A.space.prefix_sums(xp.diff(A.indptr)[copies], starts)
    every = xp.arange(int(starts[-1]))  # sync
    of = xp.searchsorted(starts[1:], every, side="right")                      # the copy of each candidate
    entries = A.indptr[copies[of]] + every - starts[of]
    keys = domain * n + copies                                                 # ascending
    wanted = domain[of] * n + A.indices[entries]
    at = xp.minimum(xp.searchsorted(keys, wanted), keys.size - 1)
    there = keys[at] == wanted
    lost = of[~there], entries[~there]
    of, columns, entries = of[there], at[there], entries[there]
    return A.space.row_pointers(of, copies.size), columns, entries, lost
