"""Solve a real problem, from a PDE to a picture: steady heat conduction in a chip package.

Assembles the problem, lets the advisor choose the solver, and shows the progress. Writes the temperature, pictures of
it and of the convergence, and an HTML report to a folder.
"""
from __future__ import annotations

import time

from swell.cli.output import check_paths
from swell.core.errors import InputError
from swell.core.settings import shown

HELP = "solve a real PDE problem, and write pictures and a report"
PACKAGE_MM = (4.0, 20.0, 20.0)                   # size of the package along z, y, x
DIE_MM = 1.4                                     # a height inside the silicon, where the cores are


def add_arguments(parser):
    """Add the arguments of ``swell demo``."""
    parser.add_argument("--cells", type=int, default=64, metavar="N",
                        help="cells along each side; default 64, which gives 262 144 unknowns")
    parser.add_argument("--device", metavar="DEVICE", help="cpu (the default), cuda, cuda:1, ...")
    parser.add_argument("--out", default="swell-demo", metavar="DIR", help="folder for the files; default swell-demo")
    parser.add_argument("--quiet", action="store_true", help="no progress display")


def run(arguments) -> int:
    """Assemble the problem, solve it, print the result and write the files; return the exit status."""
    folder = _folder(arguments.out)
    if arguments.device:
        from swell.core.devices import make_space
        make_space(arguments.device)
    import swell
    from swell.solving.progress import Progress
    start = time.perf_counter()
    A, b, shape, description = swell.gallery.chip_heat(arguments.cells)
    print(f"The problem: {description}.")
    print(f"Assembled in {time.perf_counter() - start:.1f} s: {A.shape[0]} unknowns, {A.nnz} entries.\n", flush=True)
    with Progress(shown=not arguments.quiet) as progress:
        progress.phase = "preparing the solver"
        solver = swell.prepare(A, device=arguments.device, b_like=b)
        result = solver.solve(b, monitor=progress.monitor)
    print(result)
    _write(folder, A, result, shape, description)
    return 0 if result.converged else 1


def _folder(name):
    """Return the folder ``name`` for the files as a path; make it if it does not exist.

    Raises
    ------
    InputError
        If the folder cannot be made or written to.
    """
    from swell.io.files import as_path
    folder = as_path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {shown(name)}: the folder cannot be made: {error.strerror}; choose another") from None
    check_paths({"--out": folder / "x.npy"})
    return folder


def _write(folder, A, result, shape, description):
    """Print the physical result, write the files to ``folder``, and list them. ``shape``: cells along z, y and x;
    ``description``: a text on the problem for the report."""
    import numpy as np

    from swell import report
    from swell.display.figure import png
    from swell.io import write_vector
    from swell.report.files import save
    temperature = np.asarray(result.x).reshape(shape)
    hottest = np.unravel_index(int(temperature.argmax()), shape)
    at = [size * (index + 0.5) / cells for size, index, cells in zip(PACKAGE_MM, hottest, shape)]
    sentence = (f"Hottest: {temperature[hottest]:.2f} K above the coolant, at x = {at[2]:.2f} mm, y = {at[1]:.2f} mm, "
                f"z = {at[0]:.2f} mm above the bottom of the package.")
    print(f"\n{sentence}\n")
    field = temperature_figure(temperature, hottest)
    files = {"temperature above the coolant": "x.npy", "temperature, pictures": "temperature.png",
             "convergence": "convergence.png", "report": "report.html"}
    write_vector(folder / "x.npy", result.x)
    save(field, folder / "temperature.png")
    report.plot(result, folder / "convergence.png")
    report.html(result, folder / "report.html", title="swell demo: heat in a chip package", matrix=A,
                pictures={f"{description}. {sentence}": png(field)})
    for what, name in files.items():
        print(f"  {folder / name}: {what}")


def temperature_figure(temperature, hottest):
    """Draw two sections of the field, in K above the coolant: through the die, and upright through the hottest point.

    Parameters
    ----------
    temperature : ndarray, shape (z, y, x)
    hottest : tuple of int
        Indices of the hottest cell.
    """
    from matplotlib.figure import Figure
    depth, width, length = PACKAGE_MM
    level = int(DIE_MM / depth * temperature.shape[0])
    figure = Figure(figsize=(7, 7.4), layout="compressed")
    above, upright = figure.subplots(2, 1, height_ratios=[width, depth])
    shared = {"origin": "lower", "cmap": "inferno", "vmin": float(temperature.min()), "vmax": float(temperature.max())}
    image = above.imshow(temperature[level], extent=(0, length, 0, width), **shared)
    upright.imshow(temperature[:, hottest[1], :], extent=(0, length, 0, depth), **shared)
    lines = above.contour(temperature[level], levels=8, colors="white", linewidths=0.6, extent=(0, length, 0, width))
    above.clabel(lines, fontsize=7, fmt="%.0f K")
    y = width * (hottest[1] + 0.5) / temperature.shape[1]
    above.set_title(f"in the die, {depth * (level + 0.5) / temperature.shape[0]:.2f} mm above the bottom", fontsize=10)
    upright.set_title(f"upright section at y = {y:.2f} mm", fontsize=10)
    above.set_ylabel("y, mm")
    upright.set_ylabel("z, mm")
    upright.set_xlabel("x, mm")
    figure.colorbar(image, ax=[above, upright], label="temperature above the coolant, K")
    return figure
