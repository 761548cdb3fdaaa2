"""The registry: every algorithm is one row, under its name in the literature.

The command line, the documentation and the contract tests read this table: a new row is at once offered, documented
and tested. Rows name modules as text: a module is imported at its first use.
"""
from __future__ import annotations

import dataclasses
import functools
import importlib
import re
import warnings

from swell.core.errors import InputError, meant
from swell.core.preconditioner import Preconditioner
from swell.core.settings import construct, parse, shown

SMOOTHERS = {                                    # each is also a preconditioner, under the same name
    "jacobi_sweeps": "swell.smoothers.jacobi:JacobiSmoother",
    "gauss_seidel": "swell.smoothers.gauss_seidel:GaussSeidel",
    "block_jacobi_sweeps": "swell.smoothers.block_jacobi:BlockJacobiSmoother",
    "block_gauss_seidel": "swell.smoothers.block_gauss_seidel:BlockGaussSeidel",
    "chebyshev": "swell.smoothers.chebyshev:Chebyshev",
}
TABLE = {
    "method": {
        "cg": "swell.krylov.cg:CG",
        "single_reduction_cg": "swell.krylov.single_reduction_cg:SingleReductionCG",
        "resident_cg": "swell.krylov.resident_cg:ResidentCG",
        "block_cg": "swell.krylov.block_cg:BlockCG",
        "minres": "swell.krylov.minres:MINRES",
        "gmres": "swell.krylov.gmres:GMRES",
        "block_gmres": "swell.krylov.block_gmres:BlockGMRES",
        "fgmres": "swell.krylov.fgmres:FGMRES",
        "bicgstab": "swell.krylov.bicgstab:BiCGSTAB",
        "bicgstabl": "swell.krylov.bicgstabl:BiCGSTABL",
        "tfqmr": "swell.krylov.tfqmr:TFQMR",
        "qmr": "swell.krylov.qmr:QMR",
        "idrs": "swell.krylov.idrs:IDRS",
        "cocg": "swell.krylov.cocg:COCG",
        "cocr": "swell.krylov.cocr:COCR",
        "direct": "swell.krylov.direct:Direct",
        "stationary": "swell.krylov.stationary:Stationary",
    },
    "precond": {
        "jacobi": "swell.preconditioners.jacobi:Jacobi",
        "block_jacobi": "swell.preconditioners.block_jacobi:BlockJacobi",
        "schwarz": "swell.preconditioners.schwarz:Schwarz",
        "shifted_laplacian": "swell.preconditioners.shifted_laplacian:ShiftedLaplacian",
        "deflation": "swell.preconditioners.deflation:Deflation",
        "bddc": "swell.preconditioners.bddc.settings:BDDC",
        "amg": "swell.preconditioners.amg.settings:AMG",
        "smoothed_aggregation": "swell.preconditioners.amg.smoothed_aggregation:SmoothedAggregation",
        "air": "swell.preconditioners.amg.air:AIR",
        "ams": "swell.preconditioners.ams:AMS",
        "field_split": "swell.preconditioners.field_split:FieldSplit",
        "ic": "swell.preconditioners.ic:IC",
        "ilu": "swell.preconditioners.ilu:ILU",
        "direct": "swell.preconditioners.direct:Direct",
        **SMOOTHERS,
    },
    "smoother": SMOOTHERS,
    "scaling": {
        "jacobi": "swell.transforms.jacobi:JacobiScaling",
        "ruiz": "swell.transforms.ruiz:RuizScaling",
    },
    "ordering": {
        "rcm": "swell.orderings.cuthill_mckee:ReverseCuthillMcKee",
        "cuthill_mckee": "swell.orderings.cuthill_mckee:CuthillMcKee",
        "greedy_coloring": "swell.orderings.multicolor:GreedyColoring",
        "jones_plassmann": "swell.orderings.multicolor:JonesPlassmann",
        "twisted": "swell.orderings.twisted:Twisted",
        "partition": "swell.orderings.partition:Partition",
        "bisection": "swell.orderings.bisection:Bisection",
        "minimum_degree": "swell.orderings.minimum_degree:MinimumDegree",
    },
    "triangular": {
        "exact": "swell.preconditioners.exact:Exact",
        "sweeps": "swell.preconditioners.sweeps:Sweeps",
        "isai": "swell.preconditioners.isai:ISAI",
    },
    "format": {
        "csr": "swell.formats.csr:CSR",
        "sell": "swell.formats.sell:SELL",
        "ell": "swell.formats.ell:ELL",
        "staircase_sell": "swell.formats.staircase_sell:StaircaseSELL",
        "modified_sell": "swell.formats.modified_sell:ModifiedSELL",
        "bsr": "swell.formats.bsr:BSR",
        "block_sell": "swell.formats.block_sell:BlockSELL",
        "tuned": "swell.advisor.tuning:Tuned",
    },
    "decomposer": {
        "gem": "swell.dense.gem:GEM",
        "cm": "swell.dense.crout:CM",
        "pcm": "swell.dense.parallel_crout:PCM",
        "icm": "swell.dense.iterative_crout:ICM",
        "getrf": "swell.dense.getrf:Getrf",
    },
    "dense_solver": {
        "ss": "swell.dense.sequential_solver:SS",
        "is": "swell.dense.iterative_solver:IS",
        "trsm": "swell.dense.trsm:Trsm",
        "getrs": "swell.dense.getrs:Getrs",
    },
    "least_squares": {
        "lsqr": "swell.least_squares.lsqr:LSQR",
        "lsmr": "swell.least_squares.lsmr:LSMR",
    },
}
RENAMED = {                                      # former names, which still work, and what they mean
    "precond": {"block_jacobi_smoother": "block_jacobi_sweeps", "ick": "ic(level=1)", "iluk": "ilu(level=1)",
                "ilut": "ilu(drop=0.001)", "block_ilu0": "ilu(block=None)",
                "block_iluk": "ilu(level=1, block=None)", "block_ilut": "ilu(drop=0.001, block=None)"},
    "smoother": {"jacobi": "jacobi_sweeps", "block_jacobi": "block_jacobi_sweeps"},
}
SHORT = {"precond": {"ic0": "ic(level=0)", "ilu0": "ilu(level=0, drop=None, fill=None)"}}      # usual in the literature
ARGUMENTS = {"method": "method", "precond": "preconditioner", "smoother": "smoother", "scaling": "scaling",
             "ordering": "ordering", "format": "matrix format"}             # arguments of `swell.solve`
