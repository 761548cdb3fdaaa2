"""What a release consists of agrees: version, bounds, Python versions; the workflow runs commands that there are."""
from __future__ import annotations

import fnmatch
import os
import pathlib
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
import types

import pytest

import swell
from swell.cli import COMMANDS

yaml = pytest.importorskip("yaml", reason="needs PyYAML: pip install '.[test]'")
ROOT = pathlib.Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT, BUILD = PYPROJECT["project"], PYPROJECT["tool"]["scikit-build"]
RECIPE, VARIANTS, CITATION, WORKFLOW = (yaml.safe_load((ROOT / path).read_text("utf-8")) for path in (
    "conda/recipe.yaml", "conda/variants.yaml", "CITATION.cff", ".github/workflows/ci.yml"))
JOBS = WORKFLOW["jobs"]
LINES = [(job, step["run"]) for job, does in JOBS.items() for step in does["steps"] if "run" in step]
CONDA_NAMES = {"matplotlib": "matplotlib-base"}
TESTED = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", name)]


def bounds(requirements):
    """By package, its lowest version."""
    return dict(re.match(r"([\w-]+) ?>=([\d.]+)", line).groups() for line in requirements)


def newest_heading():
    return re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)[1]


# -- one version, one list of dependencies ------------------------------------------------------------------------------

def test_the_version_is_written_once_and_repeated_rightly():
    assert PROJECT["dynamic"] == ["version"]
    assert BUILD["metadata"]["version"]["input"] == "swell/__init__.py"
    assert CITATION["version"] == RECIPE["context"]["version"] == swell.__version__
    assert newest_heading().split(" - ")[0] == swell.__version__


