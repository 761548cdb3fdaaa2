"""OpenFOAM cases of laminar incompressible flow: the mesh, U and p of a time, the viscosity, the control of time.

    case = fvm.read_case("cavity")
    solution = case.flow.solve(start=case.start)
    case.write("100", solution)                  # folder 100 with U, p and phi

Boundary conditions, as OpenFOAM names them: `VELOCITY` and `PRESSURE`. The schemes and solvers of a case (fvSchemes,
fvSolution) are not read: swell has its own. Of a decomposed case each rank reads and writes the fields in its folder
processor<k>.
"""
from __future__ import annotations

import fnmatch
import math
import re
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from swell.core.errors import InputError
from swell.io.files import as_path
from swell.pde.fvm.boundary import UNCONDITIONED, Dirichlet, InletOutlet, Neumann, Symmetry
from swell.pde.fvm.decomposing import Piece, decompose
from swell.pde.fvm.foam_dictionary import FoamDictionary, number, text_of, values
from swell.pde.fvm.foam_writer import write_field
from swell.pde.fvm.mesh import CUT, Mesh
from swell.pde.fvm.reading import read_mesh
from swell.pde.fvm.flow import Flow
from swell.pde.fvm.solution import FlowSolution

VELOCITY = {"fixedValue": "value", "noSlip": "", "movingWallVelocity": "value", "zeroGradient": "", "slip": "",
            "symmetry": "", "symmetryPlane": "", "inletOutlet": "inletValue",
            "pressureInletOutletVelocity": ""}
PRESSURE = ("fixedValue", "zeroGradient", "fixedFluxPressure", "slip", "symmetry", "symmetryPlane")
MIRRORS = "slip", "symmetry", "symmetryPlane"
OPEN = "zeroGradient", "inletOutlet", "pressureInletOutletVelocity"
TRANSIENT = "icoFoam", "pisoFoam", "pimpleFoam"
STEADY = ("simpleFoam",)
PROCESSOR = "processor"                      # kind of a patch of a part that leads to another one
REPEATED, REPEATED_GROUP = re.compile(r"[*+{]"), re.compile(r"\)[*+{]")
MOST_WAYS = 1e8                              # of sharing a name among the repetitions of a pattern: some seconds
VOLUME_FLUX = [["0", "3", "-1", "0", "0", "0", "0"]]


@dataclass(eq=False)
class Case:
    """A case, ready to be solved.

    Attributes
    ----------
    path : Path
    mesh : Mesh
        A PartMesh, of a decomposed case.
    folder : Path
        The folder of the times: the case's, or this rank's folder processor<k>.
    flow : Flow
    start : FlowSolution
        U and p of the time that the run starts from, with the fluxes of the file phi, or else of U.
    time : str
        The name of this time's folder.
    viscosity : float
        ν in m²/s.
    application : str
        Of controlDict; "" if it does not say.
    transient : bool or None
        By the application; None if swell does not know it.
    dt, end, write_every : float or None
        deltaT, endTime, and the time between two outputs, of controlDict.
    notes : list of str
        What was read in another way than OpenFOAM would.
    """

    path: Path
    mesh: Mesh
    folder: Path
    flow: Flow
    start: FlowSolution
    time: str
    viscosity: float
    application: str = ""
    transient: bool | None = None
    dt: float | None = None
    end: float | None = None
    write_every: float | None = None
    notes: list = field(default_factory=list)
    _files: dict = field(default_factory=dict, repr=False)

    def write(self, time, solution):
        """Write U, p and phi of a FlowSolution into the folder ``time`` of the case, as OpenFOAM's fields; of a
        decomposed case each rank writes its part, and all ranks call it together.

        Patches keep the conditions with which they were read."""
        with self.mesh.agreed():
            _write(self.folder / str(time), self.mesh, self._files, solution)

    def decompose(self, parts) -> list:
        """Write the case in parts, as OpenFOAM's decomposePar does: folders processor0, processor1, ... with the mesh,
        and U, p and phi of the start. Return the cells of each part; see `fvm.decompose`."""
        cells, part = decompose(self.mesh, parts, self.path), np.empty(self.mesh.n_cells, np.int64)
        for rank, members in enumerate(cells):
            part[members] = rank
        for rank, members in enumerate(cells):
            piece, start = Piece.of(self.mesh, part, rank), self.start
            fluxes = start.fluxes[piece.faces]
            here = replace(start, velocity=start.velocity[members], p=start.p[members], mesh=piece.mesh,
                           fluxes=np.where(piece.backwards, -fluxes, fluxes))
            among = {patch.name: piece.faces[piece.mesh.patch(patch.name).faces] - patch.start
                     for patch in self.mesh.patches}
            _write(self.path / f"processor{rank}" / self.time, piece.mesh, self._files, here, among)
        return cells