ARGUMENT = {"precond": "precond (or M)", "least_squares": "method"}
# Operators of the preconditioners that are built from a whole distributed matrix; "nicolaides": Schwarz's second level.
RANK_OPERATORS = {
    "schwarz": "swell.distributed.schwarz:RankSchwarz",
    "nicolaides": "swell.distributed.coarse_space:RankCoarseSpace",
    "bddc": "swell.distributed.bddc:RankBDDC",
    "amg": "swell.distributed.amg.operator:RankAMG",
    "smoothed_aggregation": "swell.distributed.amg.operator:RankSmoothedAggregation",
    "air": "swell.distributed.amg.operator:RankAIR",
}


def names(kind: str) -> list[str]:
    """Names registered under a kind, such as method, precond, smoother, scaling, ordering or format.

    Raises
    ------
    InputError
        For an unknown kind; the message lists all kinds.
    """
    if not isinstance(kind, str) or kind not in TABLE:
        raise InputError(f"unknown kind {shown(kind)}: {meant(kind, TABLE)}There are: {', '.join(TABLE)}")
    return list(TABLE[kind])


def _elsewhere(kind, name) -> str:
    """Return "… is a preconditioner: give precond='…'. " if ``name`` is registered under another argument of
    `swell.solve`, else an empty text."""
    kinds = [other for other in ARGUMENTS if other != kind and name in TABLE[other]] if kind in ARGUMENTS else []
    return f"{name} is a {ARGUMENTS[kinds[0]]}: give {kinds[0]}={name!r}. " if kinds else ""


