"""Finite-element systems of ``swell bench auto``; see ``swell.bench.families``.

Each function returns a new SciPy CSR matrix of about n rows. Those on triangles, tetrahedra and bricks need scikit-fem
(``pip install '.[pde]'``) and raise MissingDependency without it; they number the unknowns as scikit-fem does.
"""
import numpy as np
import scipy.sparse as sp

from swell.pde.helmholtz.meshes import require_skfem

DEGREES = {"triangles": ("ElementTriP1", "ElementTriP2", "ElementTriP3"),
           "tetrahedra": ("ElementTetP1", "ElementTetP2"), "bricks": ("ElementHex1", "ElementHex2")}
MESHES = {"triangles": "MeshTri", "tetrahedra": "MeshTet", "bricks": "MeshHex"}
AXES = {"triangles": 2, "tetrahedra": 3, "bricks": 3}


def lagrange(n, cells="triangles", degree=1):
    """Return heat conduction in a quarter of a thick-walled pipe, the inner wall held at 0: SPD. ``degree``: 1 to 3 on
    triangles, 1 or 2 on tetrahedra and bricks."""
    fem, axes = require_skfem(), AXES[cells]
    mesh = _box(cells, n / degree**axes, (1,) * axes)
    radius, angle = 1 + mesh.p[0], np.pi / 2 * mesh.p[1]
    mesh = type(mesh)(np.stack([radius * np.cos(angle), radius * np.sin(angle), *mesh.p[2:]]), mesh.t)
    basis = fem.Basis(mesh, getattr(fem, DEGREES[cells][degree - 1])())
    inner = basis.get_dofs(lambda x: np.hypot(x[0], x[1]) < 1 + 1e-6)
    return _without(_laplace().assemble(basis), inner)


def elastic(n, cells="triangles", degree=2, bed=0.0):
    """Return a steel beam's linear elasticity in SI units, one end clamped: SPD, several unknowns a node. ``bed``:
    stiffness of an elastic bed (Winkler) as a share of the largest entry; the sum drops entries of rounding size."""
    from skfem.models.elasticity import lame_parameters, linear_elasticity
    fem, axes = require_skfem(), AXES[cells]
    mesh = _box(cells, n / axes / degree**axes, (4, 1, 1)[:axes])
    basis = fem.Basis(mesh, fem.ElementVector(getattr(fem, DEGREES[cells][degree - 1])()), intorder=2 * degree)
    A = linear_elasticity(*lame_parameters(2.1e11, 0.3)).assemble(basis)
    return _without(A + bed * abs(A).max() * sp.eye_array(A.shape[0]), basis.get_dofs(lambda x: x[0] < 1e-9))


def darcy(n, cells="triangles", spread=1.0, seed=0):
    """Return mixed Darcy flow by Raviart–Thomas elements of degree 0 and constant pressures: symmetric, indefinite,
    zeros on the diagonal. ``spread``: standard deviation of the logarithm of each cell's permeability.

    P. Raviart, J. Thomas, A mixed finite element method for 2nd order elliptic problems, 1977; scikit-fem's example 37.
    """
    fem = require_skfem()
    flux, faces = (fem.ElementTriRT0(), 1.5) if cells == "triangles" else (fem.ElementTetRT0(), 2)
    mesh = _box(cells, n / (1 + faces) / (2 if cells == "triangles" else 6), (1,) * AXES[cells])
    basis = fem.Basis(mesh, flux)
    pressure = basis.with_element(fem.ElementTriP0() if cells == "triangles" else fem.ElementTetP0())
    resistance = np.exp(spread * np.random.default_rng(seed).standard_normal(mesh.t.shape[1]))[:, None]

    @fem.BilinearForm
    def mass(u, v, w):
        return resistance * sum(u[k] * v[k] for k in range(AXES[cells]))

    @fem.BilinearForm
    def divergence(u, q, w):
        return -u.div * q

    B = divergence.assemble(basis, pressure)
    return _csr(sp.block_array([[mass.assemble(basis), B.T], [B, None]]))


