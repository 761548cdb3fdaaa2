"""SciPy itself: BDF and Radau, eigsh, lobpcg and newton_krylov, each with one object of swell's."""
PACKAGE = "scipy"


def cases():
    """Heat on a square with a source, its lowest modes, and Bratu's problem."""
    import numpy as np
    from scipy.integrate import _ivp, solve_ivp
    from scipy.optimize import newton_krylov
    from scipy.sparse import linalg

    import swell
    from swell.scipy_like import splu

    def integrate(method, A, factor):
        module = getattr(_ivp, method.lower())
        module.splu = factor
        try:
            return solve_ivp(lambda t, y: -(A @ y) + np.exp(-t), (0, 1), np.zeros(A.shape[0]), method=method,
                             jac=-A).y[:, -1]
        finally:
            module.splu = linalg.splu

    for n in (10, 40, 80):
        A = swell.gallery.poisson2d(n).tocsc()
        for method in ("BDF", "Radau"):
            yield (f"solve_ivp, {method}", n * n, lambda m=method, A=A: integrate(m, A, linalg.splu),
                   lambda m=method, A=A: integrate(m, A, splu))
    for n in (20, 100, 200):
        A = swell.gallery.poisson2d(n).tocsc()
        yield ("eigsh, sigma = 0", n * n, lambda A=A: linalg.eigsh(A, 4, sigma=0, return_eigenvectors=False),
               lambda A=A: linalg.eigsh(A, 4, sigma=0, OPinv=swell.prepare(A, method="direct"),
                                        return_eigenvectors=False))
    A = swell.gallery.poisson2d(60)
    start = np.random.default_rng(0).random((3600, 3))
    yield ("lobpcg; M = spilu, s.M", 3600,
           lambda: np.sort(linalg.lobpcg(A, start, M=linalg.LinearOperator(A.shape, linalg.spilu(A.tocsc()).solve),
                                         largest=False, tol=1e-6, maxiter=200)[0]),
           lambda: np.sort(linalg.lobpcg(A, start, M=swell.prepare(A, method="cg", precond="amg").M, largest=False,
                                         tol=1e-6, maxiter=200)[0]))

    def residual(u):
        return A @ u - 1e-3 * np.exp(u)
    yield ("newton_krylov; inner_M = spilu, s.M", 3600,
           lambda: newton_krylov(residual, np.zeros(3600), f_tol=1e-10, inner_M=linalg.LinearOperator(
               A.shape, linalg.spilu(A.tocsc()).solve)),
           lambda: newton_krylov(residual, np.zeros(3600), f_tol=1e-10,
                                 inner_M=swell.prepare(A, method="cg", precond="amg").M))
