"""Chebyshev's polynomial of D⁻¹A as a smoother. Saad, Iterative Methods, algorithm 12.1; Adams et al. 2003.

For Hermitian positive definite matrices. A sweep of degree k multiplies the error by the polynomial of degree k that is
least on [a, b], where b bounds the eigenvalues of D⁻¹A and a = b · fraction. Errors in this upper part of the spectrum
shrink by 1 / T_k((b + a) / (b − a)); the other errors do not grow. No inner products, no colours, and M is Hermitian if
A is.

A sweep: k launches. Each reads the matrix in modified SELL, b, x and the direction d, and writes x and d (40 bytes a
row besides the matrix). Storage: the matrix and three vectors. Setup: ``steps`` products for the bound, with host
reads.

Differs from the textbook: b is the largest Ritz value of a few Lanczos steps with D⁻¹A from a fixed random vector,
raised by a tenth, but at most ‖D⁻¹A‖∞, which is a safe bound. If Lanczos ends early, the Ritz values are the spectrum.
Then b is its upper end, and a its lower end if this is larger than b · fraction. The coefficients are in the memory of
the vectors, so that an update reaches captured work.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import positive, real
from swell.formats.diagonal import nonzero_diagonal
from swell.formats.modified_sell import ModifiedSELL
from swell.smoothers.smoother import Smoother, TwoBufferOperator

HEIGHT = 32             # rows of a slice: a warp
SAFETY = 1.1            # factor for the largest Ritz value, which is below the largest eigenvalue
SEED = 7
INDEFINITE = 1e-6       # a negative eigenvalue beyond this part of the largest is not rounding error
ENDED = 1e-10           # a new Lanczos vector up to this part of max |H| is rounding error


@dataclass(frozen=True)
class Chebyshev(Smoother):
    """Chebyshev's polynomial on the upper part of the spectrum of D⁻¹A.

    Attributes
    ----------
    degree : int
        Degree of the polynomial: products per sweep.
    fraction : float
        Ratio a/b of the damped interval [a, b]: 1/30 to 1/4 inside multigrid, less as a preconditioner alone.
    steps : int
        Lanczos steps for the largest eigenvalue.
    """

    degree: int = 3
    fraction: float = 0.1
    steps: int = 12

    problem = "Hermitian positive definite"
    cost = "a sweep: `degree` launches, each the matrix and 5 words a row"

    def __post_init__(self):
        super().__post_init__()
        positive(self, "degree")
        positive(self, "steps")
        if not real(self.fraction) or not 0 < self.fraction < 1:
            raise InputError(f"Chebyshev(fraction={self.fraction!r}): expected a number between 0 and 1, such as 0.1")

    def build(self, A):
        return ChebyshevOperator(A, self)


class ChebyshevOperator(TwoBufferOperator):
    """Chebyshev sweeps on one matrix.

    Attributes
    ----------
    bounds : (float, float)
        The interval [a, b] of the spectrum of D⁻¹A that the sweeps damp.

    Raises
    ------
    InputError
        If a diagonal entry is zero, or D⁻¹A is found to have a negative eigenvalue.
    """

    self_adjoint = True

    scratch = ("_d",)

    def __init__(self, A, settings, bounds=None):
        super().__init__(A, settings)
        self.steps = settings.degree
        self.matrix = ModifiedSELL(height=HEIGHT).build(A)
        self._d = A.space.empty(A.shape[0], A.dtype)
        self._coefficients = A.space.empty(2 * settings.degree, np.float64)
        self._kernels = A.space.kernels("swell.smoothers", "pointwise", A.dtype)
        self._set(A, bounds)

    def update(self, A):
        super().update(A)
        self.matrix.update(A)
        self._set(A, None)

    def _set(self, A, bounds):
        """Set ``bounds``, from A if they are None, and the coefficients of the polynomial in the space's memory."""
        diagonal = nonzero_diagonal(A, "the Chebyshev smoother")
        self.bounds = bounds or spectrum(A, diagonal, self.settings.fraction, self.settings.steps)
        self.space.from_host(coefficients(*self.bounds, self.settings.degree), self._coefficients)

    def _build_adjoint(self, A):
        return ChebyshevOperator(A, self.settings, self.bounds)

    def _step(self, b, x, out, k, zero):
        m = self.matrix
        self._kernels.chebyshev(m.slice_ptr, m.diag, m.entries, m.col_idx, b, x, out, self._d, self._coefficients,
                                k, zero, HEIGHT)

    @property
    def nbytes(self):
        return self.matrix.nbytes + self._other.nbytes + self._y.nbytes + self._d.nbytes

    def describe(self):
        low, high = self.bounds
        s = self.settings
        return f"Chebyshev(sweeps={s.sweeps}, degree={s.degree}) on [{low:.3g}, {high:.3g}] of D⁻¹A"


