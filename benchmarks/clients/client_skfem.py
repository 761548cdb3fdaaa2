"""scikit-fem: Poisson's equation (ex01) and elasticity (ex11); one line: ``solver=solver()``, or ``solver=spsolve``."""
PACKAGE = "scikit-fem"


def cases():
    """ex01 on three meshes, and ex11's cube."""
    import numpy as np
    import skfem
    from skfem.models.elasticity import lame_parameters, linear_elasticity
    from skfem.models.poisson import laplace, unit_load

    from swell.guests.skfem import solver
    from swell.scipy_like import spsolve

    def both(system, words):
        return (words, system[0].shape[0], lambda: skfem.solve(*system),
                lambda: skfem.solve(*system, solver=solver(rtol=1e-10)))

    def by_factors(system, words):
        return (words, system[0].shape[0], lambda: skfem.solve(*system), lambda: skfem.solve(*system, solver=spsolve))

    for level in (4, 6, 7):
        mesh = skfem.MeshTri().refined(level)
        basis = skfem.Basis(mesh, skfem.ElementTriP2())
        system = skfem.condense(laplace.assemble(basis), unit_load.assemble(basis), D=basis.get_dofs())
        yield both(system, "ex01, P2")
        if level == 4:
            yield by_factors(system, "ex01, P2; spsolve")
    mesh = skfem.MeshHex().refined(4)
    basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementHex1()))
    K = linear_elasticity(*lame_parameters(1e3, 0.3)).assemble(basis)
    top = basis.get_dofs(lambda x: x[0] == 1.0)
    x = basis.zeros()
    x[top.nodal["u^1"]] = 0.3
    D = np.union1d(basis.get_dofs(lambda x: x[0] == 0.0).flatten(), top.flatten())
    yield both(skfem.condense(K, np.zeros(basis.N), x=x, D=D), "ex11, elasticity")
