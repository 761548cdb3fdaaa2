"""Subdomains of a mesh for BDDC: A(ω) = Σ Rᵢᵀ (Kᵢ − ω² Mᵢ + iω Bᵢ ± iω Gᵢ) Rᵢ, integrated over each subdomain's cells.

    problem.solve(300.0, "firewall", method="gmres", precond="bddc")
    parts = helmholtz.subdomains(problem, 300.0, 27)        # for swell.solve, with problem.system(300.0)

"robin" adds iω/Z ∫ p q over the faces between two subdomains to one of them, and subtracts it from the other: the sum
is A(ω). This is FETI-H's regularisation (Farhat, Macedo and Lesoinne 2000): a subdomain with terms of one sign has no
resonance of its own. So subdomains get one of two colours, and faces between equal colours get no term. "neumann" adds
nothing.

The terms do not reach the interiors, which BDDC eliminates with Dirichlet conditions. An interior has no resonance
below c √(Σ 1/4Lᵢ²) for a box with the sides Lᵢ, 0.87 wavelengths for a cube. `CELLS` keeps subdomains smaller than that
up to the frequency that the mesh resolves.

Differs from the textbook: the faces' medium is the one of the lower numbered subdomain, so that the terms cancel where
two media meet.
"""
from __future__ import annotations

import math
import warnings

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import real
from swell.pde.helmholtz.frequencies import checked
from swell.preconditioners.bddc.subdomains import Subdomains, SubdomainSource

CELLS = 7               # cells along a subdomain's edge: 0.7 wavelengths at 10 nodes a wavelength
TRANSMISSIONS = ("robin", "neumann")


class MeshSubdomains(SubdomainSource):
    """The subdomains of a Helmholtz problem at any frequency. The integrals are computed once.

    Parameters
    ----------
    problem : Helmholtz
    free : int array
        The dof of each row of A.
    domains : int or int array, shape (cells,), optional
        Number of subdomains, cut by recursive bisection of the cells' centres; None: `CELLS` cells along an edge. Or
        the subdomain of each cell.
    transmission : {"neumann", "robin"}
    system : System, optional
        Has the present angular frequency, for `present`.
    """

    def __init__(self, problem, free, domains=None, transmission="neumann", system=None):
        if transmission not in TRANSMISSIONS:
            raise InputError(f"transmission={transmission!r}: expected 'robin' or 'neumann'")
        if problem.varying:
            raise InputError("subdomains: the problem has a perfectly matched layer, or a wall or medium with a Table, "
                             "whose parts of A(ω) are not split over subdomains: expected constant media and walls; "
                             "take method='direct', or another preconditioner")
        self.problem, self.system, self.free = problem, system, free
        self._number = np.full(problem.space.n, -1)
        self._number[free] = np.arange(len(free))
        self.owner = owners(problem.mesh, domains)
        self._parts = self._integrals(transmission)
        self._whole = [A[free][:, free] for A in problem.matrices[:2]]

    def __len__(self):
        return len(self._parts)

    def present(self):
        return self.at(self.system.omega)

    def at(self, omega) -> Subdomains:
        """Return the Subdomains for an angular frequency in 1/s."""
        return FrequencySubdomains([(K - omega ** 2 * M + 1j * omega * B, rows) for K, M, B, rows in self._parts],
                                   *self._whole)

    def _integrals(self, transmission):
        """Return a list of (K, M, B with the terms between subdomains, rows of A), one for each subdomain."""
        problem, space = self.problem, self.problem.space
        count, (stiffness, mass) = int(self.owner.max()) + 1, problem.coefficients
        walls = [(self.owner[problem.mesh.fem.f2t[0, facets]], *space.facet_masses(facets), admittance)
                 for facets, admittance in problem.admittances()]
        if transmission == "robin":
            walls += self._between()
        parts = []
        for k in range(count):
            cells = np.flatnonzero(self.owner == k)
            K, M = space.elements(cells, stiffness, mass)
            rows = np.unique(self._number[space.cell_dofs[cells]])
            rows = rows[rows >= 0]
            here = [(of == k, dofs, local, factor) for of, dofs, local, factor in walls]
            B = [(dofs[at], factor[at, None, None] * local[at]) for at, dofs, local, factor in here if at.any()]
            parts.append((*(self._summed([(space.cell_dofs[cells], one)], rows) for one in (K, M)),
                          self._summed(B, rows), rows))
        return parts

    def _between(self):
        """Return a list of (subdomain of each face, dofs, ∫ p q, ± 1/Z): the terms between subdomains, both sides."""
        fem = self.problem.mesh.fem
        faces = np.flatnonzero(fem.f2t[1] >= 0)
        first, second = self.owner[fem.f2t[0, faces]], self.owner[fem.f2t[1, faces]]
        colour = two_colours(first, second, int(self.owner.max()) + 1)
        cut = colour[first] != colour[second]
        faces, first, second = faces[cut], first[cut], second[cut]
        if not faces.size:
            return []
        low = np.where(first < second, 0, 1)
        medium = np.array(self.problem.medium_of)[fem.f2t[low, faces]]
        admittance = 1 / np.array([m.impedance for m in self.problem.media])[medium]
        dofs, local = self.problem.space.facet_masses(faces)
        return [(of, dofs, local, np.where(colour[of] == 0, 1, -1) * admittance) for of in (first, second)]

    def _summed(self, terms, rows):
        """Sum element matrices into a new sparse matrix over ``rows`` of A. ``terms``: a list of (dofs, shape (k,
        functions); matrices, shape (k, functions, functions))."""
        import scipy.sparse as sp
        data, at = [np.zeros(0)], [np.zeros((2, 0), np.int64)]
        for dofs, local in terms:
            i, j = (np.broadcast_to(number, local.shape)[local != 0] for number in
                    (self._number[dofs][:, :, None], self._number[dofs][:, None, :]))
            there = (i >= 0) & (j >= 0)
            data.append(local[local != 0][there])
            at.append(np.searchsorted(rows, np.stack((i[there], j[there]))))
        return sp.coo_array((np.concatenate(data), np.concatenate(at, axis=1)), (rows.size,) * 2).tocsr()


