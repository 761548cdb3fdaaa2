"""pyMOR: the full model of a thermal block; one line: ``pymor.bindings.scipy.spsolve = swell.scipy_like.spsolve``."""
PACKAGE = "pymor"


def cases():
    """The thermal block of its tutorials, solved for three parameters."""
    import pymor.bindings.scipy as bindings
    from pymor.analyticalproblems.thermalblock import thermal_block_problem
    from pymor.basic import discretize_stationary_cg, set_log_levels
    from scipy.sparse.linalg import splu as factor
    from scipy.sparse.linalg import spsolve as scipys

    from swell.scipy_like import splu, spsolve

    set_log_levels({"pymor": "ERROR"})

    def run(model, mus, solve, factors):
        bindings.spsolve, bindings.splu = solve, factors
        try:
            return [model.solve(mu).to_numpy().ravel() for mu in mus]
        finally:
            bindings.spsolve, bindings.splu = scipys, factor

    problem = thermal_block_problem(num_blocks=(2, 2))
    for diameter in (1 / 15, 1 / 60, 1 / 150):
        model, _ = discretize_stationary_cg(problem, diameter=diameter)
        mus = problem.parameter_space.sample_randomly(3)
        yield ("thermal block, 3 parameters", model.solution_space.dim, lambda m=model, p=mus: run(m, p, scipys, factor),
               lambda m=model, p=mus: run(m, p, spsolve, splu))
