"""The faces between overlapping subdomains of a mesh: what a transmission condition adds to the subdomains' matrices.

The subdomain of a set of dofs is the cells all of whose dofs are in it (dofs of given pressure are in every set). Its
matrix has an open end where the rows of A go on: what the cells that are cut bring to its dofs is taken out, and

    1/ρ ∫_Γ (∂p/∂n + S p) q = 0        with S by the condition (swell.preconditioners.transmission)

put in, Γ the faces between its cells and others: iω ∫ p q/(ρc) for "robin"; for the others ∫ p q/ρ and ∫ ∇_τp·∇_τq/ρ
with their coefficients, which take for k the mean speed of sound at all these faces, and for h and H those of the mean
edge and subdomain. All integrals are made once; a frequency combines them.
"""
from __future__ import annotations

import numpy as np

from swell.preconditioners.transmission import Interface, Terms, optimised


class Faces(Interface):
    """The faces between subdomains of a problem.

    Parameters
    ----------
    problem : Helmholtz
    free : int array
        The dofs that the rows of A belong to.
    system : System
        Whose frequency is that of A.
    """

    def __init__(self, problem, free, system):
        self.problem, self.system, self.free = problem, system, free

    def terms(self, condition, rows, domain, owner, indptr, columns):
        return FaceTerms(self, condition, Copies(self, rows, domain, owner, indptr, columns))


class Copies:
    """Subdomains as sets of cells and faces, and places in the matrix of the copies.

    Attributes
    ----------
    cut : sparse matrix, cells × subdomains
        True where a cell has some of its dofs in a subdomain.
    faces, of, side : int arrays
        Facet, subdomain, and which of the facet's two cells is in it, for each face between subdomains.
    first : bool array
        Whether the subdomain's number is the lower of the face's two.
    """

    def __init__(self, faces, rows, domain, owner, indptr, columns):
        import scipy.sparse as sp
        space, mesh = faces.problem.space, faces.problem.mesh.fem
        self.cell_dofs, n, count = space.cell_dofs, len(faces.free), int(owner.max()) + 1
        self.number = np.full(space.n, -1)                       # of a dof among the free ones
        self.number[faces.free] = np.arange(n)
        self._n, self._keys = n, domain * n + rows
        copy = np.repeat(np.arange(len(rows), dtype=np.int64), np.diff(indptr))
        self.size, self.count = len(columns), count
        self._entries = copy * len(rows) + columns

        own = self.number[self.cell_dofs]
        cell, k = np.nonzero(own >= 0)
        has = sp.csr_array((np.ones(len(cell), np.int32), (cell, own[cell, k])), (len(own), n))
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
        outside = own[mesh.f2t[1 - self.side, self.faces]]
        theirs = np.where(outside >= 0, owner[outside], -1)
        away = (outside >= 0) & ~self._there(self.of[:, None], outside)[1]
        self.first = self.of < theirs[np.arange(len(theirs)), away.argmax(axis=1)]

    def _there(self, domain, number):
        """(copies, whether there are any) of free dofs in subdomains."""
        wanted = domain * self._n + number
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return at, (self._keys[at] == wanted) & (number >= 0)

    def assembled(self, of, dofs, local):
        """Σ of local matrices (k, functions, functions) in subdomains ``of``, as values of the copies' entries."""
        copy, there = self._there(of[:, None], self.number[dofs])
        pair, i, j = np.nonzero(there[:, :, None] & there[:, None, :] & (local != 0))
        keys = copy[pair, i] * len(self._keys) + copy[pair, j]
        at, values = np.searchsorted(self._entries, keys), local[pair, i, j]
        total = np.bincount(at, values.real, self.size)
        return total + 1j * np.bincount(at, values.imag, self.size) if np.iscomplexobj(values) else total


class FaceTerms(Terms):
    """What the condition adds, entry by entry of the copies' matrix.

    Attributes
    ----------
    places : int array of the space
        The entries that change.
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
        """The integrals over the faces, by the names of their coefficients."""
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
        """The factors of the parts at an angular frequency."""
        k = omega / self._speed
        found = {"K": -1.0, "M": omega ** 2, "B": -1j * omega}
        if self.condition == "robin":
            return {**found, "mass": 1j * omega}
        alpha, beta = optimised(k, self._h, self._H)
        if self.condition == "two_sided":
            return {**found, "alpha": alpha, "beta": beta}
        return {**found, "mass": (alpha * beta - k ** 2) / (alpha + beta), "along": 1 / (alpha + beta)}

    def add(self, A, data):
        scalar = data.dtype.type
        factors = self.coefficients(self.system.omega)
        data[self.places] += sum(scalar(factors[name]) * part for name, part in self._parts.items())