def _write(folder, mesh, files, solution, among=None):
    """Write U, p and phi of a FlowSolution of ``mesh``. ``files``: U and p as they were read; ``among``, of a part of
    the mesh that was read: patch name → the positions of its faces on the whole patch."""
    patches = mesh.patches
    for name, kind, dimensions, numbers in (("U", "volVectorField", "[0 1 -1 0 0 0 0]", solution.velocity),
                                            ("p", "volScalarField", "[0 2 -2 0 0 0 0]", solution.p)):
        file = files[name]
        entries = file.entries["boundaryField"]
        says, everywhere = {}, mesh.with_ghosts(numbers)
        for patch in patches:
            if patch.kind in (*UNCONDITIONED, PROCESSOR):
                says[patch.name] = {"type": [_kind(patch)]}
                if patch.kind == CUT:
                    says[patch.name]["value"] = ["nonuniform", everywhere[mesh.behind(patch)]]
            elif patch.size or among or mesh.ranks is not None:   # of a part: it may have faces in another one
                says[patch.name] = _of_patch(file, entries, patch)
            else:
                says[patch.name] = entries.get(patch.name, {"type": ["zeroGradient"]})
            if patch.name in (among or {}):
                says[patch.name] = _restricted(says[patch.name], among[patch.name])
        write_field(folder, name, kind, dimensions, numbers, says)
    known = *UNCONDITIONED, *MIRRORS, PROCESSOR
    through = {patch.name: {"type": [_kind(patch) if patch.kind in known else "calculated"]}
               | ({} if patch.kind == "empty" else {"value": ["nonuniform", solution.fluxes[patch.faces]]})
               for patch in patches}
    write_field(folder, "phi", "surfaceScalarField", "[0 3 -1 0 0 0 0]", solution.fluxes[:mesh.neighbour.size], through)


def _restricted(entries, faces) -> dict:
    """Return a patch's entries with their lists restricted to ``faces``."""
    return {key: [word[faces] if isinstance(word, np.ndarray) else word for word in words]
            for key, words in entries.items()}


def _kind(patch) -> str:
    """Return the type of a patch as OpenFOAM names it."""
    if patch.kind in (CUT, PROCESSOR):
        return "processorCyclic" if patch.neighbour else "processor"
    return patch.kind


def read_case(path, time=None, laminar=False, ranks=None) -> Case:
    """Read an OpenFOAM case.

    Parameters
    ----------
    path : str or path-like
        The case's folder, with constant/polyMesh.
    time : str, optional
        The folder of the start, such as "0", or "latest"; by default what system/controlDict says, else "0".
    laminar : bool
        Solve a case with a turbulence model without it; otherwise such a case is refused.
    ranks : Communicator, optional
        The result of ``swell.distributed.init()``, in a collective call. If the case is decomposed into as many parts
        as there are ranks, each rank reads its own part. Otherwise every rank reads the whole.

    Raises
    ------
    InputError
        For missing or damaged files, fields of another mesh, conditions that are not known or do not fit together, a
        patch without a condition, or a viscosity that is not positive.
    """
    with nullcontext() if ranks is None else ranks.agreed():
        return _read(as_path(path), time, laminar, ranks)


def _read(path, time, laminar, ranks) -> Case:
    """Read a case for `read_case`, whose arguments these are."""
    if path.is_file():
        raise InputError(f"{path} is a file: expected the folder of an OpenFOAM case, with constant/polyMesh, 0/U and "
                         "0/p. For a mesh of another format write a case: fvm.write_polymesh(mesh, case)")
    mesh = read_mesh(path, ranks)
    folder = path if mesh.ranks is None else path / f"processor{mesh.ranks.rank}"
    control = _optional(path / "system", "controlDict")
    time = _start(folder, time, control)
    U, p = (FoamDictionary(folder / time, name) for name in ("U", "p"))
    velocity, pressure = _conditions(mesh, U, p)
    nu = _viscosity(path)
    notes = _model(path, laminar)
    fields = _fields(mesh, U, p)
    has_fluxes = any((folder / time / name).exists() for name in ("phi", "phi.gz"))
    if ranks is not None:
        ranks.require_equal((time, nu, has_fluxes), "the case (time, viscosity, whether there are fluxes phi)")
    flow = Flow(mesh, velocity, nu, pressure)
    start = FlowSolution(*fields, flow.fluxes_of(fields[0]), False, np.zeros((0, 2)), (0, 0), mesh, [])
    if has_fluxes:
        _read_fluxes(mesh, FoamDictionary(folder / time, "phi"), start.fluxes)
    if (path / "system" / "fvSchemes").exists() or (path / "system" / "fvSolution").exists():
        notes.append("system/fvSchemes and fvSolution are not read: swell's schemes, relaxation and tolerances hold")
    application = text_of(control.get("application", []))
    transient = True if application in TRANSIENT else False if application in STEADY else None
    dt, end = (number(control[name], f"{path / 'system' / 'controlDict'}: {name}") if name in control else None
               for name in ("deltaT", "endTime"))
    return Case(path, mesh, folder, flow, start, time, nu, application, transient, dt, end,
                _write_every(path, control, dt), notes, {"U": U, "p": p})


