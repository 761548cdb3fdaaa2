"""The matrices of `swell bench dense-lu`: from files and folders (sparse ones are made dense), or generated.

Generated are random dense matrices by the rule of Appendix F of the thesis; a diagonal with a border, like c-22, where
the iterative method is strong; and the bordered matrix [S Cᵀ; C 0] of a floating subdomain, which BDDC passes to
decomposers.
"""
from pathlib import Path

import numpy as np

from swell.core.devices import make_space
from swell.core.errors import InputError
from swell.pde.poisson_cube import PoissonCube

SIZES = {"cpu": "100,300,558", "cuda": "558,2599,4156"}


def matrices(arguments, space):
    """Yield (name, function that makes the dense matrix from a seed).

    Raises
    ------
    InputError
        If a path does not exist, a folder has no matrix files, or the sizes are not numbers.
    """
    if arguments.batch and arguments.generated is None and arguments.paths:
        raise InputError("--batch is for generated matrices: give --generated beside the files")
    for place in map(Path, arguments.paths):
        if not place.exists():
            raise InputError(f"{place} does not exist: expected a matrix file, or a folder of .mtx files")
        paths = sorted(place.glob("*.mtx*")) if place.is_dir() else [place]
        if not paths:
            raise InputError(f"{place}: a folder without a .mtx or .mtx.gz file")
        for path in paths:
            yield path.name.split(".")[0], lambda seed, path=path: _dense(path, space)
    if arguments.paths and arguments.generated is None:
        return
    sizes = (arguments.sizes or SIZES[space.name]).split(",")
    if not all(size.strip().isdigit() and int(size) > 1 for size in sizes):
        raise InputError(f"--sizes {arguments.sizes}: expected numbers of rows, separated by commas, such as 100,558")
    for size in sizes:
        n = max(2, round(int(size) * arguments.scale))
        kinds = {"random": (n, lambda seed, n=n: random_dense(n, seed)),
                 "border": (n, lambda seed, n=n: diagonal_and_border(n, seed)),
                 "bordered": (6 * _edge(n) ** 2 + 28, lambda seed, n=n: bordered(n, seed, arguments.device))}
        for kind in arguments.generated or kinds:
            rows, make = kinds[kind]
            yield f"{kind}{rows}", make


def _dense(path, space):
    """Read a matrix file; return a dense array. Raise OutOfMemory if it does not fit."""
    from swell.io import read_matrix
    A = read_matrix(path)
    make_space("cpu").check_fits(4 * A.dtype.itemsize * A.shape[0] * A.shape[1],
                                 f"{path.name}, {A.shape[0]} rows made dense,", "leave it out")
    return A.toarray()


def _check_fits(n):
    """Raise OutOfMemory unless a dense matrix of n rows and the memory to generate it are available."""
    make_space("cpu").check_fits(16 * n * n, f"a generated matrix of {n} rows", "take smaller --sizes")


def random_dense(n, seed=0):
    """Return an n × n array of random entries in ±1000; each diagonal entry but the last is zero with probability ½
    (Appendix F)."""
    _check_fits(n)
    random = np.random.default_rng(seed)
    A = random.uniform(-1000, 1000, (n, n))
    zero = random.random(n) < 0.5
    zero[-1] = False
    A[zero, zero] = 0
    return A


def diagonal_and_border(n, seed=0):
    """Return an n × n array: a diagonal matrix with sparse entries in its last tenth of rows and columns, as c-22
    has."""
    _check_fits(n)
    random, wide = np.random.default_rng(seed), max(1, n // 10)
    A = np.diag(random.uniform(1, 2, n))
    border = np.where(random.random((n, wide)) < 0.05, random.uniform(-0.5, 0.5, (n, wide)), 0)
    A[:, -wide:] += border
    A[-wide:] += border.T
    return A


def _edge(n):
    """Return the H/h (elements along a subdomain's edge) whose bordered matrix has about n rows: 6 (H/h)² + 28."""
    return max(2, round(((n - 28) / 6) ** 0.5)) if n > 28 else 2


def bordered(n, seed=0, device="cpu"):
    """Return, as an array on the host, the bordered matrix that BDDC decomposes for the middle one of 3³ subdomains of
    Poisson's cube, with constraints on corners, edges and faces; it has about n rows. Seed 0: a constant coefficient;
    other seeds: random in [1, 2)."""
    edge = 3 * _edge(n)
    k = 1 + np.random.default_rng(seed).random((edge,) * 3) if seed else "constant"
    system = PoissonCube(_edge(n), 3, coefficient=k).assemble(device)
    return system.A.space.to_host(system.bordered(13))
