"""The last word, counted on random systems: results called converged that exact arithmetic contradicts, and the reverse.

    python benchmarks/verdict.py singular [--seeds 20000]
    python benchmarks/verdict.py regular [--seeds 20000] [--keep new.json] [--beside old.json]

``singular``: singular and near-singular systems of 2 to 8 unknowns, of all types: one right-hand side, several, batches
and least squares. Residuals of "converged" results are computed exactly, in fractions. Prints how many were solved, how
many were called converged, and the false ones.

``regular``: ten families of regular systems with 5 to 60 unknowns: condition 1 to 1e12, decaying x, sparse b, mixed
scales, penalties by the direct solver. Prints how many results are called converged, with a residual in extended
precision above the tolerance or not, and how many are not called so although the error of x is within condition ×
tolerance. ``--keep`` writes the results to a file. ``--beside`` reads the file of another version, and prints the systems
that only this one or that one calls converged.
"""
from __future__ import annotations

import argparse
import json
import logging
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

import swell

SLACK = 1.001           # a residual this many times the tolerance is false


def exact_residual(A, x, b) -> float:
    """‖b − A x‖₂ for dense arrays, computed in fractions and rounded once."""
    total = Fraction(0)
    for row, right in zip(A, b):
        real, imag = Fraction(float(np.real(right))), Fraction(float(np.imag(right)))
        for j in np.flatnonzero(row):
            ar, ai, xr, xi = (Fraction(float(part(v))) for v in (row[j], x[j]) for part in (np.real, np.imag))
            real, imag = real - (ar * xr - ai * xi), imag - (ar * xi + ai * xr)
        total += real * real + imag * imag
    return float(total) ** 0.5


def extended(A):
    """A in extended precision."""
    return A.astype(np.clongdouble if A.dtype.kind == "c" else np.longdouble)


def norm(v) -> float:
    """‖v‖₂ of numbers of any precision."""
    return float(np.sqrt((abs(v) ** 2).sum()))


