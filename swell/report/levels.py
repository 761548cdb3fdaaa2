"""The picture of the levels of algebraic multigrid, as a PNG file."""
from swell.display.levels import figure
from swell.preconditioners.amg.report import facts
from swell.report.files import save


def plot(M, path):
    """Write the picture of the levels as a PNG file.

    Parameters
    ----------
    M : Preconditioning
        Of algebraic multigrid, such as ``swell.prepare(A, precond="amg").M``.
    path : str or path-like

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    save(figure(facts(M)), path)
