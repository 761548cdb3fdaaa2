"""Two variants of block CG in NumPy, before either has kernels: Dubrulle's BCGrQ and the breakdown-free BFBCG of Ji and Li.

    python benchmarks/block_cg_variants.py bcsstk14 bcsstk16

Both find dependent vectors by one pivoted Cholesky factorisation. With Jacobi; eight right-hand sides: random; with copies, a zero
column and a sum ("dependent"); nearly equal ones, of sizes from 1e-12 to 1e12 ("near"); easy ones among others ("easy"). Prints
iterations until the recursive residuals of all columns meet the tolerance, and the largest true residual then.
"""
import argparse
import pathlib

import numpy as np
import scipy.io
import scipy.sparse as sp

from swell.core.kernels.block import diagonal, pivoted_cholesky

EPS = np.finfo(float).eps


def factored(G):
    """(ζ, its inverse on the rank) of a Hermitian matrix G = ζᴴ ζ."""
    factor, inverse = np.empty_like(G), np.empty_like(G)
    if pivoted_cholesky(G, diagonal(G), 64 * len(G) * EPS, False, factor, inverse) < 0:
        raise ArithmeticError("not positive definite")
    return factor, inverse


def bcgrq(A, M, B, rtol, most):
    """Dubrulle's variant in the inner product of M: the residual block is R C."""
    norms, X, R, C = np.linalg.norm(B, axis=0), np.zeros_like(B), B.copy(), np.eye(B.shape[1])
    for _ in range(2):
        zeta, inverse = factored(R.T @ (M @ R))
        R, C = R @ inverse, zeta @ C
    P, done = M @ R, norms == 0
    for k in range(1, most + 1):
        Q = A @ P
        _, inverse = factored(P.T @ Q)
        xi = inverse @ inverse.T
        X += P @ (xi @ C * ~done)
        R = R - Q @ xi
        Z = M @ R
        done |= np.sqrt(np.maximum(np.einsum("ij,ij->j", C, R.T @ R @ C), 0)) <= rtol * norms
        if done.all():
            break
        zeta, inverse = factored(R.T @ Z)
        C, R, P = zeta @ C, R @ inverse, Z @ inverse + P @ zeta.T
    return X, k


def bfbcg(A, M, B, rtol, most):
    """Ji and Li's variant: the directions P are orthonormalised in each step."""
    def orth(P):
        sizes = np.linalg.norm(P, axis=0)
        P = P / np.where(sizes > 0, sizes, 1)
        return P @ factored(P.T @ P)[1]
    norms, X, R = np.linalg.norm(B, axis=0), np.zeros_like(B), B.copy()
    P, done = orth(M @ R), norms == 0
    for k in range(1, most + 1):
        Q = A @ P
        _, inverse = factored(P.T @ Q)
        alpha = inverse @ (inverse.T @ (P.T @ R)) * ~done
        X += P @ alpha
        R -= Q @ alpha
        done |= np.linalg.norm(R, axis=0) <= rtol * norms
        if done.all():
            break
        Z = M @ R
        P = orth(Z - P @ (inverse @ (inverse.T @ (Q.T @ Z))))
    return X, k


def cases(A):
    """Right-hand sides by name."""
    rng, n = np.random.default_rng(1), A.shape[0]
    dependent, near, easy = (rng.standard_normal((n, 8)) for _ in range(3))
    dependent[:, 3], dependent[:, 5], dependent[:, 6] = dependent[:, 1], 0, dependent[:, 0] + 2 * dependent[:, 1]
    near[:, 3], near[:, 4] = near[:, 1] + 1e-9 * near[:, 3], near[:, 2] + 1e-5 * near[:, 4]
    near[:, 6] *= 1e-12
    near[:, 7] *= 1e12
    easy[:, 3], easy[:, 2], easy[:, 0] = A @ np.ones(n), A[:, [5]].toarray().ravel(), np.eye(n)[3]
    return {"random": rng.standard_normal((n, 8)), "dependent": dependent, "near": near, "easy": easy}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("systems", nargs="*", default=["bcsstk14", "bcsstk16"])
    parser.add_argument("--rtol", type=float, default=1e-10)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("../shared/data"))
    options = parser.parse_args()
    for name in options.systems:
        A = sp.csr_array(scipy.io.mmread(options.data / "matrices" / f"{name}.mtx.gz"))
        for case, B in cases(A).items():
            norms = np.linalg.norm(B, axis=0)
            for variant in (bcgrq, bfbcg):
                X, k = variant(A, sp.diags_array(1 / A.diagonal()), B, options.rtol, 6000)
                true = np.linalg.norm(B - A @ X, axis=0) / np.where(norms > 0, norms, 1)
                print(f"{name:10} {case:10} {variant.__name__:6} {k:5} iterations, {true.max():.1e}", flush=True)


if __name__ == "__main__":
    main()
