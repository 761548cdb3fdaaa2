"""NGSolve: Poisson's equation; its own inverse, and swell on the exported matrix."""
PACKAGE = "ngsolve"


def cases():
    """The unit square, degree 2. swell's time includes the export to SciPy."""
    import numpy as np
    import scipy.sparse as sp
    from netgen.geom2d import unit_square
    from ngsolve import H1, BilinearForm, GridFunction, LinearForm, Mesh, dx, grad, ngsglobals

    from swell.scipy_like import spsolve
    ngsglobals.msg_level = 0

    for h in (0.1, 0.03, 0.01):
        space = H1(Mesh(unit_square.GenerateMesh(maxh=h)), order=2, dirichlet=".*")
        u, v = space.TnT()
        a, f = BilinearForm(grad(u) * grad(v) * dx).Assemble(), LinearForm(v * dx).Assemble()
        free = np.flatnonzero(list(space.FreeDofs()))

        def theirs(a=a, f=f, space=space):
            x = GridFunction(space)
            x.vec.data = a.mat.Inverse(space.FreeDofs()) * f.vec
            return x.vec.FV().NumPy().copy()

        def ours(a=a, f=f, space=space, free=free):
            values, columns, pointers = a.mat.CSR()
            A, x = sp.csr_matrix((values, columns, pointers)), np.zeros(space.ndof)
            x[free] = spsolve(A[free][:, free], f.vec.FV().NumPy()[free])
            return x
        yield "unit square, P2", free.size, theirs, ours
