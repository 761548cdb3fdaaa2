"""``%load_ext shell_cells``: a cell that begins with %%bash prints what its commands print, and fails if one fails.

IPython's own %%bash sends its output in pieces, which the site would show as broken lines.
"""
from __future__ import annotations

import os
import subprocess


def bash(line, cell):
    """Run the commands of a cell."""
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", cell], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    print(done.stdout, end="")
    done.check_returncode()


def load_ipython_extension(ipython):
    """Replace %%bash. The programs that it starts print plain text of this width."""
    os.environ.update(FORCE_COLOR="", COLUMNS="120")
    ipython.register_magic_function(bash, "cell")