def flow(n, reynolds=0.0):
    """Return incompressible flow in a driven cavity by Taylor–Hood elements (quadratic velocities, linear pressures),
    linearised about a vortex (Oseen): zeros on the diagonal; symmetric for ``reynolds`` = 0, Stokes' equations.

    H. Elman, D. Silvester, A. Wathen, Finite Elements and Fast Iterative Solvers, 2014, chapters 3 and 8.
    """
    fem = require_skfem()
    basis, _, B = _taylor_hood(n, intorder=4)

    @fem.BilinearForm
    def momentum(u, v, w):
        wind = np.sin(np.pi * w.x[0]) * np.cos(np.pi * w.x[1]), -np.cos(np.pi * w.x[0]) * np.sin(np.pi * w.x[1])
        return sum(u.grad[i][j] * v.grad[i][j] + reynolds * wind[j] * u.grad[i][j] * v[i]
                   for i in range(2) for j in range(2))

    walls = np.append(basis.get_dofs().all(), basis.N)           # all velocities there, and one pressure
    return _without(sp.block_array([[momentum.assemble(basis), -B.T], [-B, None]]), walls)


def biot(n, step=10.0):
    """Return a time step of Biot's consolidation of clay in SI units, quadratic displacements and linear pressures:
    unsymmetric, entries from 1e-12 to 1e8. ``step``: seconds.

    M. Biot, General theory of three-dimensional consolidation, 1941.
    """
    from skfem.models.elasticity import lame_parameters, linear_elasticity
    fem = require_skfem()
    basis, pressure, B = _taylor_hood(n)

    @fem.BilinearForm
    def storage(p, q, w):                        # of the pore water, and Darcy's flow during a step
        return 1e-10 * p * q + step * 1e-12 * sum(p.grad[k] * q.grad[k] for k in range(2))

    A = sp.block_array([[linear_elasticity(*lame_parameters(1e7, 0.3)).assemble(basis), -B.T],
                        [B, storage.assemble(pressure)]])
    drained = basis.N + pressure.get_dofs(lambda x: x[1] > 1 - 1e-9).all()
    return _without(A, np.append(basis.get_dofs(lambda x: x[1] < 1e-9).all(), drained))


def _taylor_hood(n, intorder=None):
    """Return (basis of quadratic vectors on triangles of a square, basis of linear scalars, matrix of q ∇·u)."""
    fem = require_skfem()
    basis = fem.Basis(_box("triangles", n / 9, (1, 1)), fem.ElementVector(fem.ElementTriP2()), intorder=intorder)
    scalars = basis.with_element(fem.ElementTriP1())
    divergence = fem.BilinearForm(lambda u, q, w: (u.grad[0][0] + u.grad[1][1]) * q)
    return basis, scalars, divergence.assemble(basis, scalars)


def acoustics(n, cells="triangles", degree=2, waves=None):
    """Return Helmholtz's equation in a box of ``waves`` wavelengths, default: ten unknowns a wavelength; one wall
    absorbs (impedance): complex symmetric, indefinite."""
    fem, axes = require_skfem(), AXES[cells]
    mesh = _box(cells, n / degree**axes, (1,) * axes)
    k = 2 * np.pi * (n ** (1 / axes) / 10 if waves is None else waves)
    element = getattr(fem, DEGREES[cells][degree - 1])()
    basis, wall = fem.Basis(mesh, element), mesh.facets_satisfying(lambda x: x[0] > 1 - 1e-9)
    mass = fem.BilinearForm(lambda u, v, w: u * v)
    return _csr(_laplace().assemble(basis) - k**2 * mass.assemble(basis)
                + 1j * k * mass.assemble(fem.FacetBasis(mesh, element, facets=wall)))


def transport(n, peclet=50.0, stabilised=True):
    """Return convection by a vortex and a wind, and little diffusion, linear triangles: unsymmetric. ``peclet``: of a
    cell; ``stabilised``: by streamline diffusion (SUPG, A. Brooks, T. Hughes, 1982), else plain Galerkin."""
    fem, mesh = require_skfem(), _box("triangles", n, (1, 1))
    h = 1 / np.sqrt(n)
    basis = fem.Basis(mesh, fem.ElementTriP1(), intorder=3)

    @fem.BilinearForm
    def form(u, v, w):
        wind = np.sin(np.pi * w.x[1]) + 0.3, 0.5 - np.sin(2 * np.pi * w.x[0])
        along_u, along_v = (wind[0] * f.grad[0] + wind[1] * f.grad[1] for f in (u, v))
        speed = np.hypot(*wind) + 1e-12
        return (h / (2 * peclet) * (u.grad[0] * v.grad[0] + u.grad[1] * v.grad[1]) + along_u * v
                + stabilised * h / (2 * speed) * along_u * along_v)

    return _without(form.assemble(basis), basis.get_dofs())


