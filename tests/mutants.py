"""Mutation testing: does the suite notice that a statement of the package has changed?

    python tests/mutants.py --list                                  # the mutants of a seed, without running anything
    python tests/mutants.py FOLDER --out mutants.jsonl              # FOLDER: a clone with its environment in FOLDER/.venv

A mutant is one statement, drawn by a seed over all statements of the package, with one change: another comparison, another
operator, a number that is one larger, a condition turned round, ``and`` for ``or``, or the statement left out. For each one the
tests run in FOLDER until the first fails: the files that import the mutated module, those of its package, then all others.
A mutant that no test notices has survived. Mutants of CUDA sources are not made. Records are appended. A second call goes on
after the last, and, without ``--near``, runs the other files for the mutants that are still open.
"""
from __future__ import annotations

import argparse
import ast
import copy
import json
import pathlib
import random
import re
import subprocess
import time

ROOT = pathlib.Path(__file__).parents[1]
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
               ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
             ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And}
LEFT_OUT = ast.Assign, ast.AugAssign, ast.Expr, ast.Raise, ast.Delete
TAKEN = (*LEFT_OUT, ast.Return, ast.If, ast.While, ast.For, ast.AnnAssign, ast.Assert)


def statements(tree):
    """Every statement that computes something, docstrings and declarations of fields left out."""
    for node in ast.walk(tree):
        if isinstance(node, TAKEN) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) \
                and not (isinstance(node, ast.AnnAssign) and node.value is None):
            yield node


def own_parts(statement):
    """The nodes of a statement, without those of the statements inside it."""
    waiting = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def changes(statement):
    """(what, function that changes the statement in place) for each change that is possible."""
    for node in own_parts(statement):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
            yield "comparison", lambda node=node: node.ops.__setitem__(0, COMPARISONS[type(node.ops[0])]())
        elif isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)) and type(node.op) in OPERATORS:
            yield "operator", lambda node=node: setattr(node, "op", OPERATORS[type(node.op)]())
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield "number", lambda node=node: setattr(node, "value", node.value + 1)
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield "truth", lambda node=node: setattr(node, "value", not node.value)
    if isinstance(statement, (ast.If, ast.While)):
        yield "condition", lambda: setattr(statement, "test", ast.UnaryOp(ast.Not(), statement.test))
    if isinstance(statement, LEFT_OUT):
        yield "left out", None


def mutant(path, place, draw):
    """(line, what, before, after, new source) of the statement number ``place`` of a file, or None if nothing in it can change."""
    source = path.read_text(encoding="utf-8")
    statement = list(statements(ast.parse(source)))[place]
    possible = list(changes(statement))
    if not possible:
        return None
    k = draw.randrange(len(possible))
    what, header = possible[k][0], copy.copy(statement)
    if hasattr(header, "body"):
        header.body, header.orelse = [ast.Pass()], []
    before = ast.unparse(header)
    if what == "left out":
        after, whole = "pass", ast.copy_location(ast.Pass(), statement)
    else:
        possible[k][1]()
        header = copy.copy(statement)
        if hasattr(header, "body"):
            header.body, header.orelse = [ast.Pass()], []
        after, whole = ast.unparse(header), statement
    lines = source.splitlines()
    indent = re.match(r"\s*", lines[statement.lineno - 1])[0]
    made = ("\n" + indent).join(ast.unparse(ast.fix_missing_locations(whole)).splitlines())
    text = "\n".join([*lines[:statement.lineno - 1], indent + made, *lines[statement.end_lineno:]]) + "\n"
    return (statement.lineno, what, before, after, text) if parses(text) else None


def parses(text) -> bool:
    """True for the source of a module."""
    try:
        ast.parse(text)
    except SyntaxError:                          # two statements on one line
        return False
    return True


def drawn(seed, count):
    """Iterate over (path, line, what, before, after, source) of ``count`` mutants."""
    draw = random.Random(seed)
    places = [(path, k) for path in sorted((ROOT / "swell").rglob("*.py"))
              for k in range(len(list(statements(ast.parse(path.read_text(encoding="utf-8"))))))]
    while count:
        path, k = draw.choice(places)
        made = mutant(path, k, draw)
        if made and made[2] != made[3]:
            count -= 1
            yield path.relative_to(ROOT), *made


def near_and_far(folder, path):
    """Two lists of test files: those that import the mutated module, then those of its package; and the others."""
    parts = [part for part in path.parent.parts[1:] if part != "kernels"]
    names = rf"\b{parts[-1] if parts else 'swell'}(\.kernels)?(\.| import [^\n]*\b){path.stem}\b"
    files = sorted((folder / "tests").rglob("test_*.py"))
    near = [file for file in files if file.stem == f"test_{path.stem}" or re.search(names, file.read_text(encoding="utf-8"))]
    near += [file for file in files if parts and file.parts[len(folder.parts) + 1] == parts[0] and file not in near]
    return [[str(file.relative_to(folder)) for file in some] for some in (near, [file for file in files if file not in near])]


def noticed(folder, path, source, steps, limit):
    """(outcome, the first failure or "", seconds) of lists of test files, one after the other, with a file's other source."""
    file, start = folder / path, time.monotonic()
    original = file.read_text(encoding="utf-8")
    file.write_text(source, encoding="utf-8")
    try:
        for files in filter(None, steps):
            done = subprocess.run([folder / ".venv/bin/python", "-m", "pytest", "-q", "-x", "-n", "2", "-p", "no:cacheprovider", *files],
                                  cwd=folder, capture_output=True, text=True, timeout=limit)
            failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
            if done.returncode not in (0, 5):                    # 5: nothing but skipped tests
                return "killed", (failed or [""])[0][:200], time.monotonic() - start
        return "survived", "", time.monotonic() - start
    except subprocess.TimeoutExpired:
        return "timed out", "", time.monotonic() - start
    finally:
        file.write_text(original, encoding="utf-8")


def main():
    """List the mutants, or run the suite on each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--count", type=int, default=80)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("mutants.jsonl"))
    parser.add_argument("--limit", type=float, default=1800, help="seconds for each mutant")
    parser.add_argument("--near", action="store_true", help="only the files near the mutated module; who survives is open")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    if not given.list and given.folder is None:
        parser.error("name the folder of a clone whose files may be changed, or --list")
    records = [json.loads(line) for line in open(given.out, encoding="utf-8")] if given.out.exists() else []
    done = {record["mutant"] for record in records if given.near or record["outcome"] != "open"}
    for k, (path, line, what, before, after, source) in enumerate(drawn(given.seed, given.count)):
        print(f"{k} {path}:{line} {what}: {before!r} -> {after!r}", flush=True)
        if given.list or k in done:
            continue
        near, far = near_and_far(given.folder.resolve(), path)
        steps = [near] if given.near else [far] if any(record["mutant"] == k for record in records) else [near, far]
        outcome, first, seconds = noticed(given.folder.resolve(), path, source, steps, given.limit)
        if given.near and outcome != "killed":
            outcome = "open"
        print(f"    {outcome} after {seconds:.0f} s {first}", flush=True)
        with open(given.out, "a", encoding="utf-8") as file:
            file.write(json.dumps({"mutant": k, "place": f"{path}:{line}", "what": what, "before": before, "after": after,
                                   "outcome": outcome, "by": first, "seconds": round(seconds)}) + "\n")


if __name__ == "__main__":
    main()
