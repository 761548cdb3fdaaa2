"""One system of a batch on the CPU: products, preconditioners, and the verdict on the true residual.
``core/kernels/batch.cuh`` is the GPU's version.

``indptr``, ``indices``: the pattern in CSR, columns ascending; ``diagonal``: the entry of each diagonal. ``a``: the
values of a system (nnz). ``store``: the preconditioner, as batch.cuh describes it.
``limits``: of a solve, [residual norm of convergence, its square, squared norm of divergence].
"""
from __future__ import annotations

import math

import numpy as np

from swell.batch.slots import Kind, Outcome, Record
from swell.core.compiled import helper
from swell.core.slots import Code
from swell.formats.kernels.csr import row_product
from swell.formats.kernels.residual import minus_product

RUNNING, CONVERGED, MAXITER, STAGNATED, DIVERGED, NONFINITE, BREAKDOWN, INDEFINITE, _ = Code
FALSE_CONVERGENCE, ATTAINABLE_ACCURACY, SINGULAR, NOT_FACTORED = Outcome
NO_LIMIT, GROWTH, LEAST = 1e300, 1e10, 2.0**-511     # as in batch.cuh
ROUNDING, SINGULAR_TERMS = 8.0, 0.1     # ROUNDING of solving/measure.py and SINGULAR of solving/verdict.py
DOUBLED = ROUNDING * 2.0**-104          # the floor of a residual in doubled precision, as part of ‖|A||x| + |b|‖


@helper
def sum_of(v):
    """Zero in the type in which sums over ``v`` are accumulated: double, real or complex."""
    return np.float64(0) * v.dtype.type(0)


@helper
def epsilon(v):
    """The machine epsilon of the type of ``v``."""
    return np.finfo(v.dtype).eps


@helper
def square(z):
    """|z|² in double precision."""
    return np.float64(z.real) * z.real + np.float64(z.imag) * z.imag


@helper
def product(indptr, indices, a, v, out):
    """out = A v."""
    for i in range(out.size):
        out[i] = row_product(indices, a, v, a.dtype.type(0), indptr[i], indptr[i + 1])


@helper
def true_residual(indptr, indices, a, b, x, r):
    """r = b − A x; return (‖r‖₂, ‖b‖₂, the backward error, ‖|A||x| + |b|‖₂).

    Where all squares underflow, ‖·‖∞ stands for ‖·‖₂: a small b is not zero."""
    r2, b2, t2, r_most, a_most, x_most, b_most = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(x.size):
        size, terms = 0.0, np.float64(abs(b[i]))
        for k in range(indptr[i], indptr[i + 1]):
            size += abs(a[k])
            terms += np.float64(abs(a[k])) * abs(x[indices[k]])
        t2 += terms * terms
        r[i] = b[i] - row_product(indices, a, x, a.dtype.type(0), indptr[i], indptr[i + 1])
        r2 += square(r[i])
        b2 += square(b[i])
        r_most, b_most = max(r_most, abs(r[i])), max(b_most, abs(b[i]))
        a_most, x_most = max(a_most, size), max(x_most, abs(x[i]))
    backward = 0.0 if r_most == 0 else r_most / (a_most * x_most + b_most) if a_most * x_most + b_most > 0 else np.inf
    norm_r, norm_b = math.sqrt(r2), math.sqrt(b2)
    return r_most if r_most > norm_r else norm_r, b_most if b_most > norm_b else norm_b, backward, math.sqrt(t2)


@helper
def confirmed(indptr, indices, a, b, x, r, norms, threshold):
    """Return ``norms``, with r and ‖r‖₂ in doubled precision where rounding could decide on convergence.

    ``norms``: from `true_residual`, of this x and r. ``threshold``: the ‖r‖₂ of convergence."""
    floor = ROUNDING * epsilon(a) * norms[3]     # `uncertain` of solving/measure.py
    if not (norms[0] <= threshold + floor and threshold < max(floor, norms[0]) and threshold > 0):
        return norms
    r2, zero = 0.0, sum_of(a)
    for i in range(x.size):
        high, rest = zero + b[i], zero
        for k in range(indptr[i], indptr[i + 1]):
            high, rest = minus_product(high, rest, a[k], x[indices[k]])
        r2 += square(high + rest)
        r[i] = a.dtype.type(high + rest)
    return math.sqrt(r2), norms[1], norms[2], norms[3]


@helper
def judged(reason, norms, threshold, eps):
    """The code for the record, from the method's own verdict and the true residual; as ``verdict`` of
    solving/verdict.py.

    ``norms``: from `confirmed`."""
    if not math.isfinite(norms[0]):
        return NONFINITE
    if norms[0] <= threshold and not threshold < DOUBLED * norms[3]:
        return CONVERGED
    if norms[3] > SINGULAR_TERMS / eps * (norms[1] + norms[0]):
        return SINGULAR
    if norms[0] <= ROUNDING * eps * norms[3]:
        return ATTAINABLE_ACCURACY
    return FALSE_CONVERGENCE if reason == CONVERGED else reason


@helper
def judge(norm2, done, maxiter, limits):
    """The verdict on a recursive residual with this squared norm, after ``done`` iterations."""
    if not math.isfinite(norm2):
        return NONFINITE
    if norm2 <= limits[1]:
        return CONVERGED
    if norm2 > limits[2]:
        return DIVERGED
    return MAXITER if done >= maxiter else RUNNING


@helper
def begin(norms, rtol, atol, limits):
    """Set ``limits`` from the norms of the first residual."""
    limits[0] = max(rtol * norms[1], atol)
    limits[1] = limits[0]**2
    limits[2] = GROWTH**2 * max(norms[0], norms[1])**2


