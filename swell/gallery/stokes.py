"""Slow viscous flow: Stokes' and Oseen's equations in a lid-driven cavity, on a staggered grid (MAC).

Harlow and Welch, Numerical calculation of time-dependent viscous incompressible flow, 1965. A velocity component lies
on the faces that are normal to it, the pressure in the cells. The pressure is stable without further terms.
"""
import math

import numpy as np
import scipy.sparse as sp

from swell.core.errors import InputError
from swell.gallery.stencil import checked_shape, differences, kronecker


def stokes(shape, viscosity=1.0, wind=0.0):
    """Flow in a box whose lid, the far end of the last axis, moves along the first axis with speed 1.

    −∇·(ν ∇u) + (w·∇) u + ∇p = 0 and −∇·u = 0 in the unit square or cube, integrated over the cells. All velocities
    are given on the boundary. So p is determined up to a constant, and A is singular.

    Parameters
    ----------
    shape : tuple of 2 or 3 int
        Cells along each axis, at least 2.
    viscosity : float or array of this shape
        ν, one value for all cells or one a cell; positive.
    wind : float
        Greatest speed of w, a given flow that circles in the plane of the first and the last axis; its convection is
        upwind. 0: Stokes' equations, with a symmetric A.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (n, n)
        ``[[F, Bᵀ], [B, 0]]``. F has one block a velocity component.
    b : numpy.ndarray, shape (n,)
    fields : dict of slice
        The rows of the velocities, "u", component after component, and of the pressures, "p".
    mass : scipy.sparse.csr_matrix
        The volume of each cell divided by its ν: the mass matrix of the pressure, which approximates B F⁻¹ Bᵀ.

    Examples
    --------
    >>> from swell import gallery
    >>> A, b, fields, mass = gallery.stokes((8, 8))
    >>> A.shape, fields["p"]
    ((176, 176), slice(112, 176, None))
    """
    shape = checked_shape(shape)
    if len(shape) not in (2, 3) or min(shape) < 2:
        raise InputError(f"shape={shape}: expected two or three axes with at least 2 cells each.")
    nu = np.asarray(viscosity, float)
    if nu.shape not in ((), shape) or not (np.isfinite(nu) & (nu > 0)).all():
        raise InputError(f"viscosity has shape {nu.shape}: expected a positive number, or {shape} of them.")
    if not np.isfinite(wind) or wind < 0:
        raise InputError(f"wind={wind}: expected a speed of at least 0.")
    nu, axes = np.broadcast_to(nu, shape), range(len(shape))
    h = [1 / size for size in shape]
    volume = math.prod(h)
    velocities, gradients, sources = [], [], []
    for component in axes:
        F, lid = _friction(shape, h, nu, component)
        velocities.append(F + _convection(shape, h, wind, component) if wind else F)
        sources.append(lid if component == 0 else 0 * lid)
        gradients.append(_along(shape, component, differences(shape[component]).T) * (volume / h[component]))
    gradient = sp.vstack(gradients)
    A = sp.csr_matrix(sp.bmat([[sp.block_diag(velocities), gradient], [gradient.T, None]]))
    A.sort_indices()
    u, n = gradient.shape[0], A.shape[0]
    b = np.concatenate([*sources, np.zeros(n - u)])
    return A, b, {"u": slice(0, u), "p": slice(u, n)}, sp.csr_matrix(sp.diags_array(volume / nu.ravel()))


def _along(shape, axis, matrix):
    """``matrix`` on one axis of a grid, the identity on the others."""
    return kronecker(matrix if k == axis else sp.eye_array(size) for k, size in enumerate(shape))


def _means(values, axis):
    """The means of neighbours along an axis."""
    moved = np.moveaxis(values, axis, 0)
    return np.moveaxis((moved[1:] + moved[:-1]) / 2, 0, axis)


def _friction(shape, h, nu, component):
    """(−∇·(ν ∇) for one component of the velocity; its right-hand side for a lid that moves along the component)."""
    volume, faces = math.prod(h), tuple(size - (k == component) for k, size in enumerate(shape))
    F, lid = 0, np.zeros(math.prod(faces))
    for axis, size in enumerate(shape):
        weight = volume / h[axis] ** 2
        if axis == component:                    # differences of faces lie in cells
            D, at = _along(faces, axis, differences(size)), nu
        else:                                    # and on edges, where up to four cells meet
            D = _along(faces, axis, sp.diags_array([np.ones(size), -np.ones(size)], offsets=[0, -1],
                                                   shape=(size + 1, size)))
            around = np.pad(nu, [(1, 1) if k == axis else (0, 0) for k in range(nu.ndim)], mode="edge")
            at = _means(_means(around, axis), component)
            walls = [slice(None)] * nu.ndim
            walls[axis] = [0, -1]
            at[tuple(walls)] *= 2                # half a cell away
        F = F + D.T @ sp.diags_array(weight * at.ravel()) @ D
        if axis == len(shape) - 1 and axis != component:
            moving = np.zeros(at.shape)
            moving[..., -1] = at[..., -1]
            lid -= weight * (D.T @ moving.ravel())
    return F, lid


def _convection(shape, h, wind, component):
    """(w·∇) for one component, upwind; w = wind (sin πx cos πz, −cos πx sin πz), x and z the first and last axis."""
    faces = tuple(size - (k == component) for k, size in enumerate(shape))
    points = np.meshgrid(*((np.arange(size) + (1 if k == component else 0.5)) * h[k] for k, size in enumerate(faces)),
                         indexing="ij", sparse=True)
    x, z, volume, N = points[0] * np.pi, points[-1] * np.pi, math.prod(h), 0
    for axis, speed in ((0, np.sin(x) * np.cos(z)), (len(shape) - 1, -np.cos(x) * np.sin(z))):
        size = faces[axis]
        w = volume * wind / h[axis] * np.broadcast_to(speed, faces).ravel()
        before, after = (_along(faces, axis, sp.diags_array([sign * np.ones(size), -sign * np.ones(size - 1)],
                                                            offsets=[0, -sign])) for sign in (1, -1))
        N = N + sp.diags_array(np.maximum(w, 0)) @ before + sp.diags_array(np.minimum(w, 0)) @ after
    return N
