"""Every option has an effect, or is an error, or is a note: one row an option, and no field without a thought."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

import swell
from swell import gallery
from swell.core.errors import InputError
from swell.core.registry import TABLE, load, resolve
from swell.core.settings import AS_GIVEN, IN_SINGLE, ON_CPU, ON_GPU, idle_notes
from swell.core.stopping import Stopping
from swell.preconditioners.schwarz import ALONE
from swell.preconditioners.sweeps import TOO_FEW
from swell.preconditioners.transmission import Interface
from swell.transforms.nullspace import NullSpace


class Known(Interface):
    """An interface that is never asked."""

    def terms(self, *given):
        raise AssertionError


# (kind, settings, the field without effect, why): refused wherever the settings alone show it.
REFUSED = [
    ("method", "cg(every=10)", "every", "without between"), ("method", "cg(before=0)", "before", "between=0"),
    ("method", "gmres(restart=20, batch=21)", "batch", "restart=20"),
    ("method", "fgmres(batch=40)", "batch", "restart=30"),
    *(("precond", f"{name}(factor_sweeps=7)", "factor_sweeps", "factor='exact'")
      for name in ("ic", "ilu")),
    ("precond", "ilu(factor=levels, factor_sweeps=7)", "factor_sweeps", "factor='levels'"),
    ("precond", "ilu(pad=True)", "pad", "single entries"), ("precond", "ilu(block=1, pad=True)", "pad", "single entries"),
    *(("precond", f"ilu({which}block=None, pad=True)", "pad", "detected")
      for which in ("", "level=1, ", "drop=0.01, ")),
    *(("precond", f"ilu({which}, level=1)", "level", "the size of entries") for which in ("drop=0.01", "fill=3")),
    ("precond", "ilu(fill=3, factor=sweeps)", "factor", "the size of entries"),
    ("format", "bsr(pad=True)", "pad", "detected"), ("format", "block_sell(block=1, pad=True)", "pad", "blocks of 1"),
    ("precond", "schwarz(overlap=0, kind=additive)", "kind", "overlap=0"),
    ("precond", lambda: swell.Schwarz(interface=Known()), "interface", "transmission='dirichlet'"),
    ("precond", lambda: swell.Schwarz(near_nullspace=np.ones(4)), "near_nullspace", "coarse='none'"),
    ("precond", "direct(dense_solver=is)", "dense_solver", "without a decomposer"),
    ("precond", "direct(dense_lu=pcm, largest=5)", "largest", "full matrix"),
    ("precond", "direct(dense_lu=pcm, ordering=minimum_degree)", "ordering", "full matrix"),
    ("precond", "direct(dense_lu=pcm, package=superlu)", "package", "full matrix"),
    ("precond", lambda: swell.ShiftedLaplacian(shift=0.0, mass=sp.eye_array(3)), "mass", "shift=0"),
    ("precond", lambda: swell.BDDC(subdomains=swell.Subdomains([(np.eye(2), [0, 1])]), partition="rows"), "partition",
     "with subdomains"),
    ("triangular", "sweeps(guard=off, growth=2)", "growth", "guard='off'"),
    ("triangular", "sweeps(count=1, in_place=True)", "in_place", "one sweep"),
    ("triangular", "isai(guard=off, growth=2)", "growth", "guard='off'"),
    *(("smoother", f"{name}(inner={inner}, {field}=0.5)", field, f"inner='{inner}'")
      for name in ("block_jacobi_sweeps", "block_gauss_seidel")
      for inner, field in (("cg", "omega"), ("gauss_seidel", "omega"), ("exact", "inner_tolerance"))),
    *(("smoother", f"{name}(inner=exact, inner_sweeps=3)", "inner_sweeps", "inner='exact'")
      for name in ("block_jacobi_sweeps", "block_gauss_seidel")),
    *(("method", f"stationary(smoother={name}(sweeps=3))", "sweeps", "in stationary") for name in TABLE["smoother"]),
    *(("decomposer", f"{name}(pivot_tolerance=1e-3)", "pivot_tolerance", "pivoting='full'")
      for name in ("gem", "cm", "pcm")),
    ("decomposer", "icm(pivoting=none, pivot_lower=1e-3)", "pivot_lower", "pivoting='none'"),
    ("decomposer", "icm(pivoting=full, pivot_upper=10.0)", "pivot_upper", "pivoting='full'"),
    ("decomposer", "pcm(form=plain, section=64)", "section", "form='plain'"),
]
# (kind, settings, the field, where it has no effect): noted, since only the device or the matrix shows it.
NOTED = [
    ("triangular", "exact(schedule=levels)", "schedule", ON_CPU),
    ("triangular", "exact(single=True)", "single", IN_SINGLE),
    ("triangular", "sweeps(single=True)", "single", IN_SINGLE),
    ("triangular", "sweeps(count=2, in_place=True, guard=off)", "in_place", TOO_FEW),
    ("method", "gmres(basis=single)", "basis", IN_SINGLE), ("method", "fgmres(basis=single)", "basis", IN_SINGLE),
    ("precond", "direct(largest=1000)", "largest", ON_GPU), ("precond", "direct(ordering=colamd)", "ordering", ON_GPU),
    ("precond", "direct(package=superlu)", "package", ON_GPU),
    ("precond", "ilu(factor=levels)", "factor", ON_GPU), ("precond", "ilu(level=1, factor=levels)", "factor", ON_GPU),
    ("precond", "ilu(block=None, factor=levels)", "factor", ON_GPU),
    *(("precond", f"schwarz({field}={value})", field, ALONE)
      for field, value in (("overlap", 2), ("kind", "additive"), ("partition", "graph"))),
    ("precond", "schwarz(transmission=robin)", "transmission", ALONE),
    ("format", "csr(lanes=4)", "lanes", ON_CPU), ("format", "sell(window=64)", "window", AS_GIVEN),
    ("format", "sell(task=64)", "task", ON_CPU),
    ("format", "staircase_sell(window=64)", "window", AS_GIVEN),
    ("stopping", Stopping(every=10), "every", "for gmres"), ("stopping", Stopping(every=10), "every", "for fgmres"),
]
# Fields that act wherever they are, or that are a bound or a permission, which acts where a matrix reaches it.
ACTS = {
    "CG": "between", "SingleReductionCG": "replace", "ResidentCG": "steps", "GMRES": "restart lengthen",
    "FGMRES": "restart lengthen", "BlockGMRES": "restart",
    "BiCGSTAB": "seed", "BiCGSTABL": "l convex seed", "TFQMR": "seed", "QMR": "seed", "IDRS": "s seed",
    "Direct": "largest ordering package dense_lu dense_solver", "Stationary": "smoother every", "BlockJacobi": "block",
    "Schwarz": "domains inner coarse",
    "ShiftedLaplacian": "shift inner", "Deflation": "inner vectors steps family",
    "BDDC": "levels constraints weights dense_lu interior coarse subdomains domains adaptive near_nullspace nodes corners "
            "averages dense_solver",
    "IC": "solve factor ordering shift level", "ILU": "solve ordering pivot shift drop fill block",
    "JacobiSmoother": "omega", "GaussSeidel": "direction coloring", "Chebyshev": "degree fraction steps",
    "BlockJacobiSmoother": "inner asynchronous height", "BlockGaussSeidel": "direction inner height",
    "RuizScaling": "p tolerance maxiter symmetric", "GreedyColoring": "visit", "JonesPlassmann": "seed",
    "Partition": "height separators", "Bisection": "parts", "Sweeps": "guard count upper",
    "ISAI": "guard power longest",
    "SELL": "height", "ELL": "max_fill", "ModifiedSELL": "height", "BSR": "block", "BlockSELL": "block height",
    "AMG": "strength max_row_sum interpolation pmax smoother degree cycle positive coarsest levels dtype restriction",
    "AIR": "strength neighbours distance drop f_sweeps coarsest levels dtype",
    "SmoothedAggregation": "near_nullspace coordinates nodes block strength smoother degree cycle coarsest levels dtype",
    "FieldSplit": "fields inner kind schur", "AMS": "gradient edges coordinates kind inner",
    "Tuned": "products seconds cache", "GEM": "pivoting order", "CM": "pivoting order",
    "PCM": "x pivoting form order",
    "ICM": "x tolerance pivoting section form order", "Getrf": "pivoting", "IS": "x tolerance form",
    "Stopping": "rtol atol maxiter relative_to window growth", "NullSpace": "basis left project",
}


def made(kind, text):
    return text() if callable(text) else text if kind == "stopping" else resolve(kind, text)


def owner(kind, text):
    """The class whose field a row is about."""
    if text in {f"stationary(smoother={name}(sweeps=3))" for name in TABLE["smoother"]}:
        return load("smoother", text.split("=")[1].split("(")[0])
    if callable(text):
        return {"interface": swell.Schwarz, "near_nullspace": swell.Schwarz, "mass": swell.ShiftedLaplacian, "partition": swell.BDDC}[
            next(row[2] for row in REFUSED if row[1] is text)]
    return type(text) if kind == "stopping" else load(kind, text.split("(")[0])


@pytest.mark.parametrize("kind, text, field, why", REFUSED, ids=lambda part: part if isinstance(part, str) else "")
def test_an_option_without_effect_is_refused(kind, text, field, why):
    with pytest.raises(InputError, match=f"{field}=.*has no effect.*") as error:
        made(kind, text)
    assert why in str(error.value) and f"leave {field} out" in str(error.value)


@pytest.mark.parametrize("kind, text, field, where", NOTED)
def test_an_option_without_effect_has_a_note(kind, text, field, where):
    """Also for the devices that are not here: the settings say in which circumstances they are idle."""
    settings = made(kind, text)
    (note,) = idle_notes(settings, (where,))
    assert f"{field}=" in note and f"has no effect {where}: " in note
    assert idle_notes(settings, ()) == () == idle_notes(type(settings)(), (where,))


ENDS = [row for row in NOTED if row[2:] not in (("partition", ALONE), ("in_place", TOO_FEW))]


@pytest.mark.parametrize("kind, text, field, where", ENDS)
def test_the_note_is_on_the_result(kind, text, field, where, device):
    if where in (ON_CPU, ON_GPU) and where != {"cpu": ON_CPU, "cuda": ON_GPU}[device]:
        pytest.skip(f"has its effect on {device}")
    A = gallery.poisson2d(8)
    named = {kind: text, "device": device, "dtype": "float32" if where == IN_SINGLE else "float64", "rtol": 1e-4}
    if kind == "triangular":
        named = named | {"precond": f"ilu(solve={text!r})", "method": "gmres"}
        del named[kind]
    elif kind == "precond":
        named["method"] = "gmres"
        named["dtype"] = "complex128" if field == "transmission" else "float64"
    elif kind == "format":
        named["method"] = "cg"
        A = sp.csr_array(sp.diags_array([2.0 + np.arange(64)], offsets=[0]))            # rows of one length
    elif kind == "stopping":
        named["method"] = where.split()[-1]
        del named["rtol"]
    r = swell.solve(A, np.ones(64), **named)
    found = [note for note in r.notes if "has no effect" in note]
    assert len(found) == 1 and f"{field}=" in found[0] and where in found[0], r.notes


def test_sweeps_of_two_triangles():
    """A note for a point solve, whose second sweep writes elsewhere; none where one triangle has three."""
    A = gallery.poisson2d(8)
    few, many = (swell.solve(A, np.ones(64), method="gmres", device="cpu", precond=f"ilu(solve={solve!r})").notes
                 for solve in ("sweeps(count=2, in_place=True)", "sweeps(count=1, upper=4, in_place=True)"))
    assert any("in_place=True) has no effect with so few sweeps" in note for note in few)
    assert not any("has no effect" in note for note in many)


def test_a_smoother_whose_sweeps_the_method_counts():
    with pytest.raises(InputError, match=r"GaussSeidel\(sweeps=3\) has no effect beside cg"):
        swell.solve(gallery.poisson2d(8), np.ones(64), method="cg", smoother="gauss_seidel(sweeps=3)", device="cpu")


def test_a_growth_that_a_guard_looks_at_stays():
    """A guard builds what it measures by the same settings: no error where nothing is wrong."""
    for solve in ("sweeps(guard=more, growth=1e-3)", "isai(guard=more, growth=1e-3)", "sweeps(growth=1e-9)"):
        assert swell.solve(gallery.poisson2d(8), np.ones(64), method="gmres", precond=f"ilu(solve={solve!r})",
                           device="cpu").converged


def test_defaults_say_nothing(device):
    A = gallery.poisson2d(8)
    for named in ({"method": "cg", "precond": "ic0"}, {"method": "gmres", "precond": "ilu(block=None)"},
                  {"method": "direct"}, {"method": "gmres", "precond": "schwarz"}, {"method": "cg", "format": "sell"},
                  {}):
        notes = swell.solve(A, np.ones(64), device=device, **named).notes
        assert not any("has no effect" in note for note in notes), notes


def test_every_field_was_thought_of():
    """A new field is in a row above, or in ``ACTS``."""
    classes = {load(kind, name) for kind, rows in TABLE.items() for name in rows} | {Stopping, NullSpace}
    seen = {(owner(kind, text), field) for kind, text, field, _ in REFUSED + NOTED}
    for cls in classes:
        fields = {f.name for f in dataclasses.fields(cls)}
        acts = set(ACTS.get(cls.__name__, "").split())
        rows = {field for of, field in seen if of is cls}
        assert acts | rows == fields, (cls.__name__, "missing", fields - acts - rows, "unknown", (acts | rows) - fields)
    assert ACTS.keys() <= {cls.__name__ for cls in classes}
