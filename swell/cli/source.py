"""Sources of a command's matrix: a file, or ``FILE:NAME`` where it holds several; the gallery, by ``gallery:NAME`` or
``gallery:NAME:UNKNOWNS``; or an acoustic problem in a generated cavity, by ``paper:NAME`` (a name in the paper's table
1), ``cabin:SIZE`` or ``cylinder:SIZE``, optionally with ``:HZ``."""
from __future__ import annotations


from swell.core.errors import InputError, meant

HELP = ("matrix file (Matrix Market .mtx or .mtx.gz, Harwell-Boeing .rb or .rua, Matlab .mat, HDF5, .npz, .npy, PETSc "
        "binary), FILE:NAME where a .mat, HDF5 or .npz file holds several matrices, or gallery:NAME, or "
        "gallery:NAME:UNKNOWNS for a model problem such as gallery:poisson3d:100000, or an acoustic one such as "
        "paper:Audi3D-2, cabin:0.1:divided or cylinder:0.05:300, where the last number is the frequency in Hz")
PREFIX = "gallery:"
GENERATED = (PREFIX, "paper:", "cabin:", "cylinder:")


def read_system(source: str):
    """Read or generate the matrix that ``source`` names.

    Returns
    -------
    A : scipy.sparse.csr_matrix
    notes : list of str
        Sentences on A, such as changes that the reader made to its entries.

    Raises
    ------
    InputError
        If the file or name does not exist, or the file is damaged.
    """
    if source.startswith(GENERATED[1:]):
        return _acoustic(source)
    if not source.startswith(PREFIX):
        from swell.io import read_matrix_with_notes
        return read_matrix_with_notes(*file_and_name(source))
    from swell import gallery
    name, _, unknowns = source[len(PREFIX):].partition(":")
    if unknowns and not unknowns.isdecimal():
        raise InputError(f"{source}: {unknowns!r} came, expected a number of unknowns, as in gallery:poisson2d:40000")
    if name not in gallery.names():
        raise InputError(f"the gallery has no matrix {name!r}: {meant(name, gallery.names())}There are: "
                         f"{', '.join(gallery.names())}")
    return gallery.get(name, int(unknowns) if unknowns else None), []


def block_size(source: str):
    """Return the block size that the matrix file ``source`` states, or None."""
    if source.startswith(GENERATED):
        return None
    from swell.io import block_size
    return block_size(*file_and_name(source))


def read_vector(source: str):
    """Read the vector, or the columns, that ``FILE`` or ``FILE:NAME`` holds."""
    from swell.io import read_vector
    return read_vector(*file_and_name(source))


def file_and_name(source: str):
    """Split ``FILE:NAME`` into the file and the name of a matrix or vector in it; the name is None without a colon.

    A text that names an existing file is not split, and neither is one whose first part names none."""
    from swell.io.files import as_path, status
    path, colon, name = source.rpartition(":")
    if colon and path and status(as_path(source)) is None and status(as_path(path)) is not None:
        return path, name
    return source, None


def _acoustic(source):
    """Assemble A(ω) for a generated cabin or cylinder, named by ``source``; return (SciPy matrix, list of notes)."""
    from swell.pde.helmholtz.named import cavity, named_mesh
    from swell.pde.helmholtz.table1 import posed
    name, _, last = source.rpartition(":")
    frequency = _number(last) if ":" in name else None           # after the only colon comes a part of the mesh's name
    if frequency is None:
        name = source
    if name.startswith("paper:") and ":" in name.removeprefix("paper:"):
        raise InputError(f"{source}: {last!r} came, expected a frequency in Hz, as in paper:Audi3D-2:500")
    problem, frequency, panel = posed(named_mesh(name), cavity(name), frequency)
    A, _, _ = problem.system(frequency, panel)
    return A, [f"A(ω) of a generated mesh at {frequency:.4g} Hz: {problem.mesh}"]


def _number(text):
    """Return the number in a text, or None if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        return None
