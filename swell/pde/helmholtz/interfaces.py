"""Transmission conditions on the faces between overlapping subdomains of a mesh, for their Schwarz matrices.

A set of dofs defines a subdomain: the cells whose dofs all belong to the set (dofs of given pressure belong to every
set). A cell with only some dofs in the set is cut. The subdomain's matrix starts as rows and columns of A. The
contributions of cut cells are subtracted, and the weak form of a condition on Γ is added:

    1/ρ ∫_Γ (∂p/∂n + S p) q = 0        with S by the condition (swell.preconditioners.transmission)

Γ are the faces between the subdomain's cells and others. "robin" adds iω ∫ p q/(ρc). The other conditions add ∫ p q/ρ
and ∫ ∇_τp·∇_τq/ρ with coefficients that depend on k, h and H: k uses the mean speed of sound at all these faces, h is
the mean edge length divided by the degree, H the mean width of a subdomain. The integrals are computed once; each
frequency combines them.
"""
from __future__ import annotations

import numpy as np

from swell.preconditioners.transmission import Interface, Terms, optimised


class Faces(Interface):
    """The `Interface` of a Helmholtz problem: the faces between subdomains of its mesh.

    Parameters
    ----------
    problem : Helmholtz
    free : int array
        The dof of each row of A.
    system : System
        The system that A belongs to; it knows the present frequency.
    """

    def __init__(self, problem, free, system):
        self.problem, self.system, self.free = problem, system, free

    def terms(self, condition, rows, domain, owner, indptr, columns):
        return FaceTerms(self, condition, Copies(self, rows, domain, owner, indptr, columns))


class Copies:
    """The subdomains' cut cells and faces, and the positions of their dofs in the matrix of the copies.

    A copy is a dof in one subdomain; dofs in the overlap have several copies.

    Attributes
    ----------
    cut : sparse matrix, cells × subdomains
        1 for cells that have some, but not all, of their free dofs in the subdomain.
    faces, of, side : int arrays
        For each face between subdomains: its facet, the subdomain, and which of the facet's two cells (0 or 1) is in
        that subdomain.
    first : bool array
        True if the subdomain's number is lower than the number of the subdomain on the other side.
    """

    def __init__(self, faces, rows, domain, owner, indptr, columns):
        import scipy.sparse as sp
        space, mesh = faces.problem.space, faces.problem.mesh.fem
        self.cell_dofs, n, count = space.cell_dofs, len(faces.free), int(owner.max()) + 1
        self.number = np.full(space.n, -1)                       # each dof's index among the free dofs, or -1
        self.number[faces.free] = np.arange(n)
        self._n, self._keys = n, domain * n + rows
        copy = np.repeat(np.arange(len(rows), dtype=np.int64), np.diff(indptr))
        self.size, self.count = len(columns), count
        self._entries = copy * len(rows) + columns

        dofs = self.number[self.cell_dofs]
        cell, k = np.nonzero(dofs >= 0)
        has = sp.csr_array((np.ones(len(cell), np.int32), (cell, dofs[cell, k])), (len(dofs), n))
        member = sp.csr_array((np.ones(len(rows), np.int32), (rows, domain)), (n, count))
        shared = (has @ member).tocoo()
        cell, of = shared.coords
        inside = shared.data == has.sum(axis=1)[cell]
        whole = sp.csr_array((np.ones(inside.sum(), np.int32), (cell[inside], of[inside])), shared.shape)
        self.cut = sp.csr_array((np.ones((~inside).sum(), np.int32), (cell[~inside], of[~inside])), shared.shape)
        between = np.flatnonzero(mesh.f2t[1] >= 0)
        a, b = mesh.f2t[:, between]
        sides = (whole[a] + 2 * whole[b]).tocoo()
        one = sides.data < 3
        k, self.of = (c[one] for c in sides.coords)
        self.faces, self.side = between[k], sides.data[one] - 1
        outside = dofs[mesh.f2t[1 - self.side, self.faces]]
        theirs = np.where(outside >= 0, owner[outside], -1)
        away = (outside >= 0) & ~self._there(self.of[:, None], outside)[1]
        self.first = self.of < theirs[np.arange(len(theirs)), away.argmax(axis=1)]

    def _there(self, domain, number):
        """Return (indices of copies, mask of those that exist), for the free dofs ``number`` (−1: not free) in the
        subdomains ``domain``; an index counts only where the mask is True."""
        wanted = domain * self._n + number
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return at, (self._keys[at] == wanted) & (number >= 0)

    def assembled(self, of, dofs, local):
        """Sum the matrices ``local`` (k, functions, functions) into the entries of the matrix of the copies; return
        them, shape (size,). Matrix i belongs to subdomain of[i] and to dofs[i]; dofs without a copy there are left
        out."""
        copy, there = self._there(of[:, None], self.number[dofs])
        pair, i, j = np.nonzero(there[:, :, None] & there[:, None, :] & (local != 0))
        keys = copy[pair, i] * len(self._keys) + copy[pair, j]
        at, values = np.searchsorted(self._entries, keys), local[pair, i, j]
        total = np.bincount(at, values.real, self.size)
        return total + 1j * np.bincount(at, values.imag, self.size) if np.iscomplexobj(values) else total


