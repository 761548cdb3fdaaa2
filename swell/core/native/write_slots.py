"""Write C++ headers of the slots that the kernel files include, at build time: `declarations` of core/slots.py as it
stands before every CUDA source.

``python write_slots.py FOLDER swell.krylov:cg …`` writes FOLDER/swell/krylov/cg.hpp, and so on.
"""
import importlib
import pathlib
import sys
import types

PACKAGE = pathlib.Path(__file__).resolve().parents[2]


def bare(name):
    """Put an empty package ``name`` in place of the real one, which would import NumPy and more."""
    package = types.ModuleType(name)
    package.__path__ = [str(PACKAGE.joinpath(*name.split(".")[1:]))]
    sys.modules[name] = package


def main(folder, *files):
    """Write the header of each of ``files``, named package:stem, unless it is there already with this text."""
    bare("swell")
    bare("swell.core")
    declarations = importlib.import_module("swell.core.slots").declarations
    for package, stem in (file.split(":") for file in files):
        parts = package.split(".")
        for k in range(2, len(parts) + 1):
            bare(".".join(parts[:k])) if ".".join(parts[:k]) not in sys.modules else None
        path = pathlib.Path(folder, *parts, f"{stem}.hpp")
        text = f"#pragma once\n{declarations(package, stem)}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
