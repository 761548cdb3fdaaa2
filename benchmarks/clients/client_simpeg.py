"""SimPEG: direct currents in a layered box; one line: ``solver=pymatsolver.wrap_direct(swell.scipy_like.splu)``."""
PACKAGE = "simpeg"


def cases():
    """Potentials of dipoles, and the sensitivity times a vector, by one factorisation; its default is SuperLU here."""
    import numpy as np
    import pymatsolver
    from discretize import TensorMesh
    from simpeg import maps
    from simpeg.electromagnetics.static import resistivity as dc
    from simpeg.utils import get_default_solver

    from swell.scipy_like import splu

    def run(mesh, solver):
        x = np.linspace(-0.4, 0.4, 8) * mesh.h[0].sum()
        places = np.c_[x, 0 * x, 0 * x - mesh.h[2][-1]]
        sources = [dc.sources.Dipole([dc.receivers.Dipole(places[2:-1], places[3:])], places[k], places[k + 1])
                   for k in range(3)]
        simulation = dc.Simulation3DNodal(mesh, survey=dc.Survey(sources), sigmaMap=maps.ExpMap(mesh), solver=solver)
        model = np.log(np.where(mesh.cell_centers[:, 2] > -0.3 * mesh.h[2].sum(), 0.01, 0.1))
        fields = simulation.fields(model)
        return np.concatenate([simulation.dpred(model, fields), simulation.Jvec(model, np.ones(mesh.nC), fields)])

    for shape in ((8, 8, 6), (16, 16, 10), (24, 24, 16)):
        mesh = TensorMesh([[(10.0, n)] for n in shape], x0="CCN")
        yield ("direct currents", mesh.n_nodes, lambda m=mesh: run(m, get_default_solver()),
               lambda m=mesh: run(m, pymatsolver.wrap_direct(splu)))
