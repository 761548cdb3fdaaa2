"""swell bench auto: which configurations are sensible, what a record holds, and how regret is counted."""
from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import splu
from tests.support.cases import complex_symmetric, hermitian

from swell import gallery
from swell.bench import auto, families, systems
from swell.core.registry import names, resolve


@pytest.mark.parametrize("A, kind, methods", [
    (gallery.poisson2d(5), "positive diagonal", {"cg"}), (hermitian(), "positive diagonal", {"cg"}),
    (gallery.saddle_point(3), "hermitian", {"minres", "bicgstab", "idrs", "gmres"}),
    (complex_symmetric(), "complex symmetric", {"cocg", "bicgstab", "gmres"}),
    (gallery.convection_diffusion((5, 5)), "general", {"bicgstab", "idrs", "gmres"})])
def test_sensible_configurations(A, kind, methods):
    A = sp.csr_array(A)
    assert auto.class_of(A) == kind
    found = auto.configurations(kind, A.dtype.kind == "c").values()
    assert {c["method"] for c in found} == methods | {"direct"} <= set(names("method"))
    assert all(resolve("precond", c["precond"]) or c["precond"] == "none" for c in found if "precond" in c)


def test_generated_systems_are_what_they_say():
    assert len(systems.GENERATED) >= 40
    small = {name: make() for name, make in systems.GENERATED.items() if int(name.rpartition(":")[2]) <= 3000}
    assert {auto.class_of(A) for A in small.values()} == {"positive diagonal", "hermitian", "complex symmetric", "general"}
    for name, A in small.items():
        assert A.shape[0] == A.shape[1] and np.isfinite(A.data).all(), name


@pytest.mark.parametrize("family", families.FAMILIES)
def test_families_are_regular(family):
    pytest.importorskip("skfem")
    members = families.FAMILIES[family]
    A = members[min(members, key=lambda name: int(name.rpartition(":")[2]))]()
    assert A.shape[0] == A.shape[1] and np.isfinite(A.data).all()
    assert A.diagonal().all() or splu(A.tocsc()).U.diagonal().all()      # structural_rank takes seconds here


def test_both_halves_have_every_family():
    assert not families.FITTED.keys() & families.JUDGED.keys() and not systems.GENERATED.keys() & families.FITTED.keys()
    for family, members in families.FAMILIES.items():
        halves = [len(members.keys() & half.keys()) for half in (families.FITTED, families.JUDGED)]
        assert sum(halves) == len(members) >= 2 and abs(halves[0] - halves[1]) <= 1, family


@pytest.fixture
def one(monkeypatch):
    monkeypatch.setitem(auto.GENERATED, "tiny", lambda: gallery.poisson2d(12))
    monkeypatch.setattr(auto, "CALLS", 2)
    yield "tiny"
    auto.load.cache_clear()


@pytest.mark.parametrize("label, options", [("by itself", {}), ("cg jacobi", {"method": "cg", "precond": "jacobi"}),
                                            ("SuperLU MMD", None)])
def test_a_record(one, label, options):
    record = auto.measure(one, label, options, "cpu", 10.0)
    assert math.isfinite(record["seconds"]) and record["residual"] <= 1e-8 and record["n"] == 144


def test_failures_count_at_the_limit(one):
    record = auto.measure(one, "cg ilu(drop=0.001)", {"method": "cg", "precond": "ilu(drop=0.001)"}, "cpu", 10.0)
    assert record["seconds"] == math.inf and "InputError" in record["failure"]
    own = {"system": "tiny", "label": auto.OWN, "seconds": 0.2, "class": "general", "n": 144, "prediction": 2.0}
    best = {"system": "tiny", "label": "bicgstab ilu0", "seconds": 0.1}
    peer = {"system": "tiny", "label": "SuperLU MMD", "seconds": 0.001}
    told = auto._regret([own, best, peer, record], 10.0)
    assert told["regret"] == pytest.approx(0.2 / auto.FLOOR) and told["inner"] == pytest.approx(2)
    failed = auto._regret([{**own, "seconds": math.inf}, best], 10.0)
    assert failed["regret"] == pytest.approx(100)
    assert told["beyond"] and not failed["beyond"]              # the second has no LU beside it
    table = auto._summary([told | {"set": "fitted"}, failed | {"set": "judged"}])
    assert [row[:2] for row in table] == [("all", 2), ("fitted", 1), ("judged", 1), ("general", 2)]
    assert table[0][5:7] == (2, 1)