def subdomains(problem, frequency, domains=None, transmission="neumann") -> Subdomains:
    """Return the subdomains of a problem at one frequency, for ``swell.BDDC(subdomains=...)``.

    Parameters
    ----------
    problem : Helmholtz
    frequency : float
        Hz.
    domains : int or int array, shape (cells,), optional
        Number of subdomains; 0: about 7 cells along an edge of each. Or the subdomain of each cell.
    transmission : {"neumann", "robin"}
        "robin": terms ± iω/Z on the faces between subdomains, which cancel in A.

    Returns
    -------
    Subdomains
        Their matrices add up to A of ``problem.system(frequency)``.

    Examples
    --------
    >>> import swell
    >>> from swell.pde import helmholtz
    >>> room = helmholtz.Helmholtz(helmholtz.box((8, 8, 8)), helmholtz.Medium(damping=0.02))
    >>> A, b, dofs = room.system(100.0, "xmin")
    >>> parts = helmholtz.subdomains(room, 100.0, 8)
    >>> bool(abs(parts.assemble() - A).max() < 1e-12 * abs(A).max())
    True
    """
    hertz = checked(frequency)
    if len(hertz) != 1:
        raise InputError(f"frequency={frequency!r}: expected one frequency in Hz, and {len(hertz)} came")
    free = np.flatnonzero(~problem._given[0])
    return MeshSubdomains(problem, free, domains, transmission).at(2 * math.pi * float(hertz[0]))


class FrequencySubdomains(Subdomains):
    """Subdomains at one frequency, which know the frequencies of their interiors' resonances.

    Parameters
    ----------
    parts : list of (matrix, rows)
    K, M : sparse matrices
        Stiffness and mass of the free dofs.
    """

    def __init__(self, parts, K, M):
        super().__init__(parts)
        self._K, self._M = K, M

    def resonance(self, k, dofs, vector):
        x = np.zeros(self.n, complex)
        x[self.dofs[k][dofs]] = vector
        ratio = (np.vdot(x, self._K @ x) / np.vdot(x, self._M @ x)).real
        return f", a mode of the closed interior at {math.sqrt(max(ratio, 0.0)) / (2 * math.pi):.4g} Hz"


