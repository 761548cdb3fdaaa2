"""SfePy: two of its examples on its own meshes; one line: ``problem.get_solver().nls.lin_solver.sls = swell.scipy_like``."""
PACKAGE = "sfepy"


def cases():
    """diffusion/poisson.py and linear_elasticity/linear_elastic.py, with meshes of two sizes. Assembly is included."""
    import importlib
    from tempfile import mkdtemp

    from scipy.sparse import linalg
    from sfepy.base.base import output
    from sfepy.base.conf import ProblemConf
    from sfepy.discrete import Problem

    from swell import scipy_like
    output.set_output(quiet=True)

    def run(problem, library):
        problem.get_solver().nls.lin_solver.sls = library
        return problem.solve(save_results=False)().copy()

    for name, refined in (("diffusion.poisson", 0), ("diffusion.poisson", 2), ("linear_elasticity.linear_elastic", 0),
                          ("linear_elasticity.linear_elastic", 1)):
        module = importlib.import_module(f"sfepy.examples.{name}")
        conf = ProblemConf.from_dict(vars(module), module)
        conf.options.refinement_level = refined
        problem = Problem.from_conf(conf)
        problem.setup_output(output_dir=mkdtemp())
        problem.init_solvers()
        yield (name.split(".")[1] + (f", refined {refined} times" if refined else ""), run(problem, linalg).size,
               lambda p=problem: run(p, linalg), lambda p=problem: run(p, scipy_like))
