"""Gradients of cell values, shape (3, n): least squares, which is exact for linear fields on any mesh, and Gauss.

- ``LeastSquares``: ∇p minimises Σ_f (d·∇p − Δp)²/|d|² over the faces of a cell; one 3 × 3 inverse a cell, made once.
  Both cells of a face use the same d Δp/|d|², without sign.
- ``Gauss``: ∇p = (1/V) Σ_f p_f s_f with p_f interpolated linearly; first order where faces are skewed. Inner faces
  cancel in Σ V ∇p over all cells, and only the boundary remains, as the pressure's force requires.

A boundary face enters least squares with its condition a p_b + b ∂p/∂n = c as (a d + b n)·∇p = c − a p_P. The direction
is d if the value is known, and n if the normal derivative is known. A face without a condition does not enter, which
amounts to linear extrapolation. Cost: one launch; a cell reads 3 words of connectivity, 2 values and 3 components of
the weights for each of its faces. Nothing is stored but the weights (24 bytes a face) and the inverses (48 a cell).
"""
from swell.core.errors import InputError

THIN = 1e-9             # det G over (tr G / 3)³ below which a cell's neighbours do not span space


class LeastSquares:
    """Gradients by weighted least squares, with the boundary conditions of one field."""

    def __init__(self, metrics, boundary):
        xp = metrics.space.xp
        self.metrics, self.boundary = metrics, boundary
        d, outside = metrics.d.copy(), slice(metrics.n_internal, None)
        d[:, outside] -= boundary.share * metrics.tangent                       # dₙ (a d + b n)/(a dₙ + b)
        self.reach = d / (d * d).sum(0)                                         # d/|d|²
        self.reach[:, outside] *= ~boundary.free
        collect = metrics.pattern.collect
        g = {(i, j): collect(self.reach[i] * d[j], 1) for i in range(3) for j in range(i, 3)}
        third = (g[0, 0] + g[1, 1] + g[2, 2]) / 3
        lift = xp.where(_determinant(g) < THIN * third**3, 1e-6 * third, 0)     # the smallest fitting gradient
        for i in range(3):
            g[i, i] = g[i, i] + lift
        self.inverse = xp.stack(list(_inverse(g).values()))                     # rows of the upper triangle
        self._kernels = metrics.space.kernels("swell.pde.fvm", "gradient", metrics.dtype)

    def __call__(self, p, out=None):
        """Return ∇p, shape (3, n), for cell values p, shape (n,); written to ``out`` if given."""
        metrics, boundary, pattern = self.metrics, self.boundary, self.metrics.pattern
        if out is None:
            out = metrics.space.empty((3, metrics.n), metrics.dtype)
        self._kernels.least_squares(pattern.ptr, pattern.faces, metrics.owner, metrics.neighbour, self.reach,
                                    self.inverse, boundary.slope, boundary.rate,
                                    metrics.normal_distance[boundary.faces], pattern.as_values(p), out)
        return metrics.refresh(out)


class Gauss:
    """Gradients by the divergence theorem, with the boundary conditions of one field."""

    def __init__(self, metrics, boundary):
        self.metrics, self.boundary = metrics, boundary

    def __call__(self, p):
        """Return ∇p, shape (3, n), for cell values p, in two passes: on non-orthogonal meshes, boundary values need a
        gradient."""
        return self._pass(p, self._pass(p, None))

    def _pass(self, p, gradient):
        """Return ∇p, shape (3, n), with boundary values computed from ``gradient``, an approximation of ∇p (or
        None)."""
        metrics, xp = self.metrics, self.metrics.space.xp
        at_face = xp.empty(metrics.owner.size, metrics.dtype)
        at_face[:metrics.n_internal] = metrics.interpolate(p)
        at_face[metrics.n_internal:] = self.boundary.values(p, gradient)
        return metrics.refresh(xp.stack([metrics.divergence(at_face * metrics.s[i]) / metrics.volumes
                                         for i in range(3)]))


GRADIENTS = {"least_squares": LeastSquares, "gauss": Gauss}


def gradient(name, metrics, boundary):
    """Make the gradient scheme ``name``, "least_squares" or "gauss", for the conditions of one field. The returned
    object maps cell values p (n,) to ∇p (3, n).

    Raises
    ------
    InputError
        For an unknown name.
    """
    if name not in GRADIENTS:
        raise InputError(f"gradient={name!r}: expected one of {', '.join(GRADIENTS)}")
    return GRADIENTS[name](metrics, boundary)


def _cofactors(g):
    """Return the upper triangle of the adjugate of a symmetric 3 × 3 matrix. Argument and result are dicts from (row,
    column) to entries."""
    return {(0, 0): g[1, 1] * g[2, 2] - g[1, 2] ** 2, (0, 1): g[0, 2] * g[1, 2] - g[0, 1] * g[2, 2],
            (0, 2): g[0, 1] * g[1, 2] - g[0, 2] * g[1, 1], (1, 1): g[0, 0] * g[2, 2] - g[0, 2] ** 2,
            (1, 2): g[0, 1] * g[0, 2] - g[0, 0] * g[1, 2], (2, 2): g[0, 0] * g[1, 1] - g[0, 1] ** 2}


def _determinant(g):
    c = _cofactors(g)
    return g[0, 0] * c[0, 0] + g[0, 1] * c[0, 1] + g[0, 2] * c[0, 2]


def _inverse(g):
    determinant = _determinant(g)
    return {place: cofactor / determinant for place, cofactor in _cofactors(g).items()}
