"""torch-fem: a cantilever of hexahedra; one line: ``torchfem.sparse.scipy_spsolve = swell.scipy_like.spsolve``."""
PACKAGE = "torch-fem"


def cases():
    """Its default is SciPy's spsolve up to 10 000 unknowns; assembly is included."""
    import torch
    import torchfem.sparse
    from scipy.sparse.linalg import spsolve as scipys
    from torchfem import Solid
    from torchfem.materials import IsotropicElasticity3D
    from torchfem.mesh import cube_hexa

    from swell.scipy_like import spsolve
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)

    def run(nodes, elements, solve):
        torchfem.sparse.scipy_spsolve = solve
        try:
            model = Solid(nodes, elements, IsotropicElasticity3D(E=1000.0, nu=0.3))
            model.constraints[nodes[:, 0] == 0.0] = True
            model.forces[nodes[:, 0] == nodes[:, 0].max(), 2] = -1.0
            return model.solve()[0].detach().numpy().ravel()
        finally:
            torchfem.sparse.scipy_spsolve = scipys

    for n in (6, 12):
        nodes, elements = cube_hexa(n, n, n)
        yield (f"cube of {n}³ points", 3 * len(nodes), lambda m=(nodes, elements): run(*m, scipys),
               lambda m=(nodes, elements): run(*m, spsolve))
