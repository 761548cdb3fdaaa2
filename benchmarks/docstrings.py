"""Print functions of the package, drawn at random, with their docstrings but without their code.

    python benchmarks/docstrings.py [--count 40] [--seed 19] [--root swell]

A reader who does not know swell judges each: do name, signature and docstring tell what the function does, takes and returns?
Functions of every module are drawn, methods and private ones included; special methods and functions without a docstring are
left out. The draw goes by a hash of each function's place, so that functions which are added, renamed or moved replace few.
"""
from __future__ import annotations

import argparse
import ast
import hashlib
import pathlib


def functions(root):
    """Iterate over (place, signature, docstring) of the functions below a folder, in the order of their files."""
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield from (found for child in node.body if (found := described(path, child, f"{node.name}.")))
            elif isinstance(node, ast.Module):
                yield from (found for child in node.body if (found := described(path, child)))


def described(path, node, owner=""):
    """(place, signature, docstring) of a function definition, or None for anything else."""
    if not isinstance(node, ast.FunctionDef) or node.name.startswith("__") or not ast.get_docstring(node):
        return None
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{path}:{owner}{node.name}", f"def {node.name}({ast.unparse(node.args)}){returned}", ast.get_docstring(node)


def main():
    """Draw and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("swell"))
    given = parser.parse_args()
    every = sorted(functions(given.root), key=lambda found: hashlib.sha256(f"{given.seed} {found[0]}".encode()).digest())
    for k, (place, signature, text) in enumerate(every[:given.count], 1):
        print(f"{k}. {place}\n{signature}\n    " + text.replace("\n", "\n    ") + "\n")
    print(f"{min(given.count, len(every))} of {len(every)} functions")


if __name__ == "__main__":
    main()
