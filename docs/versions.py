"""Put a built site beside those of other versions: python docs/versions.py build/docs SITE

The folder SITE then has a folder for each version, a list of them in versions.html, and an index.html that leads to the
newest release, or to the newest version if none is released. Each page of the site ends with its version and a link to
that list. Upload SITE as it is: links are relative, so it may lie anywhere.
"""
from __future__ import annotations

import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).parents[1]
PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>swell: versions</title>{head}
<style>:root {{ color-scheme: light dark; }} body {{ font: 1rem/1.6 system-ui, sans-serif; margin: 3rem; }}</style></head>
<body><h1>swell's documentation, by version</h1><ul>{items}</ul></body>
</html>
"""
MARK = "<!-- versions -->"


def released(changelog: str) -> dict[str, str]:
    """Return {version: "unreleased" or the day of its release} from the headings of a changelog."""
    return dict(re.findall(r"^## (\d+\.\d+\.\d+) - (.*)$", changelog, re.MULTILINE))


def add(site: pathlib.Path, folder: pathlib.Path, version: str, dates: dict[str, str]):
    """Copy the built ``site`` to ``folder``/``version``, and write the list of all versions there."""
    there = folder / version
    shutil.rmtree(there, ignore_errors=True)
    shutil.copytree(site, there, ignore=shutil.ignore_patterns(".doctrees", ".buildinfo*", "jupyter_execute"))
    for page in there.rglob("*.html"):
        up = "../" * len(page.relative_to(folder).parents[:-1])
        text = page.read_text("utf-8")
        page.write_text(text.replace(MARK, f' <a href="{up}versions.html">Other versions</a>'), "utf-8")
    versions = sorted((path.name for path in folder.iterdir() if re.fullmatch(r"\d+\.\d+\.\d+", path.name)),
                      key=lambda name: [int(number) for number in name.split(".")], reverse=True)
    items = "".join(f'<li><a href="{name}/index.html">{name}</a>, {dates.get(name, "released")}</li>' for name in versions)
    newest = next((name for name in versions if dates.get(name) != "unreleased"), versions[0])
    lead = f'<meta http-equiv="refresh" content="0; url={newest}/index.html">'
    for name, head in (("versions.html", ""), ("index.html", lead)):
        (folder / name).write_text(PAGE.format(head=head, items=items), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3 or not (pathlib.Path(sys.argv[1]) / "index.html").exists():
        sys.exit("usage: python docs/versions.py build/docs SITE, the folder that `make docs` has written and the one of all versions")
    changes = released((ROOT / "CHANGELOG.md").read_text("utf-8"))
    add(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), next(iter(changes)), changes)
