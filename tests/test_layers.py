"""The layers of DESIGN: imports point down only, Krylov methods know no device, and ``import swell`` is light."""
from __future__ import annotations

import ast
import pathlib
import subprocess
import sys

import pytest
from tests.layers import LEVEL

PACKAGE = pathlib.Path(__file__).parents[1] / "swell"
FILES = sorted(PACKAGE.rglob("*.py"))


def imports(path, types=True):
    """Every module that a file imports, wherever in the file; ``types=False`` leaves out imports for annotations."""
    tree = ast.parse(path.read_text())
    unused = {id(node) for block in ast.walk(tree) if isinstance(block, ast.If) and not types
              and ast.unparse(block.test) == "TYPE_CHECKING" for node in ast.walk(block)}
    for node in ast.walk(tree):
        if id(node) in unused:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module == "swell":
                yield from (f"swell.{alias.name}" for alias in node.names)


def layer(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def require_none(wrong):
    """Fail with every violation of a rule, a line each."""
    wrong = [f"{path.relative_to(PACKAGE)}: {what}" for path, what in wrong]
    assert not wrong, "\n".join(["", *wrong])


def test_imports_point_down():
    wrong = []
    for path in (p for p in FILES if layer(p) != "__init__"):
        here = layer(path)
        if here not in LEVEL:
            wrong.append((path, f"{here} has no place in tests/layers.py"))
            continue
        for module in imports(path):
            parts = module.split(".")
            if parts[0] == "swell" and len(parts) > 1 and parts[1] in LEVEL:
                if parts[1] != here and LEVEL[parts[1]] >= LEVEL[here]:
                    wrong.append((path, f"imports {module}"))
    require_none(wrong)


def test_no_circles():
    """No two files import each other, within functions or through others; a folder's __init__ is left out.

    An annotation may name a class of a file that imports this one: such an import never runs."""
    modules = {".".join(p.relative_to(PACKAGE.parent).with_suffix("").parts): p for p in FILES if p.stem != "__init__"}
    below = {name: {m for m in imports(path, types=False) if m in modules} for name, path in modules.items()}
    while ends := ({name for name, others in below.items() if not others & below.keys()}       # import nothing left
                   | below.keys() - set().union(*below.values())):                             # nothing left imports
        below = {name: others for name, others in below.items() if name not in ends}
    assert not below, f"these import one another, or what does: {', '.join(sorted(below))}"


def test_krylov_methods_know_no_device():
    files = [path for path in FILES if layer(path) == "krylov"]
    assert len(files) > 20
    wrong = []
    for path in files:
        tree = ast.parse(path.read_text())
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        wrong += [(path, f"names {name}") for name in sorted(names & {"cupy", "rank", "cuda", "xp"})]
        wrong += [(path, f"imports {module}") for module in imports(path)
                  if module.split(".")[0] in ("cupy", "cupyx", "mpi4py")]
    require_none(wrong)


def test_files_are_short():
    """Sources of kernels have no limit of lines, as the kernels of a method share their parts."""
    wrong = []
    for path in (*FILES, *(path for ending in ("cu", "cuh", "cpp", "hpp") for path in PACKAGE.rglob(f"*.{ending}"))):
        lines = path.read_text().splitlines()
        if len(lines) > 400 and path.suffix == ".py":
            wrong.append((path, f"{len(lines)} lines"))
        wrong += [(path, f"line {k} has {len(line)} characters") for k, line in enumerate(lines, 1) if len(line) > 120]
    require_none(wrong)


def test_no_keyword_catch_all():
    """No ``**kwargs`` in a signature, but for the options of a solve, whose names `Accepted` checks and shows."""
    wrong = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef) or node.args.kwarg is None:
                continue
            typed = node.args.kwarg.annotation and ast.unparse(node.args.kwarg.annotation).startswith("Unpack[")
            decorated = any(ast.unparse(each).endswith(".shown") for each in node.decorator_list)
            if not (typed and decorated) and path.name != "options.py":
                wrong.append((path, node.name))
    require_none(wrong)


@pytest.mark.parametrize("code", ["import swell", "import swell; swell.names('method'); swell.InputError",
                                  "import swell.cli"])
def test_nothing_heavy_is_imported(code):
    heavy = "[m for m in ('numpy', 'scipy', 'matplotlib', 'rich', 'cupy', 'torch') if m in sys.modules]"
    done = subprocess.run([sys.executable, "-c", f"{code}; import sys; print({heavy})"], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_every_public_name_is_there():
    import swell
    for name in swell.__all__:
        assert getattr(swell, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        swell.nothing