def _optional(folder, name) -> dict:
    """Return the entries of a dictionary file; {} without the file."""
    there = (folder / name).exists() or (folder / f"{name}.gz").exists()
    return FoamDictionary(folder, name).entries if there else {}


def _start(path, time, control) -> str:
    """Return the name of the folder of the start."""
    folders = {}
    for folder in path.iterdir():
        try:
            folders[float(folder.name)] = folder.name
        except ValueError:
            continue
    if not folders:
        divided = path.name.startswith("processor") and (path.parent / "0").is_dir()
        raise InputError(f"{path} has no folder of a time, such as 0, with the files U and p: "
                         + ("decompose the fields, too (decomposePar), or remove the folders processor0, processor1, "
                            "...: each rank then takes its part of the whole case" if divided else
                            "write the start there"))
    asked = time
    if asked is None:
        begin = text_of(control.get("startFrom", ["startTime"]))
        asked = {"latestTime": "latest", "firstTime": folders[min(folders)]}.get(begin) or text_of(
            control.get("startTime", ["0"]))
    if asked == "latest":
        return folders[max(folders)]
    try:
        return folders[float(asked)]
    except (ValueError, KeyError):
        raise InputError(f"{path} has no folder of the time {asked}: there are {', '.join(sorted(folders.values()))}"
                         ) from None


def _conditions(mesh, U, p):
    """Return (velocity, pressure): the conditions by patch of the files U and p, as `Flow` takes them."""
    fields = {}
    for file in (U, p):
        boundary = file.entries.get("boundaryField")
        if not isinstance(boundary, dict):
            raise InputError(f"{file.path} has no boundaryField: expected a condition for each patch")
        fields[file] = boundary
    velocity, pressure = {}, {}
    for patch in mesh.patches:
        if patch.kind in UNCONDITIONED or not patch.size and mesh.ranks is None:
            continue                             # a patch without faces on this rank may have some on others
        one, other = (_of_patch(file, fields[file], patch) for file in (U, p))
        kind, of_p = (" ".join(map(str, entries.get("type", ["nothing"]))) for entries in (one, other))
        for file, word, known in ((U, kind, VELOCITY), (p, of_p, PRESSURE)):
            if word not in known:
                raise InputError(f"{file.path}: patch {patch.name!r} has the condition {word}, which is not known: "
                                 f"swell knows {', '.join(known)}")
        fixed = of_p == "fixedValue"
        if fixed != (kind in OPEN):
            raise InputError(f"patch {patch.name!r} has {kind} for U and {of_p} for p: expected fixedValue for p "
                             f"where U is {', '.join(OPEN)}, and zeroGradient for p elsewhere")
        if fixed:
            pressure[patch.name] = Dirichlet(_values(p, other, "value", patch, 1))
        velocity[patch.name] = _velocity(U, one, kind, patch)
    return velocity, pressure


def _velocity(U, entries, kind, patch):
    """Return the condition of a patch from its entries in the file U."""
    if kind in MIRRORS:
        return Symmetry()
    if kind == "zeroGradient":
        return Neumann()
    if kind == "pressureInletOutletVelocity":
        return InletOutlet((0.0, 0.0, 0.0))
    if kind == "noSlip":
        return Dirichlet((0.0, 0.0, 0.0))
    value = _values(U, entries, VELOCITY[kind], patch, 3)
    return InletOutlet(value) if kind == "inletOutlet" else Dirichlet(value)


def _values(file, entries, key, patch, width):
    if not patch.size:
        return np.zeros((0, width) if width > 1 else 0)
    if key not in entries:
        raise InputError(f"{file.path}: patch {patch.name!r} has no {key}: expected {key} uniform ..., or "
                         "nonuniform ...")
    return values(entries[key], patch.size, width, f"{file.path}: {key} of patch {patch.name!r}",
                  f"faces in patch {patch.name!r}")


