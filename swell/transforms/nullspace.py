"""Singular systems with a known null space.

Examples: pressure with Neumann conditions everywhere is determined up to a constant. The displacement of a free elastic
body is determined up to its rigid motions.

Z and W are orthonormal bases of the null spaces of A and of Aᴴ; Z = W if A is Hermitian. A x = b has a solution only
if Wᴴ b = 0. If A is not Hermitian and W was not given, W = Z where that fits; else W is computed (``left_null.py``).
The transform checks A Z = 0 and Wᴴ A = 0 at setup, and Wᴴ b = 0 for each b. It returns the solution of
least norm, x − Z Zᴴ x, which is orthogonal to Z. The iterates of a Krylov method stay compatible, so the iterations
cost nothing extra. The transform projects only at the start, at the end, and when a solve is resumed.
"""
from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import qr
from scipy.sparse import coo_matrix

from swell.core.arrays import checked_dtype, host_array
from swell.core.errors import InputError
from swell.core.settings import switch
from swell.core.transform import Transform
from swell.formats.csr import CSRMatrix
from swell.formats.symmetry import hermitian
from swell.transforms.left_null import left_null_vector


@dataclass(frozen=True, eq=False)
class NullSpace:
    """The null space of a singular matrix A, given by a basis.

    Attributes
    ----------
    basis : "constants" or array, shape (n,) or (n, k)
        Vectors that span the null space; they need not be orthogonal.
    left : None, "constants" or array
        A basis of the null space of Aᴴ. None takes ``basis``, which is right for a Hermitian matrix, or computes one,
        with a note in the result.
    project : bool
        Remove the incompatible part of b, with a note in the result, instead of refusing b.
    """

    basis: Any = "constants"
    left: Any = None
    project: bool = False

    def __post_init__(self):
        switch(self, "project")

    def build(self, A):
        """Return a new NullSpaceTransform for a matrix A, which is not changed.

        Raises
        ------
        InputError
            If the shapes do not fit, the vectors are linearly dependent, or A times a vector is not zero.
        """
        return NullSpaceTransform(A, self)