def load(kind: str, name: str):
    """Import and return the class registered under ``name`` for a kind such as "method" or "precond".

    Raises
    ------
    InputError
        If nothing is registered under that name; the message suggests the most similar one.
    """
    rows, key = TABLE[kind], _key(name)
    if key not in rows:
        offered = _offered(kind)
        raise InputError(f"unknown {ARGUMENT.get(kind, kind)} {shown(name)}: "
                         f"{_elsewhere(kind, key) or meant(key, offered)}There are: {', '.join(offered)}")
    return _imported(rows[key])


def _key(name: str) -> str:
    """Return ``name`` as the registry writes names."""
    return name.lower().replace("-", "_")


def _current(kind: str, name: str, arguments: dict) -> tuple[str, dict]:
    """Return the registered name, and the settings, that a name with settings means: a short name of the literature
    fixes some, and a former name, of which a FutureWarning tells, has other defaults."""
    key = _key(name)
    short, renamed = SHORT.get(kind, {}).get(key), RENAMED.get(kind, {}).get(key)
    if short is None and renamed is None:
        return name, arguments
    now, meant = parse(short or renamed)
    fixed = meant.keys() & arguments if short else ()
    if fixed:
        raise InputError(f"{_text(key, arguments)}: expected {key} without {', '.join(sorted(fixed))}, which the name "
                         f"says: write {_text(now, arguments)}")
    if renamed:
        warnings.warn(f"the {kind} {_text(key, arguments)!r} is called {_text(now, meant | arguments)!r} now",
                      FutureWarning, stacklevel=3)
    return now, meant | arguments


def _text(name, arguments) -> str:
    """Return a name with its settings as text that `resolve` takes."""
    inside = ", ".join(f"{field}={value!r}" for field, value in arguments.items())
    return f"{name}({inside})" if inside else name


def _offered(kind: str) -> list[str]:
    """Return the names that `resolve` takes for a ``kind``: as methods, decomposers too."""
    return [*TABLE[kind], *(TABLE["decomposer"] if kind == "method" else ())]


def rank_operator(name: str):
    """Return the operator class of the preconditioner ``name`` on ranks; ``cls(A, settings)`` builds the operator."""
    return _imported(RANK_OPERATORS[name])


def _imported(row: str):
    module, attribute = row.split(":")
    return getattr(importlib.import_module(module), attribute)


def name_of(kind: str, cls: type) -> str:
    """The name under which the class ``cls`` is registered for this kind, else its own name, as "own_name"."""
    target = f"{cls.__module__}:{cls.__name__}"
    for name, row in TABLE[kind].items():
        if row == target:
            return name
    return re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()


def counterpart(settings, kind: str, name: str):
    """Return a new settings object of the class registered as ``name`` under ``kind``.

    It takes its values from ``settings``, whose class has fields of the same names."""
    return load(kind, name)(**{field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)})


def resolve(kind: str, choice):
    """Convert the user's choice of a ``kind``, such as "method", to a settings object, or to None.

    A choice is None, "none", a name, a name with settings in brackets, a settings class, or a settings object. As a
    method, a decomposer of swell.dense stands for Direct(dense_lu=...).

    Raises
    ------
    InputError
        For an unknown name, an unknown setting, or an object of another kind.
    """
    if choice is None or (isinstance(choice, str) and choice.lower() == "none"):
        return None
    if isinstance(choice, str):
        name, arguments = _current(kind, *parse(choice))
        if kind == "method" and name.lower() in TABLE["decomposer"]:
            return load(kind, "direct")(dense_lu=construct(load("decomposer", name), arguments))
        return construct(load(kind, name), arguments)
    if isinstance(choice, functools.partial) or isinstance(choice, type) and dataclasses.is_dataclass(choice):
        choice = choice()                        # a settings class; partial: a former one
    if kind == "method" and isinstance(choice, Preconditioner) and choice.method is not None:
        return counterpart(choice, "method", choice.method)
    if any(isinstance(choice, load(kind, name)) for name in TABLE[kind]):
        return choice
    if kind == "method" and any(isinstance(choice, load("decomposer", name)) for name in TABLE["decomposer"]):
        return load(kind, "direct")(dense_lu=choice)
    raise InputError(f"{kind}={shown(choice)}: expected one of {', '.join(_offered(kind))}, or one of their settings "
                     "objects")
