"""FElupe: Newton's method for a stretched hyperelastic cube; one line: ``solver=spsolve``."""
PACKAGE = "felupe"


def cases():
    """Its first example, with two sizes of the cube."""
    import felupe
    from scipy.sparse.linalg import spsolve as scipys

    from swell.scipy_like import spsolve

    def run(n, solve):
        mesh = felupe.Cube(n=n)
        region = felupe.RegionHexahedron(mesh)
        field = felupe.FieldContainer([felupe.Field(region, dim=3)])
        boundaries = felupe.dof.uniaxial(field, clamped=True, move=0.1, return_loadcase=False)
        dof0, dof1 = felupe.dof.partition(field, boundaries)
        ext0 = felupe.dof.apply(field, boundaries, dof0)
        body = felupe.SolidBody(felupe.NeoHooke(mu=1.0, bulk=2.0), field)
        felupe.newtonrhapson(items=[body], x0=field, dof0=dof0, dof1=dof1, ext0=ext0, solver=solve, verbose=False)
        return field[0].values.copy()

    for n in (6, 12):
        yield f"cube of {n}³ points", 3 * n**3, lambda n=n: run(n, scipys), lambda n=n: run(n, spsolve)