class FaceTerms(Terms):
    """The terms that a condition adds to the entries of the copies' matrix.

    Attributes
    ----------
    places : int array of the space
        Indices of the entries that change.
    """

    def __init__(self, faces, condition, copies):
        self.system, self.condition = faces.system, condition
        problem, space = faces.problem, faces.problem.space
        parts = {"K": np.zeros(copies.size), "M": np.zeros(copies.size), "B": np.zeros(copies.size)}
        cell, of = copies.cut.tocoo().coords
        cells, at = np.unique(cell, return_inverse=True)
        if len(cells):
            K, M = space.elements(cells, *problem.coefficients)
            parts["K"], parts["M"] = (copies.assembled(of, space.cell_dofs[cell], part[at]) for part in (K, M))
        for facets, admittance in problem.admittances():
            k, at = copies.cut[problem.mesh.fem.f2t[0, facets]].tocoo().coords
            dofs, local = space.facet_masses(facets)
            parts["B"] = parts["B"] + copies.assembled(at, dofs[k], (admittance[:, None, None] * local)[k])
        medium = np.array(problem.medium_of)[problem.mesh.fem.f2t[copies.side, copies.faces]]
        density = np.array([m.density for m in problem.media])[medium]
        if len(copies.faces):
            self._faces(parts, copies, space, condition, 1 / density,
                        1 / np.array([m.impedance for m in problem.media])[medium])
        speed = np.array([m.speed for m in problem.media])
        self._speed = speed[medium].mean() if len(medium) else speed.mean()
        self._h = problem.mesh.mean_edges.mean() / space.degree
        self._H = self._h * (len(copies._keys) / copies.count) ** (1 / problem.mesh.dim)
        device, used = self.system.space, np.flatnonzero(np.any([part != 0 for part in parts.values()], axis=0))
        self.places = device.from_host(used)
        self._parts = {name: device.from_host(part[used].astype(self.system.dtype)) for name, part in parts.items()}

    @staticmethod
    def _faces(parts, copies, space, condition, inverse_density, admittance):
        """Add arrays of the face integrals to the dict ``parts``, under the names of their factors in ``coefficients``.
        ``condition``: the name of the transmission condition; ``inverse_density``, ``admittance``: 1/ρ and 1/Z at each
        face; ``space``: a Discretisation."""
        facets, at = np.unique(copies.faces, return_inverse=True)
        dofs, local = space.facet_masses(facets)
        weight = (admittance if condition == "robin" else inverse_density)[:, None, None]
        mass = weight * local[at]
        if condition == "two_sided":
            for name, chosen in (("alpha", copies.first), ("beta", ~copies.first)):
                parts[name] = copies.assembled(copies.of[chosen], dofs[at][chosen], mass[chosen])
            return
        parts["mass"] = copies.assembled(copies.of, dofs[at], mass)
        if condition == "second_order":
            parts["along"] = copies.assembled(copies.of, dofs[at], weight * space.facet_stiffness(facets)[at])

    def coefficients(self, omega) -> dict:
        """Return the factor of each part at the angular frequency ``omega`` (1/s), by the part's name."""
        k = omega / self._speed
        factors = {"K": -1.0, "M": omega ** 2, "B": -1j * omega}
        if self.condition == "robin":
            return {**factors, "mass": 1j * omega}
        alpha, beta = optimised(k, self._h, self._H)
        if self.condition == "two_sided":
            return {**factors, "alpha": alpha, "beta": beta}
        return {**factors, "mass": (alpha * beta - k ** 2) / (alpha + beta), "along": 1 / (alpha + beta)}

    def add(self, A, data):
        scalar = data.dtype.type
        factors = self.coefficients(self.system.omega)
        data[self.places] += sum(scalar(factors[name]) * part for name, part in self._parts.items())
