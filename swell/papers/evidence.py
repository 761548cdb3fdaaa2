"""Evidence: the records of calls of ``swell bench``, made by this run or stored in a folder.

A stored record stands for what this machine cannot do, such as a GPU's times on a machine without one. Its device and
date are shown, and its commit if it names one.
"""
from __future__ import annotations

import contextlib
import io
import json
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

import swell
from swell.bench import engine
from swell.cli import parser
from swell.core.errors import InputError

STORED = Path(swell.__file__).parents[1] / "benchmarks" / "results"


@dataclass(frozen=True)
class Part:
    """A call of ``swell bench``.

    ``name``: its key in the evidence; ``full``, ``small``: arguments at the paper's sizes, and at sizes for two cores;
    ``stored``: the file with a GPU's records, read unless a GPU does the full call now; always read if that is "".
    Without it the call runs on any device. ``sample``: the file with a CPU's records of the small call, for the page in
    the docs, where nothing is run."""

    name: str
    full: str
    small: str = ""
    stored: str = ""
    sample: str = ""


@dataclass(frozen=True)
class Measured:
    """The records of a part: dicts, their source as text, and the HTML of its own report, "" if it was stored."""

    records: list
    source: str
    html: str = ""


def gather(parts, device, small, folder=STORED) -> dict:
    """Return {name: Measured} for all Parts, run or read; parts with one call share its records.

    Parameters
    ----------
    parts : sequence of Part
    device : str
    small : bool
        Small sizes.
    folder : path
        Where stored records are. If a file is missing there, its part has no records.
    """
    from swell.core.devices import make_space
    on_gpu, found, calls = make_space(device).name != "cpu", {}, {}
    for part in parts:
        if part.stored and (small or not on_gpu or not part.full):
            found[part.name] = read(part, folder)
            continue
        command = part.small if small else part.full
        if command not in calls:
            calls[command] = measured(command, device)
        found[part.name] = calls[command]
    return found


def measured(command, device) -> Measured:
    """Run ``swell bench`` with the arguments ``command`` (str) on ``device``; its tables go into the report only."""
    engine.tell(f"swell bench {command} --device {device}")
    with tempfile.TemporaryDirectory() as folder:
        out, report = Path(folder) / "records.jsonl", Path(folder) / "report.html"
        arguments = parser().parse_args(["bench", *shlex.split(command), "--device", device, "--out", str(out),
                                         "--report", str(report)])
        with contextlib.redirect_stdout(io.StringIO()):
            arguments.run(arguments)
        body = report.read_text("utf-8").partition('<main class="swell">')[2].rpartition("</main>")[0]
        return Measured(_records(out), f"this run: swell bench {command}", body)


def read(part, folder) -> Measured:
    """Read the stored records of a Part, or else its sample; none if the file is missing.

    Raises
    ------
    InputError
        If a line is no record.
    """
    path = Path(folder) / (part.stored or part.sample)
    if not path.is_file():
        return Measured([], f"{path.name} is not in {folder}")
    records = _records(path)
    devices, days, commits = (sorted({value for r in records if (value := pick(r))}) for pick in (
        lambda r: r["device"], lambda r: r["date"][:10], lambda r: r.get("commit")))
    devices = [device for device in devices if device.startswith("cuda")] or devices
    when = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    return Measured(records, f"{path.name}: {', '.join(devices)}, {when}, "
                             f"{'commit ' + ', '.join(commits) if commits else 'its commit was not recorded'}")


def _records(path):
    """Return the records (dicts) of a file of JSON lines."""
    try:
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    except ValueError:
        raise InputError(f"--records: {path} is no file of records: expected JSON lines, as swell bench --out writes "
                         "them") from None


def latest(records, *fields) -> dict:
    """Return {values of the fields: record}; of several records with equal values the last one counts."""
    return {tuple(r.get(field) for field in fields): r for r in records}
