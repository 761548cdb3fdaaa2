"""The places of shared arrays are declared once: in C++ they are what Python says, and no kernel counts them."""
from __future__ import annotations

import pathlib
import re

import pytest

from swell.core import cuda_sources
from swell.core.loop import DirectLoop
from swell.core.slots import STEMS as OF_CORE
from swell.core.slots import Code, Flag, Limit, declarations
from swell.core.stopping import Reason, Stopping
from swell.krylov.slots import STEMS, Shadow
from swell.preconditioners.amg.slots import STEMS as OF_AMG

PACKAGE = pathlib.Path(cuda_sources.__file__).parents[1]
DECLARED = [*(("core", stem, groups) for stem, groups in OF_CORE.items()),
            *(("krylov", stem, groups) for stem, groups in STEMS.items()),
            *(("preconditioners/amg", stem, groups) for stem, groups in OF_AMG.items())]


@pytest.mark.parametrize("package, stem, groups", DECLARED, ids=lambda value: value if isinstance(value, str) else "")
def test_the_compiled_source_begins_with_the_names(package, stem, groups):
    path = cuda_sources.kernel_file(f"swell.{package.replace('/', '.')}", stem)
    source = cuda_sources.source(path)
    assert source.endswith(f'#line 1 "{path.name}"\n' + path.read_text())
    assert path.suffix == ".hpp" or path.with_suffix(".cpp").exists()
    for group in (Flag, Limit, Code, *groups):
        said = re.search(rf"^enum {type(group).__name__} {{ (.*) }};$", source, re.MULTILINE)[1]
        declared = {name: str(place) for name, place in group._asdict().items()}
        assert dict(item.split(" = ") for item in said.split(", ")) == declared
        assert len(group) == len(set(group)), "two names for one place"


def test_a_package_without_slots_gets_the_judge_alone():
    assert declarations("swell.dense", "cm") == declarations("swell.krylov", "no such kernels")


def test_methods_with_a_shadow_vector_begin_alike():
    for stem in ("bicgstab", "bicgstabl", "tfqmr", "qmr"):
        assert STEMS[stem][0][:len(Shadow)] == tuple(Shadow)


def test_codes_are_the_numbers_of_reasons():
    for name, code in Code._asdict().items():
        if code != Code.JUDGED:
            assert name.startswith(Reason.of(code).name)


def test_no_scalar_is_found_by_its_number():
    for path in (PACKAGE / "krylov").rglob("*.*"):
        if path.suffix in (".py", ".cu", ".hpp"):
            assert not re.findall(r"\b(?:s|small|flags|limits|norm2|state)\[\d+\]", path.read_text()), path


@pytest.mark.parametrize("columns", [1, 3])
def test_each_right_hand_side_has_its_own_record(columns):
    from swell.core.devices import make_space
    space = make_space("cpu").for_columns(columns)
    loop = DirectLoop(space, Stopping(maxiter=7), 5)
    assert loop.flags.shape == (columns, len(Flag)) and loop.limits.shape == (columns, len(Limit))
    assert loop.histories.shape == (columns, 8)