class NullSpaceTransform(Transform):
    """The transform that checks b and projects x; it leaves the matrix unchanged.

    Attributes
    ----------
    basis, left : array of the space, shape (n, k)
        Z and W; the same array where W = Z.
    notes : tuple of str
        A sentence if W was computed.
    """

    def __init__(self, A, settings):
        self.space, self.settings, self.notes = A.space, settings, ()
        self.basis = self._orthonormal(A, settings.basis, "nullspace")
        self.left = self.basis if settings.left is None else self._orthonormal(A, settings.left, "left null space")
        self.update(A)

    def _orthonormal(self, A, source, name):
        """Return an orthonormal basis of the span of ``source``, shape (n, k), in the space of A; on ranks, local rows.

        ``source``: "constants" or vectors, shape (n,) or (n, k). ``name`` is for error messages."""
        n, host = A.shape[0], A.space.to_host
        in_parts = not A.space.ranks.single
        if isinstance(source, str):
            if source != "constants":
                raise InputError(f"{name}={source!r}: expected 'constants', an array of shape (n,) or (n, k), as "
                                 "swell.rigid_body_modes(points) gives for a free body, or NullSpace(...)")
            source = np.ones((A.space.ranks.local_rows(n), 1))
        vectors = host_array(host(source) if hasattr(source, "__cuda_array_interface__") else source, name)
        vectors = vectors[:, None] if vectors.ndim == 1 else vectors
        if in_parts and vectors.shape[0] == A.space.ranks.local_rows(n):
            vectors = A.gather(vectors)
        if vectors.ndim != 2 or vectors.shape[0] != n or not 0 < vectors.shape[1] <= n:
            raise InputError(f"{name} has shape {vectors.shape}: expected ({n},) or ({n}, k) for a matrix of {n} rows")
        checked_dtype(vectors.dtype, name)
        if not np.isfinite(vectors).all():
            raise InputError(f"{name} holds NaN or Inf")
        if vectors.dtype.kind == "c" and A.dtype.kind != "c":
            raise InputError(f"{name} is complex and the system is real: give real vectors")
        norms = np.linalg.norm(vectors, axis=0)
        if not norms.all():
            raise InputError(f"{name}: vector {int(np.argmin(norms))} is zero; leave it out")
        q, r = np.linalg.qr(vectors / norms)
        independent = abs(np.diag(r)) > 1e-10
        if not independent.all():
            raise InputError(f"{name}: vector {int(np.argmin(independent))} depends on those before it; leave it out")
        return A.space.from_host(np.asfortranarray(q[A.rows if in_parts else slice(None)].astype(A.dtype)))

    def update(self, A):
        """Check that A Z = 0 and Wᴴ A = 0, up to rounding, for new values of A; find W anew if it was computed.

        For a Hermitian A the first check is enough; the second would build an adjoint, after which CUDA graphs are
        captured again."""
        size, has_left = A.norm_inf(), self.settings.left is not None
        self._require(self._residual(size, self.basis, A.apply), "A z")
        if not has_left:
            self.left, self.notes = self.basis, ()
            if A.has_entries and hermitian(A):
                return
        residual = self._residual(size, self.left, A.apply_adjoint)
        if not has_left and not residual[0] <= residual[1]:
            computed = self._computed(A)
            if computed is None:
                self._require(residual, "Aᴴ z", "; A is not Hermitian, so the null space of its adjoint is another one,"
                              " and it was not found from A: give it too, NullSpace(basis, left=...), for a small A "
                              "left=scipy.linalg.null_space(A.toarray().conj().T)")
            self.left, residual = computed, self._residual(size, computed, A.apply_adjoint)
            self.notes = ("nullspace: A is not Hermitian; the null space of its adjoint was computed from A",)
        self._require(residual, "Aᴴ z")

    def _computed(self, A):
        """Return an orthonormal basis of the null space of Aᴴ, one vector for each of Z, in the space; None if none is
        found, or if A is distributed or has no entries."""
        if not (A.has_entries and self.space.ranks.single):
            return None
        host = A.to_scipy()
        vectors = [left_null_vector(host, z) for z in self.space.to_host(self.basis).T]
        if any(v is None for v in vectors):
            return None
        q, r = np.linalg.qr(np.stack(vectors, axis=1))
        independent = abs(np.diag(r)).min() > 1e-10
        return self.space.from_host(np.asfortranarray(q.astype(A.dtype))) if independent else None

    def _residual(self, size, basis, multiply):
        """Return (relative, allowed, k): the largest ‖y‖∞ / (‖A‖∞ ‖z‖∞) of y = ``multiply(z, y)`` for the columns z of
        ``basis``, √eps, and the number of that column. ``size``: ‖A‖∞."""
        space, allowed = self.space, float(np.sqrt(np.finfo(basis.dtype).eps))
        y, ratios = space.empty(len(basis), basis.dtype), []
        for k in range(basis.shape[1]):
            z = space.xp.ascontiguousarray(basis[:, k])
            multiply(z, y)
            ratios.append(space.max_on_host(abs(y)) / (size * space.max_on_host(abs(z)) or 1.0))
        k = int(np.argmax(ratios))
        return ratios[k], allowed, k

    def _require(self, residual, what, hint=""):
        """Raise InputError unless ``residual``, of `_residual`, is small. ``what``, ``hint``: texts for the message."""
        relative, allowed, k = residual
        if relative > allowed:
            raise InputError(f"nullspace: vector {k} is not annihilated: ‖{what}‖∞ is {relative:.1e} of ‖A‖∞ ‖z‖∞, "
                             f"expected at most {allowed:.0e}{hint}; for a regular matrix leave nullspace out")

    def regular(self, A, transforms):
        """Return a new regular CSRMatrix for a factorisation: for a compatible b, its solution also solves A x = b.

        k equations follow from the others, where k is the dimension of the left null space. The regular matrix replaces
        them by equations that set k entries of x to zero. QR with column pivoting of the bases chooses the equations
        and the entries on which the bases are best conditioned.

        Parameters
        ----------
        A : CSRMatrix
            The singular matrix after ``transforms``.
        transforms : list of Transform
            The transforms that are applied after this one.
        """
        places = []
        for basis, step in ((self.left, "forward_b"), (self.basis, "forward_x")):
            pivots = qr(self.space.to_host(basis).conj().T, mode="r", pivoting=True)[1]
            places.append([self._place(entry, step, transforms) for entry in pivots[:basis.shape[1]]])
        rows, columns = places
        host = A.to_scipy().tocoo()
        stays = ~np.isin(host.row, rows)
        entries = np.concatenate([host.data[stays], np.full(len(rows), A.norm_inf(), host.data.dtype)])
        where = np.concatenate([host.row[stays], rows]), np.concatenate([host.col[stays], columns])
        return CSRMatrix.from_scipy(coo_matrix((entries, where), shape=host.shape).tocsr(), A.space)

    def _place(self, entry, step, transforms):
        """Return the index to which ``transforms`` move entry number ``entry`` of a vector.

        ``step``: the method that moves it, "forward_b" or "forward_x"."""
        n = len(self.basis)
        moved = self.space.from_host(np.eye(1, n, entry, self.basis.dtype)[0])
        out = self.space.empty(n, self.basis.dtype)
        for transform in transforms:
            getattr(transform, step)(moved, out)
            moved, out = out, moved
        return self.space.find_true(moved != 0)[0]  # sync

    def check(self, b, norm_b, threshold):
        """Check that b is compatible: its part in the left null space is small. If not, project b in place, or refuse.
        Parameters
        ----------
        b : array of the space
        norm_b : float
            ‖b‖₂.
        threshold : float
            The residual norm at which the solve has converged; half of it is allowed here.

        Returns
        -------
        float
            The norm of the part that was removed, relative to ‖b‖; 0 if none was.

        Raises
        ------
        InputError
            If b is incompatible and ``project`` is False; the message says how large the part is.
        """
        part = self._parts(self.left, b)
        size = float(np.linalg.norm(self.space.to_host(part)))  # sync
        if size <= 0.5 * threshold:                              # the rest of the tolerance is for the iteration
            return 0.0
        if not self.settings.project:
            total = self.space.xp.asarray([b.sum()])
            self.space.ranks.allreduce(total)
            setting = self.settings.basis if self.settings.left is None else self.settings.left
            constants = isinstance(setting, str) and not self.notes
            sums = f" (the entries of b sum to {complex(total[0]).real:.3e} instead of 0)" if constants else ""
            raise InputError(f"b is incompatible: the system is singular, and b has a part of {size / norm_b:.2e} ‖b‖ "
                             f"in the null space of its adjoint, which no x can produce{sums}; correct the sources or "
                             "the boundary fluxes, or take it out with NullSpace(..., project=True)")
        b -= self.left @ part
        return size / norm_b

    def describe(self):
        """The null space in a few words, for a printed result."""
        count = self.basis.shape[1]
        return "constants" if isinstance(self.settings.basis, str) else f"{count} vector" + ("s" if count > 1 else "")

    def adjoint(self):
        if self.left is self.basis:
            return self
        made = copy.copy(self)
        made.basis, made.left = self.left, self.basis
        return made

    def matrix(self, A):
        return A

    def forward_b(self, b, out):
        self._project(b, self.left, out)

    def forward_x(self, x, out):
        self.space.copy(x, out)

    def backward_x(self, x, out):
        self._project(x, self.basis, out)

    def _project(self, x, basis, out):
        """out = x − Z Zᴴ x, where the columns of Z = ``basis`` are orthonormal."""
        self.space.copy(x, out)
        out -= basis @ self._parts(basis, x)

    def _parts(self, basis, x):
        """Return Zᴴ x, k numbers, summed over all ranks; Z = ``basis``, shape (n, k)."""
        parts = basis.conj().T @ x
        self.space.ranks.allreduce(parts)
        return parts


