"""The layers of the package from the bottom up: what each folder may import, and what is in it.

`test_layers.py` holds the package to this list, and `docs/generate.py` makes the table of docs/ARCHITECTURE.md from it.
A folder imports itself and the layers below. Two folders of one layer do not import each other.
"""
from __future__ import annotations

STOREYS = {
    "ground": [
        {"core": "contracts (operator, system matrix, space, transform), loop and judge, settings, registry, kernels"},
        {"display": "pieces of pages, and the pictures that results and preconditioners draw of themselves"}],
    "storage": [
        {"formats": "how a matrix is stored; facts gathered in one pass over it", "dense": "LU of dense matrices"}],
    "algorithms": [
        {"transforms": "scalings, permutations, null spaces: they change the system and are undone"},
        {"orderings": "permutations and partitions of the rows"},
        {"smoothers": "sweeps that damp errors; every one is a preconditioner too"},
        {"krylov": "methods, one file each; refinement around an inner operator"},
        {"preconditioners": "incomplete and complete factors, Schwarz, BDDC, deflation"}],
    "one solve": [
        {"solving": "setup, run and result: a configuration applied to a matrix"}],
    "what to solve": [
        {"io": "readers and writers of files", "gallery": "model problems"},
        {"inputs": "the one door for matrices and vectors that users bring"},
        {"advisor": "what to try, in order, and why; tuned formats"}],
    "many ranks": [
        {"distributed": "matrices and vectors in parts on ranks; `cuda:all`"}],
    "doors": [
        {"options": "`Options` of a solve: one record that all front ends take and pass on"},
        {"preconditioning": "`s.M`: a preconditioner alone, as a linear operator of SciPy and CuPy"},
        {"solver": "`Solver`: a system set up once; tries the advisor's choices in order"},
        {"api": "`solve`, `prepare`"},
        {"recurring": "`Recurring`: a Solver for a loop of matrices, prepared or updated as their patterns allow"},
        {"report": "plots and pages", "scipy_like": "SciPy's calls", "sparse_product": "`multiply`",
         "least_squares": "`lstsq`: LSQR and LSMR for matrices of any shape",
         "batch": "`solve_batch`, `prepare_batch`: many small systems of one pattern"},
        {"pde": "front ends: finite volumes, Helmholtz, a cube of elements",
         "autodiff": "what torch and jax share: pattern, options, solves with A and Aᴴ by one setup"},
        {"guests": "readers for objects of other libraries; solvers for PETSc, scikit-fem, FiPy, PyAMG",
         "torch": "differentiable solves of torch tensors"},
        {"jax": "`solve` and `prepare` inside JAX programs, with derivatives; a solver for lineax"}],
    "commands": [
        {"cli": "one module a command"},
        {"bench": "the benchmarks behind `swell bench`"},
        {"papers": "papers beside swell's numbers, with verdicts: `swell reproduce`"},
        {"__main__": "`python -m swell`"}],
}
LAYERS = [names for layers in STOREYS.values() for names in layers]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def table() -> str:
    """The layers from the top down, in Markdown."""
    lines = ["| layer | what is there |", "|---|---|"]
    for names in reversed(LAYERS):
        lines += [f"| `swell/{name}` | {what} |" for name, what in names.items()]
    return "\n".join(lines)


def picture() -> str:
    """The layers as a drawing, a storey a line; "→" is "imports", and a storey imports all storeys below it."""
    width = max(map(len, STOREYS)) + 2
    rows = [f"{storey:{width}}| " + " → ".join(", ".join(names) for names in reversed(layers))
            for storey, layers in reversed(STOREYS.items())]
    line = "-" * width + "+" + "-" * (max(map(len, rows)) - width)
    return "\n".join(["```text", *(part for row in rows for part in (row, line)), "```"])
