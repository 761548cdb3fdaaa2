"""Finite elements of degree 1 and 2 by scikit-fem: dofs, integrals over cells and facets, values at points.

Simplices are integrated exactly, quadrilaterals and hexahedra with degree + 1 Gauss points an axis. Cells are processed
in chunks, so that the tables at the quadrature points stay small.
"""
from functools import cached_property

import numpy as np

from swell.core.errors import InputError
from swell.pde.helmholtz.meshes import require_skfem

ELEMENTS = {("triangle", 1): "ElementTriP1", ("triangle", 2): "ElementTriP2", ("quad", 1): "ElementQuad1",
            ("quad", 2): "ElementQuad2", ("tetra", 1): "ElementTetP1", ("tetra", 2): "ElementTetP2",
            ("hexahedron", 1): "ElementHex1", ("hexahedron", 2): "ElementHex2"}
CHUNK = 16_384          # cells integrated at once
ABSENT = 1e-9           # a basis function below it on a whole facet counts as zero there


class Discretisation:
    """The finite element space of a mesh.

    Attributes
    ----------
    n : int
        Number of dofs. The first ones are the mesh's points, in its order.
    cell_dofs : array, shape (cells, functions)
        The dofs of each cell.
    """

    def __init__(self, mesh, degree):
        skfem = require_skfem()
        if (mesh.shape, degree) not in ELEMENTS:
            raise InputError(f"degree={degree!r}: expected 1 or 2")
        self.mesh, self.degree = mesh, degree
        self.element = getattr(skfem, ELEMENTS[mesh.shape, degree])()
        self.mapping = mesh.fem.mapping()
        self.order = 2 * degree if mesh.shape in ("triangle", "tetra") else 2 * degree + 1
        from skfem.assembly.dofs import Dofs
        self._dofs = Dofs(mesh.fem, self.element)
        self.n = self._dofs.N
        self.cell_dofs = self._dofs.element_dofs.T

    @cached_property
    def points(self):
        """The position of each dof, shape (n, dim)."""
        positions = np.empty((self.n, self.mesh.dim))
        local = self.element.doflocs.T
        step = CHUNK
        for first in range(0, len(self.cell_dofs), step):
            cells = np.arange(first, min(first + step, len(self.cell_dofs)))
            positions[self.cell_dofs[cells]] = np.moveaxis(self.mapping.F(local, tind=cells), 0, -1)
        return positions

    def volume(self, stiffness, mass, cells=None):
        """Assemble K and M as SciPy CSR matrices with one pattern, symmetric to the bit.

        Parameters
        ----------
        stiffness, mass : arrays, shape (cells,)
            Coefficients of ∫ ∇u·∇v (real) and ∫ u v (real or complex).
        cells : int array, optional
            The cells to integrate over; all by default.
        """
        cells = np.arange(len(self.cell_dofs)) if cells is None else cells
        K, M = self.elements(cells, stiffness, mass)
        return self._summed(K, self.cell_dofs[cells]), self._summed(M, self.cell_dofs[cells])

    def elements(self, wanted, stiffness, mass, stretch=None):
        """Return the element matrices (K, M) of the cells ``wanted``, each of shape (cells, functions, functions).

        ``stiffness``, ``mass``: the coefficients of all cells, as in ``volume``. ``stretch(x, cells)`` returns the
        complex factor of each coordinate at points x, shape (dim, k, points), of the k cells wanted[cells]; pml.py has
        the weak form."""
        import skfem
        nodes = self.cell_dofs.shape[1]
        K = np.empty((len(wanted), nodes, nodes), complex if stretch else np.result_type(stiffness.dtype, float))
        M = np.empty(K.shape, complex if stretch else np.result_type(mass.dtype, float))
        for first in range(0, len(K), CHUNK):
            at = slice(first, first + CHUNK)
            cells = wanted[at]
            basis = skfem.CellBasis(self.mesh.fem, self.element, mapping=self.mapping, intorder=self.order,
                                    elements=cells, dofs=self._dofs)
            value = np.stack([np.broadcast_to(np.asarray(f[0]), basis.dx.shape) for f in basis.basis], axis=1)
            grad = np.stack([np.moveaxis(f[0].grad, 0, 1) for f in basis.basis], axis=1)   # (cells, functions, dim, q)
            along, whole = basis.dx[:, None, None], basis.dx[:, None]
            if stretch:
                s = stretch(np.asarray(basis.global_coordinates()), np.arange(len(wanted))[at])
                every = s.prod(axis=0)
                along, whole = along * np.moveaxis(every / s ** 2, 0, 1)[:, None], whole * every[:, None]
            weighted = (grad * along).reshape(*grad.shape[:2], -1)
            K[at] = stiffness[cells, None, None] * (weighted @ grad.reshape(weighted.shape).swapaxes(1, 2))
            M[at] = mass[cells, None, None] * ((value * whole) @ value.swapaxes(1, 2))
        return K, M

    def _summed(self, local, dofs):
        """Sum the matrices ``local`` (k, functions, functions) into one SciPy CSR matrix, symmetric to the bit;
        ``dofs``: (k, functions), their rows and columns."""
        import scipy.sparse as sp
        nodes = dofs.shape[1]
        rows, columns = np.repeat(dofs, nodes, axis=1).ravel(), np.tile(dofs, nodes).ravel()
        A = sp.coo_matrix((local.ravel(), (rows, columns)), shape=(self.n, self.n)).tocsr()
        A.sort_indices()
        other = A.T.tocsr()
        other.sort_indices()
        A.data = 0.5 * (A.data + other.data)                     # the order of summation breaks exact symmetry
        return A

    def _on_facets(self, facets):
        """Return, at the quadrature points of k facets, (dofs (k, functions), values of the functions (k, functions,
        points), weights (k, points), coordinates and outward normals, both (dim, k, points))."""
        import skfem
        basis = skfem.FacetBasis(self.mesh.fem, self.element, mapping=self.mapping, intorder=self.order, facets=facets,
                                 dofs=self._dofs)
        value = np.stack([np.broadcast_to(np.asarray(f[0]), basis.dx.shape) for f in basis.basis], axis=1)
        value = np.where(abs(value).max(axis=2, keepdims=True) > ABSENT, value, 0)
        return (self.cell_dofs[self.mesh.fem.f2t[0, facets]], value, basis.dx, np.asarray(basis.global_coordinates()),
                np.asarray(basis.normals))

    def facets(self, facets, coefficient):
        """Return ∫ coefficient u v over k facets as a SciPy CSR matrix over all dofs, without zeros; coefficient of
        shape (k,)."""
        dofs, local = self.facet_masses(facets)
        B = self._summed(coefficient[:, None, None] * local, dofs)
        B.eliminate_zeros()                      # from basis functions of the cell that vanish on the facet
        return B

    def facet_masses(self, facets):
        """Return (dofs, shape (k, functions); ∫ u v over each of k facets, shape (k, functions, functions)). The
        functions belong to the facet's first cell."""
        dofs, value, weight, *_ = self._on_facets(facets)
        return dofs, (value * weight[:, None]) @ value.swapaxes(1, 2)

    def facet_stiffness(self, facets):
        """Return ∫ ∇u·∇v of the tangential gradients over each facet, shape (k, functions, functions).

        Functions that vanish on the facet have zeros.
        """
        import skfem
        basis = skfem.FacetBasis(self.mesh.fem, self.element, mapping=self.mapping, intorder=self.order, facets=facets,
                                 dofs=self._dofs)
        value = np.stack([np.broadcast_to(np.asarray(f[0]), basis.dx.shape) for f in basis.basis], axis=1)
        grad = np.stack([np.moveaxis(f[0].grad, 0, 1) for f in basis.basis], axis=1)       # (k, functions, dim, q)
        normal = np.moveaxis(np.asarray(basis.normals), 0, 1)[:, None]
        along = grad - (grad * normal).sum(axis=2, keepdims=True) * normal
        along *= (abs(value).max(axis=2) > ABSENT)[:, :, None, None]
        weighted = (along * basis.dx[:, None, None]).reshape(*along.shape[:2], -1)
        return weighted @ along.reshape(weighted.shape).swapaxes(1, 2)

    def load(self, facets, function):
        """Return ∫ g v over facets for every basis function v, shape (n,), complex; ``function(x, normals)`` returns g
        at points x with outward normals, both of shape (k, dim)."""
        dofs, value, weight, places, normals = self._on_facets(facets)
        flat = [np.moveaxis(v, 0, -1).reshape(-1, self.mesh.dim) for v in (places, normals)]
        g = function(*flat).reshape(weight.shape)
        local = (value * (weight * g)[:, None]).sum(axis=2).ravel()
        return np.bincount(dofs.ravel(), local.real, self.n) + 1j * np.bincount(dofs.ravel(), local.imag, self.n)

    def facet_dofs(self, facets):
        """Return the dofs on the given facets, ascending."""
        return np.unique(self._dofs.get_facet_dofs(facets).flatten())

    def at(self, cell, local):
        """Return (dofs of a cell, values of their functions) at the point with the coordinates ``local`` in the
        reference cell."""
        values = [float(np.ravel(self.element.lbasis(local[:, None], k)[0])[0]) for k in range(self.cell_dofs.shape[1])]
        return self.cell_dofs[cell], np.array(values)