def resolve_nullspace(choice):
    """Convert the user's choice (None, "none", "constants", an array, or a NullSpace) to a NullSpace or None."""
    if choice is None or isinstance(choice, NullSpace):
        return choice
    if isinstance(choice, str) and choice.lower() == "none":
        return None
    return NullSpace(choice)


def rigid_body_modes(points) -> np.ndarray:
    """The rigid motions of a body, as a basis of a null space: 6 vectors in three dimensions, 3 in two.

    Parameters
    ----------
    points : array, shape (m, d), d = 2 or 3
        Coordinates of the nodes, in any unit. The unknowns are the displacements; node i has the unknowns
        d i, …, d i + d − 1.

    Returns
    -------
    ndarray, shape (d m, d (d + 1) / 2)
        Translations, then rotations about the centre, orthonormal.

    Raises
    ------
    InputError
        If ``points`` has another shape, or is not real.
    """
    points = host_array(points, "points")
    if points.ndim != 2 or points.shape[1] not in (2, 3):
        raise InputError(f"points has shape {points.shape}: expected (m, 2) or (m, 3)")
    if points.dtype.kind not in "iuf":
        raise InputError(f"points has dtype {points.dtype}: expected real numbers")
    m, d = points.shape
    centred = points - points.mean(axis=0)
    axes = [(0, 1)] if d == 2 else [(0, 1), (1, 2), (2, 0)]
    modes = np.zeros((m, d, d + len(axes)))
    for k in range(d):
        modes[:, k, k] = 1
    for k, (i, j) in enumerate(axes):
        modes[:, i, d + k], modes[:, j, d + k] = -centred[:, j], centred[:, i]
    return np.linalg.qr(modes.reshape(m * d, -1))[0]