def stretched(n, aspect=15.0, shuffled=False):
    """Return Poisson's equation by bilinear elements on cells stretched by ``aspect``, as in boundary layers: SPD, with
    positive entries off the diagonal. ``shuffled``: unknowns numbered at random.

    dealii/dealii issue 8729, usnistgov/fipy issue 1041.
    """
    m = int(np.sqrt(n))
    (Kx, Mx), (Ky, My) = _linear(m, aspect / m), _linear(m, 1 / m)
    A = _csr(sp.kron(Kx, My) + sp.kron(Mx, Ky))
    p = np.random.default_rng(0).permutation(A.shape[0]) if shuffled else np.arange(A.shape[0])
    return A[p][:, p]


def hierarchical(n, degree=6, axes=2):
    """Return Poisson's equation by hierarchical elements of a degree on squares or cubes: SPD, with long rows.

    B. Szabó, I. Babuška, Finite Element Analysis, 1991, chapter 6: integrated Legendre polynomials.
    """
    K, M = _integrated_legendre(max(1, round(n ** (1 / axes) / degree)), degree)
    if axes == 2:
        return _csr(sp.kron(K, M) + sp.kron(M, K))
    return _csr(sp.kron(sp.kron(K, M), M) + sp.kron(sp.kron(M, K), M) + sp.kron(sp.kron(M, M), K))


def _integrated_legendre(cells, degree):
    """Return (K, M), stiffness and mass of hierarchical elements on ``cells`` intervals of [0, 1], with 0 at both ends:
    a hat function for each inner node, then degree − 1 bubbles for each interval."""
    h, k = 1 / cells, np.arange(2, degree + 1)
    points, weights = np.polynomial.legendre.leggauss(degree + 1)
    P = np.polynomial.legendre.legvander(points, degree)
    norm = np.sqrt(2 * (2 * k - 1))
    values = np.column_stack([(1 - points) / 2, (1 + points) / 2, (P[:, k] - P[:, k - 2]) / norm])
    slopes = np.column_stack([-np.ones_like(points) / 2, np.ones_like(points) / 2, P[:, k - 1] * (2 * k - 1) / norm])
    dofs = np.column_stack([np.arange(cells), np.arange(1, cells + 1),
                            cells + 1 + np.arange(cells * (degree - 1)).reshape(cells, degree - 1)])
    i, j = np.repeat(dofs, degree + 1, axis=1).ravel(), np.tile(dofs, degree + 1).ravel()
    local = (slopes.T * weights) @ slopes * 2 / h, (values.T * weights) @ values * h / 2
    kept = np.delete(np.arange(dofs.max() + 1), [0, cells])
    return tuple(sp.coo_array((np.tile(np.where(abs(E) < 1e-14 * abs(E).max(), 0, E).ravel(), cells), (i, j))).tocsr()
                 [kept][:, kept] for E in local)


def _linear(m, h):
    """Return (K, M), stiffness and mass of linear elements of length h on m inner nodes."""
    return (sp.diags_array((-1 / h, 2 / h, -1 / h), offsets=(-1, 0, 1), shape=(m, m)),
            sp.diags_array((h / 6, 4 * h / 6, h / 6), offsets=(-1, 0, 1), shape=(m, m)))


def _box(cells, vertices, size):
    """Return scikit-fem's mesh of a box with about this number of ``vertices``. ``size``: along each axis."""
    width = (np.prod(size) / max(vertices, 8)) ** (1 / len(size))
    lines = [np.linspace(0, s, max(3, round(s / width))) for s in size]
    return getattr(require_skfem(), MESHES[cells]).init_tensor(*lines)


def _laplace():
    fem = require_skfem()
    return fem.BilinearForm(lambda u, v, w: sum(u.grad[k] * v.grad[k] for k in range(len(u.grad))))


def _without(A, fixed):
    """Return A without the rows and columns of ``fixed`` unknowns, indices or scikit-fem's DofsView."""
    kept = np.setdiff1d(np.arange(A.shape[0]), fixed.all() if hasattr(fixed, "all") and not isinstance(
        fixed, np.ndarray) else fixed)
    return _csr(A)[kept][:, kept]


def _csr(A):
    A = sp.csr_matrix(A)
    A.eliminate_zeros()
    return A