def _of_patch(file, conditions, patch):
    """Return a patch's entries: its own, else the last fitting pattern's, else its kind in the mesh, if this
    is a condition."""
    name = patch.name
    if isinstance(conditions.get(name), dict):
        return conditions[name]
    for pattern, entries in reversed(conditions.items()):
        try:
            fits = _matches(file, pattern, name)
        except re.error:
            fits = False
        if fits and isinstance(entries, dict):
            return entries
    if patch.kind in MIRRORS:
        return {"type": [patch.kind]}
    raise InputError(f"{file.path} has no condition for patch {name!r}: it names {', '.join(conditions) or 'none'}")


def _matches(file, pattern, name) -> bool:
    """True if the name of a patch fits ``pattern``, an expression or a name with wildcards in the file ``file``.

    Python's matcher may try every way to share a name among repetitions and choices. A pattern for which these are too
    many is refused."""
    groups = max(pattern.count("("), 1)
    ways = (len(REPEATED.findall(pattern)) * math.log(len(name) + 1) + pattern.count("?") * math.log(2)
            + groups * math.log(1 + pattern.count("|") / groups))
    if pattern != name and (ways > math.log(MOST_WAYS) or REPEATED_GROUP.search(pattern)):
        raise InputError(f"{file.path}: the pattern {pattern[:60]!r} repeats a group, or repeats too often, to be "
                         "matched in bounded time: write one entry for each patch, or a simpler pattern such as "
                         "'wall.*'")
    return bool(re.fullmatch(pattern, name)) or fnmatch.fnmatchcase(name, pattern)


def _viscosity(path) -> float:
    """Return ν of constant/transportProperties, or physicalProperties."""
    for name in ("transportProperties", "physicalProperties"):
        entries = _optional(path / "constant", name)
        if "nu" in entries:
            what = f"{path / 'constant' / name}: nu"
            nu = number(entries["nu"], what)
            if not 0 < nu < np.inf:
                raise InputError(f"{what} is {nu:g}: expected a positive kinematic viscosity, m²/s")
            return nu
    raise InputError(f"{path / 'constant'} has no transportProperties with nu: write the kinematic viscosity there, "
                     "such as nu 1e-5;")


def _model(path, laminar) -> list:
    """Return notes on a turbulence model that is left out; raise InputError unless ``laminar`` allows it."""
    for name in ("turbulenceProperties", "momentumTransport"):
        kind = " ".join(map(str, _optional(path / "constant", name).get("simulationType", ["laminar"])))
        if kind != "laminar":
            if not laminar:
                raise InputError(f"{path / 'constant' / name} asks for {kind}: swell solves laminar flow alone: give "
                                 "laminar=True (--laminar) to solve it without the model")
            return [f"the turbulence model {kind} of constant/{name} is left out: the flow is laminar"]
    return []


def _fields(mesh, U, p) -> list:
    """Return [velocity, pressure] of the start."""
    fields = []
    for file, width in ((U, 3), (p, 1)):
        words = file.entries.get("internalField")
        if not isinstance(words, list):
            raise InputError(f"{file.path} has no internalField: expected uniform ... or nonuniform ...")
        fields.append(values(words, mesh.n_cells, width, f"{file.path}: internalField", "cells"))
        if not np.isfinite(fields[-1]).all():
            raise InputError(f"{file.path}: internalField has values that are not finite")
    return fields


def _read_fluxes(mesh, phi, fluxes):
    """Replace ``fluxes``, shape (f,), by the conserving ones of an earlier run, where the file phi has them."""
    inside = mesh.neighbour.size
    if phi.entries.get("dimensions", VOLUME_FLUX) != VOLUME_FLUX or "internalField" not in phi.entries:
        raise InputError(f"{phi.path} has no internalField of dimensions [0 3 -1 0 0 0 0], volume fluxes in m³/s: "
                         "remove it, and the fluxes of U are taken")
    fluxes[:inside] = values(phi.entries["internalField"], inside, 1, f"{phi.path}: internalField", "internal faces")
    conditions = phi.entries.get("boundaryField", {})
    for patch in mesh.patches:
        says = conditions.get(patch.name, {}) if isinstance(conditions, dict) else {}
        if isinstance(says, dict) and "value" in says and patch.kind != "empty":
            fluxes[patch.faces] = values(says["value"], patch.size, 1, f"{phi.path}: value of patch {patch.name!r}",
                                         f"faces in patch {patch.name!r}")
    if not np.isfinite(fluxes).all():
        raise InputError(f"{phi.path} has values that are not finite: remove it, and the fluxes of U are taken")


def _write_every(path, control, dt):
    """Return the time between two outputs by controlDict's writeInterval; None if it does not say."""
    if "writeInterval" not in control:
        return None
    interval = number(control["writeInterval"], f"{path / 'system' / 'controlDict'}: writeInterval")
    steps = text_of(control.get("writeControl", ["timeStep"])) == "timeStep"
    return interval * dt if steps and dt else None if steps else interval
