"""The convergence plot of one solve or of several, as a PNG file."""
from swell.display.convergence import figure as figure_of
from swell.report.files import save
from swell.solving.cards import label, line, lines
from swell.solving.result import Result


def plot(results, path):
    """Write the convergence plot of one solve or of several as a PNG file.

    Parameters
    ----------
    results : Result, Results, sequence of Result, or dict of str to Result
        The keys of a dictionary name its lines; otherwise method and preconditioner name a line. Earlier attempts of
        an automatic choice are dashed lines.
    path : str or path-like

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    save(figure(results), path)


def figure(results):
    """Return the convergence plot as a matplotlib figure; `plot` describes ``results``."""
    if isinstance(results, Result):
        return figure_of(lines(results))
    if isinstance(results, dict):
        return figure_of([line(str(name), result) for name, result in results.items()])
    return figure_of([line(f"[{k}] {label(result)}", result) for k, result in enumerate(results)])