def coefficients(low: float, high: float, degree: int) -> np.ndarray:
    """Return (c₀, c₁) of all ``degree`` steps d = c₀ d + c₁ D⁻¹ r of algorithm 12.1: an array of 2 ``degree`` numbers.

    ``low``, ``high``: the interval [a, b] that the polynomial damps; they may be equal.
    """
    theta, delta = (high + low) / 2, (high - low) / 2
    pairs, rho = [(0.0, 1 / theta)], delta / theta
    for _ in range(degree - 1):
        new = delta / (2 * theta - delta * rho)                                # ρ' = 1 / (2 θ/δ − ρ)
        pairs.append((new * rho, 2 / (2 * theta - delta * rho)))               # c₀ = ρ'ρ;  c₁ = 2 ρ'/δ
        rho = new
    return np.array(pairs).reshape(-1)


def spectrum(A, diagonal, fraction, steps):
    """Return (a, b), the upper part of the spectrum of D⁻¹A, which is to be damped; normally a = b · ``fraction``.

    ``diagonal``: D, an array. ``steps``: Lanczos steps for the largest eigenvalue.

    Raises
    ------
    InputError
        If D⁻¹A has a clearly negative eigenvalue.
    """
    values, whole = ritz_values(A, diagonal, min(steps, A.shape[0]))
    surely = A.space.max_on_host(A.absolute().row_sums() / abs(diagonal))
    high = values[-1] if whole else min(SAFETY * values[-1], surely)
    if not (high > 0 and values[0] > -INDEFINITE * high):
        raise InputError(f"the Chebyshev smoother needs a positive definite matrix, and D⁻¹A has eigenvalues near "
                         f"{values[0]:.2e} and {high:.2e}: use another smoother, or a method such as gmres")
    return (max(values[0], fraction * high) if whole else fraction * high), high


def ritz_values(A, diagonal, steps):
    """Return (the real parts of the Ritz values of D⁻¹A, ascending; True if they are all its eigenvalues).

    ``diagonal``: D. ``steps``: dimension of the Krylov space. The inner product is xᴴ |D| y, in which D⁻¹A is
    self-adjoint if A is. Each vector is orthogonalised twice against all others: this is Arnoldi's method, which also
    holds for other matrices.

    Raises
    ------
    InputError
        If the numbers overflow.
    """
    space, n = A.space, A.shape[0]
    if not n:
        return np.ones(1), True
    xp, weights = space.xp, abs(diagonal)
    V, w = space.empty((steps + 1, n), A.dtype), space.empty(n, A.dtype)
    H = np.zeros((steps + 1, steps), A.dtype)
    space.random(SEED, V[0])
    V[0] /= xp.sqrt(xp.vdot(V[0], weights * V[0]).real)
    for k in range(steps):
        A.apply(V[k], w)
        w /= diagonal
        for _ in range(2):
            h = V[:k + 1].conj() @ (weights * w)
            w -= h @ V[:k + 1]
            H[:k + 1, k] += space.to_host(h)  # sync
        norm = float(xp.sqrt(xp.vdot(w, weights * w).real))
        if not (np.isfinite(norm) and np.isfinite(H[:, k]).all()):
            raise InputError("the Chebyshev smoother needs the largest eigenvalue of D⁻¹A, and its estimate overflows: "
                             "the rows of A differ too much in size; give scaling='ruiz', or use another smoother")
        if norm <= ENDED * np.abs(H).max():
            return np.sort(np.linalg.eigvals(H[:k + 1, :k + 1]).real), True
        H[k + 1, k] = norm
        V[k + 1] = w / norm
    return np.sort(np.linalg.eigvals(H[:steps]).real), False
