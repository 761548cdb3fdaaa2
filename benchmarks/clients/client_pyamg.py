"""PyAMG's Krylov methods with swell's multigrid as M, beside PyAMG's own; one line: ``M=swell.prepare(A, ...).M``."""
PACKAGE = "pyamg"


def cases():
    """Poisson's equation in two and three dimensions, setup and solve."""
    import numpy as np
    import pyamg

    import swell

    def own(A, b):
        return pyamg.ruge_stuben_solver(A).solve(b, tol=1e-8, accel="cg")

    def ours(A, b):
        return pyamg.krylov.cg(A, b, M=swell.prepare(A, method="cg", precond="amg").M, tol=1e-8)[0]

    for words, A in (("poisson2d", swell.gallery.poisson2d(40)), ("poisson2d", swell.gallery.poisson2d(200)),
                     ("poisson3d", swell.gallery.poisson3d(30))):
        A, b = A.tocsr(), np.ones(A.shape[0])
        yield words, A.shape[0], lambda A=A, b=b: own(A, b), lambda A=A, b=b: ours(A, b)