def near_singular(seed):
    """Return (A, b, rtol, the random generator): a dense system that is singular to within 1e-6 to 1e-18."""
    rng = np.random.default_rng(seed + 10**6)
    n, dtype = int(rng.integers(2, 9)), np.dtype(["f8", "f8", "c16", "f4", "c8"][int(rng.integers(5))])

    def random(*shape):
        return rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.kind == "c" else 0)
    kind, eps = seed % 6, 10.0 ** -rng.integers(6 if dtype.itemsize // (2 if dtype.kind == "c" else 1) == 4 else 13, 19)
    if kind == 0:                                # rank one
        A = np.outer(random(n), random(n)) + eps * random(n, n)
    elif kind == 1:                              # rows sum to zero
        d = rng.random(n - 1) + 0.1
        A = np.diag(np.r_[d, 0] + np.r_[0, d]) - np.diag(d, 1) - np.diag(d, -1)
    elif kind == 2:                              # semidefinite
        U = random(n, max(1, n - 1))
        A = U @ U.conj().T + eps * np.eye(n)
    elif kind == 3:                              # two like rows
        A = random(n, n)
        A[-1] = A[0] * (1 + eps)
    elif kind == 4:                              # a small pivot
        A = np.diag(np.r_[10.0 ** rng.uniform(-2, 2, n - 1), eps])
    else:                                        # two like columns
        A = random(n, n)
        A[:, -1] = A[:, 0] + eps * A[:, 1]
    b = [random(n), np.eye(n)[0], A @ np.ones(n), np.round(4 * rng.standard_normal(n))][int(rng.integers(4))]
    return A.astype(dtype), np.asarray(b).astype(dtype), [1e-8, 1e-2, 1e-5, 1e-12][int(rng.integers(4))], rng


def false_of(A, b, result, rtol):
    """Return the relative residual of a result called converged if it is above the tolerance, else None."""
    residual = exact_residual(A, np.asarray(result.x), b) / norm(b.astype(np.result_type(b, np.float64)))
    return residual if residual > SLACK * rtol else None


def false_fit(A, b, result, rtol):
    """The same for least squares: the relative residual of the normal equations."""
    L = extended(A)
    r = b - L @ np.asarray(result.x)
    normal = norm(L.conj().T @ r) / (norm(L) * norm(r)) if norm(r) else 0.0
    return normal if norm(r) > SLACK * rtol * norm(b) and normal > SLACK * rtol else None


def singular(seeds):
    """Solve near-singular systems in every form, and print the counts and the false results."""
    tried, converged, false = Counter(), Counter(), []
    for seed in range(seeds):
        A, b, rtol, rng = near_singular(seed)
        if not b.any():
            continue
        hermitian = np.allclose(A, A.conj().T)
        methods = None, "direct", "gmres", "bicgstab", *(("minres", "cg") if hermitian else ("qmr", "idrs"))
        method, form = methods[int(rng.integers(6))], ("one", "one", "columns", "batch", "lstsq")[int(rng.integers(5))]
        M, judge = sp.csr_array(A), false_of
        try:
            if form == "one":
                found = [(swell.solve(M, b, method=method, rtol=rtol), b)]
            elif form == "columns":
                B = np.stack([b, A @ np.ones(b.size), np.roll(b, 1)], axis=1).astype(A.dtype)
                found = list(zip(swell.solve(M, B, method=method, rtol=rtol), B.T))
            elif form == "batch":
                method = method if method in (None, "gmres", "bicgstab", "cg") else "lu"
                found = [(swell.solve_batch([M] * 2, B=np.stack([b, b]), method=method, rtol=rtol)[0], b)]
            else:
                found, judge = [(swell.lstsq(M, b, rtol=rtol), b)], false_fit
        except swell.SwellError:
            continue
        for result, right in found:
            tried[form] += 1
            if result.converged and right.any():
                converged[form] += 1
                residual = judge(A, right, result, rtol)
                if residual is not None:
                    false.append(f"  seed {seed}, {form}, {method}, {A.dtype}, rtol {rtol:g}: {residual:.1e}")
    for form in tried:
        print(f"{form:8s} {tried[form]:6d} solved, {converged[form]:6d} called converged")
    print(f"{len(false)} of them false", *false[:40], sep="\n")


def regular_system(seed):
    """Return (A, b, method, dtype): a dense regular system, and how to solve it."""
    rng, kind = np.random.default_rng(seed), seed % 10
    n = int(rng.integers(5, 60))

    def laplacian(diagonal=2.0):
        return diagonal * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)

    def orthogonal():
        return np.linalg.qr(rng.standard_normal((n, n)))[0]
    symmetric, general = (None, "cg", "direct"), (None, "gmres", "direct")
    if kind == 0:                                # SPD, condition 1 to 1e12
        U = orthogonal()
        A, methods = (U * np.logspace(0, -rng.uniform(0, 12), n)) @ U.T, symmetric
        A = (A + A.T) / 2
    elif kind == 1:                              # general, condition 1 to 1e12
        A, methods = (orthogonal() * np.logspace(0, -rng.uniform(0, 12), n)) @ orthogonal(), general
    elif kind == 2:                              # an implicit step of the heat equation
        A, methods = np.eye(n) + 10.0 ** rng.uniform(-4, 3) * laplacian(), symmetric
    elif kind == 3:                              # D A D
        spread = rng.uniform(0, 2.5)
        D = np.diag(10.0 ** rng.uniform(-spread, spread, n))
        A, methods = D @ laplacian(2.1) @ D, symmetric
    elif kind == 4:                              # rows of different scale
        A = np.diag(10.0 ** rng.uniform(-4, 4, n)) @ (4 * np.eye(n) + rng.standard_normal((n, n)) / np.sqrt(n))
        methods = general
    elif kind == 5:                              # a penalty
        A, methods = laplacian() * 10.0 ** rng.uniform(-3, 12), ("direct",)
        A[0, 0] += 10.0 ** rng.uniform(12, 30)
    elif kind == 6:                              # two materials
        k = np.where(np.arange(n + 1) < n // 2, 1.0, 10.0 ** -rng.uniform(0, 6))
        A, methods = np.diag(k[:-1] + k[1:]) - np.diag(k[1:-1], 1) - np.diag(k[1:-1], -1), symmetric
        A = A + np.diag(10.0 ** -rng.uniform(0, 6) * np.minimum(k[:-1], k[1:]))
    elif kind == 7:                              # damped waves
        A, methods = laplacian() - rng.uniform(0.05, 0.5) * (1 + 0.1j) * np.eye(n), general
    elif kind == 8:                              # convection
        c = rng.uniform(0, 5)
        A, methods = (2 + c) * np.eye(n) - np.eye(n, k=1) - (1 + c) * np.eye(n, k=-1), (None, "bicgstab", "gmres")
    else:                                        # dominant rows of any size
        A = sp.random(n, n, 0.2, random_state=rng).toarray() * 10.0 ** rng.uniform(-8, 8)
        A += np.diag(abs(A).sum(axis=1) * 1.1 + 1e-12 * abs(A).max() + (abs(A).sum() == 0))
        methods = None, "bicgstab", "direct"
    decaying = A @ np.exp(-rng.uniform(0.1, 2) * np.arange(n))
    b = [rng.standard_normal(n), np.eye(n)[int(rng.integers(n))], A @ np.ones(n), decaying][int(rng.integers(4))]
    dtype = [None, None, None, "f4"][int(rng.integers(4))] if kind in (2, 8, 9) else None
    method = methods[int(rng.integers(len(methods)))]
    return (A, b, method) if dtype is None else (A.astype(dtype), b.astype(dtype), method)


def judged(A, b, method) -> dict:
    """Solve a regular system; return {name: value} of its reason, true residual, forward error and condition."""
    rtol = 1e-5 if A.dtype == np.float32 else 1e-8
    result = swell.solve(sp.csr_array(A), b, method=method, rtol=rtol)
    L, double = extended(A), A.astype(np.result_type(A.dtype, np.float64))
    x = np.asarray(result.x).astype(L.dtype)
    inverse = np.linalg.inv(double)
    reference = (inverse @ b).astype(L.dtype)
    for _ in range(5):                           # refined
        reference = reference + inverse @ (b - L @ reference).astype(double.dtype)
    return {"reason": result.reason.name, "residual": norm(b - L @ x) / norm(b), "rtol": rtol,
            "error": norm(x - reference) / norm(reference), "condition": float(np.linalg.cond(double))}


def regular(seeds, keep, beside):
    """Solve regular systems, and print the counts; ``keep``, ``beside``: paths or None."""
    found = {}
    for seed in range(seeds):
        A, b, method = regular_system(seed)
        if b.any():
            try:
                found[str(seed)] = judged(A, b, method)
            except swell.SwellError as error:
                print(f"  seed {seed}: {error}")
    called = {seed for seed, r in found.items() if r["reason"] == "CONVERGED"}
    false = [seed for seed in called if found[seed]["residual"] > SLACK * found[seed]["rtol"]]
    right = [seed for seed in found.keys() - called
             if found[seed]["error"] <= found[seed]["condition"] * found[seed]["rtol"]]
    print(f"{len(found)} solved, {len(called)} called converged, {len(false)} of them false; not called converged "
          f"although the error is within condition × rtol: {len(right)}, as", dict(Counter(found[s]["reason"]
                                                                                          for s in right)))
    if keep:
        with open(keep, "w") as file:
            json.dump(found, file)
    if beside:
        with open(beside) as file:
            other = json.load(file)
        theirs = {seed for seed, r in other.items() if r["reason"] == "CONVERGED"}
        print(f"called converged by this version only: {len(called - theirs)}; by the other only: "
              f"{len(theirs - called)}, with the error within condition × rtol: {len((theirs - called) & set(right))}")
        for seed in sorted((theirs - called) & set(right), key=int)[:40]:
            print(f"  seed {seed}: {found[seed]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", choices=("singular", "regular"))
    parser.add_argument("--seeds", type=int, default=20_000)
    parser.add_argument("--keep")
    parser.add_argument("--beside")
    arguments = parser.parse_args()
    logging.getLogger("swell").setLevel(logging.CRITICAL)        # a failure is counted, and needs no warning
    warnings.simplefilter("ignore")
    if arguments.systems == "singular":
        singular(arguments.seeds)
    else:
        regular(arguments.seeds, arguments.keep, arguments.beside)


if __name__ == "__main__":
    main()