def test_the_newest_version_has_a_date_or_is_unreleased():
    """Keep a Changelog's headings, and its kinds of change."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings and all(re.fullmatch(r"\d+\.\d+\.\d+ - (unreleased|\d{4}-\d\d-\d\d)", line) for line in headings)
    assert all(line.endswith("unreleased") == (k == 0) or k == 0 for k, line in enumerate(headings))
    assert set(re.findall(r"^### (.*)$", text, re.MULTILINE)) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed",
                                                                  "Security"}


def test_the_recipe_has_the_bounds_of_the_package():
    own = {CONDA_NAMES.get(name, name): lowest for name, lowest in bounds(PROJECT["dependencies"]).items()}
    python, *run = RECIPE["requirements"]["run"]
    assert bounds(run) == own and python == "python >=${{ python_min }}"
    assert VARIANTS["python_min"] == [PROJECT["requires-python"].removeprefix(">=")] == TESTED[:1]
    assert RECIPE["source"] == {"path": ".."} and "noarch" not in RECIPE["build"]
    name, _, function = RECIPE["build"]["python"]["entry_points"][0].partition(" = ")
    assert PROJECT["scripts"] == {name: function}


def test_the_recipe_renders():
    rattler = pytest.importorskip("rattler_build", reason="rendering needs py-rattler-build: pip install '.[release]'")
    recipe = rattler.Stage0Recipe.from_file(ROOT / "conda" / "recipe.yaml")
    rendered, = recipe.render(rattler.VariantConfig.from_file(ROOT / "conda" / "variants.yaml"))
    made = rendered.recipe.to_dict()
    assert made["package"] == {"name": "swell", "version": swell.__version__}
    assert f"python >={TESTED[0]}" in made["requirements"]["run"]


def test_the_citation_has_the_keys_of_its_format():
    assert {"cff-version", "message", "title", "authors", "license"} <= CITATION.keys()
    assert CITATION["license"] == PROJECT["license"] and CITATION["cff-version"] == "1.2.0"
    assert [author["name"] for author in CITATION["authors"]] == [author["name"] for author in PROJECT["authors"]]


def test_a_release_is_dated_in_the_citation_too():
    date = newest_heading().split(" - ")[1]
    assert str(CITATION.get("date-released", "unreleased")) == date
    assert CITATION["version"] == swell.__version__ and "abstract" in CITATION and "keywords" in CITATION


def test_binder_installs_these_sources():
    extra, = re.fullmatch(r"\.\[(\w+)\]\n", (ROOT / "binder" / "requirements.txt").read_text()).groups()
    assert extra in PROJECT["optional-dependencies"]
    assert (ROOT / "binder" / "runtime.txt").read_text().strip().removeprefix("python-") in TESTED


# -- wheel and sdist ----------------------------------------------------------------------------------------------------

def test_the_wheel_takes_every_file_of_the_package():
    """The wheel takes the folder swell, but C++ sources that only a build needs."""
    assert BUILD["wheel"]["packages"] == ["swell"]
    assert BUILD["wheel"]["exclude"] == ["swell/**/*.cpp", "swell/core/native/*"]
    files = [path for path in (ROOT / "swell").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {".cu", ".cuh", ".hpp", ".json", ".pyi", ".typed"} <= {path.suffix for path in files}


def test_the_manifest_names_what_there_is():
    for line in (ROOT / "MANIFEST.in").read_text().splitlines():
        command, *named = line.split()
        assert command in ("graft", "include", "global-exclude")
        assert command == "global-exclude" or all((ROOT / name).exists() for name in named), line


def test_a_compiler_from_pypi_where_there_is_none(monkeypatch, tmp_path, capsys):
    made = types.ModuleType("scikit_build_core.build")
    for name in ("build_sdist", "get_requires_for_build_sdist", "prepare_metadata_for_build_wheel",
                 "prepare_metadata_for_build_editable"):
        setattr(made, name, None)
    made.get_requires_for_build_wheel = made.get_requires_for_build_editable = lambda settings=None: ["ninja"]
    made.build_wheel = made.build_editable = lambda *arguments: os.environ.get("CXX")
    package = types.ModuleType("scikit_build_core")
    package.build = made
    monkeypatch.setitem(sys.modules, "scikit_build_core", package)
    monkeypatch.setitem(sys.modules, "scikit_build_core.build", made)
    backend = runpy.run_path(str(ROOT / "build_backend.py"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "mine")
    assert backend["get_requires_for_build_wheel"]() == ["ninja"] and backend["build_wheel"]("folder") == "mine"
    monkeypatch.delenv("CXX")
    assert backend["get_requires_for_build_editable"]() == ["ninja", "ziglang>=0.14"]
    assert backend["build_editable"]("folder") == "python-zig c++" and "no C++ compiler" in capsys.readouterr().err
    monkeypatch.delenv("CXX")
    (tmp_path / "c++").touch(mode=0o755)
    assert backend["get_requires_for_build_wheel"]() == ["ninja"] and backend["build_wheel"]("folder") is None
    assert BUILD["wheel"]["packages"] and PYPROJECT["build-system"]["build-backend"] == "build_backend"


# -- the workflow -------------------------------------------------------------------------------------------------------

def test_every_job_says_where_it_runs_and_for_how_long():
    assert {"ubuntu-latest", "macos-latest", "windows-latest"} == set(JOBS["basic-tests"]["strategy"]["matrix"]["os"])
    for job in JOBS.values():
        assert job["runs-on"] and job["timeout-minutes"]
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])


def test_the_workflow_runs_every_python_version():
    run = {version for job in JOBS.values() for version in job.get("strategy", {}).get("matrix", {}).get("python", ())}
    assert set(TESTED) < run == {*TESTED, "3.14"}           # which has no classifier before it has passed


@pytest.mark.parametrize("job, line", LINES, ids=[f"{job}-{k}" for k, (job, _) in enumerate(LINES)])
def test_the_workflow_runs_what_there_is(job, line):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in line.split(" && "):
        words = shlex.split(command)
        assert words[0] != "make" or words[1] in targets, line
        assert words[0] != "swell" or words[1] in COMMANDS, line
        if "pytest" in words:
            assert [w for w in words if w.startswith("tests/")] and all((ROOT / w).exists() for w in words
                                                                        if w.startswith("tests/")), line
        for extra in re.findall(r"\.\[([\w,-]+)\]", command):
            assert set(extra.split(",")) <= PROJECT["optional-dependencies"].keys(), line


def test_the_oldest_versions_are_the_bounds():
    line = next(line for job, line in LINES if job == "oldest-versions" and "install" in line)
    pinned = dict(re.findall(r"([\w-]+)==([\d.]+)\.\*", line))
    lowest = bounds(PROJECT["dependencies"])
    assert pinned.keys() == lowest.keys()
    assert all(f"{pinned[name]}.".startswith(f"{lowest[name]}.") for name in lowest)


def test_the_workflow_gives_the_package_its_address(tmp_path):
    """The sources know of no host; the job that builds the package appends its URLs to pyproject.toml."""
    step = next(step for step in JOBS["package"]["steps"] if "HOME_URL" in step.get("env", {}))
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text("utf-8"), "utf-8")
    subprocess.run(["bash", "-ec", step["run"]], cwd=tmp_path, check=True,
                   env={"HOME_URL": "https://host.example/swell"})
    made = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))
    assert {"Repository", "Changelog", "Documentation", "Issues"} == made["project"]["urls"].keys()
    assert all(url.startswith("https://host.example/swell") for url in made["project"]["urls"].values())
    assert {**made["project"], "urls": None} == {**PROJECT, "urls": None}


# -- what the pages say -------------------------------------------------------------------------------------------------

def test_the_pages_name_the_systems_that_are_untested_and_the_architectures():
    compiled = (ROOT / "tests" / "core" / "test_cuda_compiles.py").read_text("utf-8")
    text = (ROOT / "docs" / "INSTALL.md").read_text("utf-8")
    untested = "macOS and Windows are untested" in text
    assert untested != any("Microsoft" in name or "MacOS" in name for name in PROJECT["classifiers"])
    for architecture in re.search(r"^ARCHITECTURES = ([\d, ]+)", compiled, re.MULTILINE)[1].split(","):
        assert f"sm_{architecture.strip()}" in text
    for name, lowest in bounds(PROJECT["dependencies"]).items():
        assert f"{name} {lowest}" in text.lower(), f"docs/INSTALL.md does not say {name} {lowest}"
