"""How pip builds swell: scikit-build-core's backend, with a C++ compiler from PyPI (Zig's) where the system has none."""
from __future__ import annotations

import os
import shutil
import sys

from scikit_build_core import build
from scikit_build_core.build import build_sdist, get_requires_for_build_sdist, prepare_metadata_for_build_wheel  # noqa: F401
from scikit_build_core.build import prepare_metadata_for_build_editable  # noqa: F401

COMPILERS = "c++", "g++", "clang++"      # not cl: the sources use vectors of GCC and Clang


def compiler() -> list[str]:
    """Return what to install for a compiler: nothing if the environment variable CXX, or PATH, names one."""
    return [] if os.environ.get("CXX") or any(map(shutil.which, COMPILERS)) else ["ziglang>=0.14"]


def take_compiler():
    """Name the compiler from PyPI to CMake if there is no other, and say so."""
    if compiler():
        os.environ["CXX"] = "python-zig c++"     # a script of the package, in the PATH of the build
        print(f"swell: no C++ compiler among {', '.join(COMPILERS)} was found; building with Zig's, which takes some "
              "minutes longer", file=sys.stderr)


def get_requires_for_build_wheel(config_settings=None):
    return [*build.get_requires_for_build_wheel(config_settings), *compiler()]


def get_requires_for_build_editable(config_settings=None):
    return [*build.get_requires_for_build_editable(config_settings), *compiler()]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    take_compiler()
    return build.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    take_compiler()
    return build.build_editable(wheel_directory, config_settings, metadata_directory)