@helper
def verdict(norms, limits, last, inner, attempt, done, maxiter, eps):
    """The verdict on a true residual; RUNNING: another cycle shall follow.

    ``norms``: from ``confirmed``. ``last``: the norm before the cycle. ``inner``: the cycle's verdict. Before the
    first cycle it is RUNNING, or NOT_FACTORED if the preconditioner does not exist."""
    again = inner == CONVERGED or inner == BREAKDOWN
    if not math.isfinite(norms[0]) or norms[0] <= limits[0]:
        return judged(inner, norms, limits[0], eps)
    if norms[0] < LEAST:
        return BREAKDOWN
    if inner != RUNNING and inner != MAXITER and not again:
        return judged(inner, norms, limits[0], eps)
    if done >= maxiter:
        return judged(MAXITER, norms, limits[0], eps)
    rounded = norms[0] <= ROUNDING * eps * norms[3]              # nothing much better can come
    if norms[0] < (0.5 if again or rounded else 0.999) * last or (inner == BREAKDOWN and attempt < 3):
        return RUNNING
    return judged(inner if again else STAGNATED, norms, limits[0], eps)


@helper
def invert(store, begin, rows, s, pivots):
    """Invert in place the block of ``rows`` rows, s apart, that begins at ``begin``, by Gauss–Jordan with row pivoting.

    ``pivots``: scratch. False if the block is singular."""
    for k in range(rows):
        p = k
        for i in range(k + 1, rows):
            if abs(store[begin + i * s + k]) > abs(store[begin + p * s + k]):
                p = i
        pivots[k] = p
        if not abs(store[begin + p * s + k]) > 0:
            return False
        for j in range(rows):
            one, other = begin + k * s + j, begin + p * s + j
            store[one], store[other] = store[other], store[one]
        inverse = 1 / store[begin + k * s + k]
        store[begin + k * s + k] = 1
        for j in range(rows):
            store[begin + k * s + j] *= inverse
        for i in range(rows):
            if i != k:
                scale = store[begin + i * s + k]
                store[begin + i * s + k] = 0
                for j in range(rows):
                    store[begin + i * s + j] -= scale * store[begin + k * s + j]
    for k in range(rows - 1, -1, -1):
        for i in range(rows):
            one, other = begin + i * s + k, begin + i * s + pivots[k]
            store[one], store[other] = store[other], store[one]
    return True


@helper
def factor(indptr, indices, diagonal, a, f):
    """f = the factors of ILU(0), with the inverse of U's diagonal. False if a pivot vanishes."""
    for k in range(a.size):
        f[k] = a[k]
    for i in range(diagonal.size):
        end, own = indptr[i + 1], diagonal[i]
        for k in range(indptr[i], own):
            j = indices[k]
            f[k] *= f[diagonal[j]]                               # l_ij = a_ij / u_jj
            at = k + 1
            for m in range(diagonal[j] + 1, indptr[j + 1]):      # a_i: −= l_ij u_j:, where both have an entry
                while at < end and indices[at] < indices[m]:
                    at += 1
                if at < end and indices[at] == indices[m]:
                    f[at] -= f[k] * f[m]
        if not abs(f[own]) > 0:
            return False
        f[own] = 1 / f[own]
    return True


@helper
def stored(kind, n, block, nnz):
    """The elements that the store of a preconditioner takes."""
    if kind == Kind.JACOBI:
        return n
    if kind == Kind.BLOCK_JACOBI:
        return -(-n // block) * block * block
    return nnz if kind == Kind.ILU else 0


@helper
def prepare(indptr, indices, diagonal, a, kind, block, store, pivots):
    """Build the preconditioner in ``store``; False if it does not exist. ``pivots``: scratch of ``block`` integers."""
    n = diagonal.size
    if kind == Kind.JACOBI:
        for i in range(n):
            if not abs(a[diagonal[i]]) > 0:
                return False
            store[i] = 1 / a[diagonal[i]]
    if kind == Kind.BLOCK_JACOBI:
        for k in range(store.size):
            store[k] = 0
        for i in range(n):
            for k in range(indptr[i], indptr[i + 1]):
                if indices[k] // block == i // block:
                    store[i * block + indices[k] % block] = a[k]
        for first in range(0, n, block):
            if not invert(store, first * block, min(block, n - first), block, pivots):
                return False
    if kind == Kind.ILU:
        return factor(indptr, indices, diagonal, a, store)
    return True


@helper
def apply(indptr, indices, diagonal, kind, block, store, r, z):
    """z = M r."""
    n = r.size
    if kind == Kind.PLAIN:
        for i in range(n):
            z[i] = r[i]
    if kind == Kind.JACOBI:
        for i in range(n):
            z[i] = store[i] * r[i]
    if kind == Kind.BLOCK_JACOBI:
        for i in range(n):
            first, total = i // block * block, r.dtype.type(0)
            for j in range(first, min(first + block, n)):
                total += store[i * block + j - first] * r[j]
            z[i] = total
    if kind == Kind.ILU:
        for i in range(n):                                       # L y = r
            z[i] = r[i] - row_product(indices, store, z, r.dtype.type(0), indptr[i], diagonal[i])
        for i in range(n - 1, -1, -1):                           # U z = y
            total = row_product(indices, store, z, r.dtype.type(0), diagonal[i] + 1, indptr[i + 1])
            z[i] = (z[i] - total) * store[diagonal[i]]


@helper
def leave(now, done, code, xs, record, x, c):
    """Write column c of a system: x and its record."""
    for i in range(xs.size):
        x[i, c] = xs[i]
    record[c, Record.RESIDUAL] = now[0] / now[1] if now[1] > 0 else now[0]
    record[c, Record.BACKWARD], record[c, Record.STEPS], record[c, Record.VERDICT_CODE] = now[2], done, code