def owners(mesh, domains):
    """Return the subdomain of each cell, an int array; ``domains`` as in `MeshSubdomains`. Raises InputError for
    anything else."""
    cells = len(mesh.cells)
    if isinstance(domains, (int, np.integer)) and domains == 0 and not isinstance(domains, bool):
        warnings.warn("domains=0 is now domains=None, as everywhere: swell chooses", FutureWarning, stacklevel=3)
        domains = None
    if domains is None or isinstance(domains, (int, np.integer)) and not isinstance(domains, bool):
        count = max(2, round(cells / CELLS ** mesh.dim)) if domains is None else int(domains)
        if not 1 <= count <= cells:
            raise InputError(f"domains={domains}: expected a number from 1 to {cells}, the cells; or None")
        owner = np.zeros(cells, np.int64)
        _bisect(mesh.centres, np.arange(cells), count, 0, owner)
        return owner
    owner = np.asarray(domains)
    if owner.shape != (cells,) or owner.dtype.kind not in "iu" or owner.min() < 0:
        raise InputError(f"domains has shape {owner.shape} and type {owner.dtype}: expected a number of subdomains, or "
                         f"the subdomain of each of {cells} cells")
    return np.unique(owner, return_inverse=True)[1]


def _bisect(points, which, count, first, owner):
    """Number ``count`` subdomains from ``first`` on: write into ``owner`` for the cells ``which``. The longest side of
    their box is cut, so that the parts have cells in proportion to their subdomains."""
    if count == 1:
        owner[which] = first
        return
    here = points[which]
    order = which[np.argsort(here[:, np.argmax(np.ptp(here, axis=0))], kind="stable")]
    half = count // 2
    at = round(len(which) * half / count)
    _bisect(points, order[:at], half, first, owner)
    _bisect(points, order[at:], count - half, first + half, owner)


def two_colours(first, second, count):
    """Return 0 or 1 for each of ``count`` subdomains, an int array, so that most faces are between unlike colours.
    ``first``, ``second``: the two subdomains of each face."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import breadth_first_order
    other = first != second
    links = sp.coo_array((np.ones(np.count_nonzero(other)), (first[other], second[other])), (count, count)).tocsr()
    links = links + links.T
    colour = np.full(count, -1)
    for seed in range(count):
        if colour[seed] >= 0:
            continue
        for k in breadth_first_order(links, seed, return_predecessors=False):
            near, weight = (part[links.indptr[k]:links.indptr[k + 1]] for part in (links.indices, links.data))
            ones = weight[colour[near] == 1].sum() - weight[colour[near] == 0].sum()
            colour[k] = 0 if ones >= 0 else 1
    return colour


def plane_waves(points, wavenumber, directions=3):
    """Return plane waves as near null vectors for BDDC: 1, and cos(k d·x), sin(k d·x) for several directions d.

    Parameters
    ----------
    points : array, shape (n, dim)
        The positions of the rows of A, such as ``problem.space.points``.
    wavenumber : float
        k = ω/c, 1/m.
    directions : int
        3: along the axes; in space 7: also along the diagonals of a cube; 13: also along the diagonals of its faces.
        In the plane any number, equally spaced over half a turn.

    Returns
    -------
    array, shape (n, 1 + 2 directions)
        Real, since a wave and its reverse span a cosine and a sine.

    Examples
    --------
    >>> import numpy as np
    >>> plane_waves(np.zeros((5, 3)), 2.0, 7).shape
    (5, 15)
    """
    points = np.asarray(points, float)
    if not real(wavenumber) or not 0 < wavenumber < np.inf:
        raise InputError(f"wavenumber={wavenumber!r}: expected a positive number, 2π over the wavelength")
    if points.ndim != 2 or points.shape[1] not in (2, 3):
        raise InputError(f"points have shape {points.shape}: expected (n, 2) or (n, 3)")
    if points.shape[1] == 2:
        if not isinstance(directions, (int, np.integer)) or not 1 <= directions <= 15:
            raise InputError(f"directions={directions!r}: expected 1 to 15 in the plane")
        turn = np.pi * np.arange(directions) / directions
        d = np.stack((np.cos(turn), np.sin(turn)))
    else:
        if directions not in (3, 7, 13):
            raise InputError(f"directions={directions!r}: expected 3, 7 or 13 in space")
        diagonal = [(1, 1, 1), (1, 1, -1), (1, -1, 1), (-1, 1, 1)]
        flat = [(1, 1, 0), (1, -1, 0), (1, 0, 1), (1, 0, -1), (0, 1, 1), (0, 1, -1)]
        d = np.array([(1, 0, 0), (0, 1, 0), (0, 0, 1), *diagonal, *flat][:directions], float).T
        d /= np.linalg.norm(d, axis=0)
    phase = wavenumber * (points - points.mean(axis=0)) @ d
    return np.concatenate((np.ones((len(points), 1)), np.cos(phase), np.sin(phase)), axis=1)
