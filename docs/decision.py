"""The decision picture of docs/WHICH_METHOD.md and its table, from one list: docs/generate.py writes both."""
from __future__ import annotations

import re
from html import escape

NAME = re.compile(r'"([^"]+)"')

# Question; what to take where the answer is yes; why.
STEPS = (
    ("Are the factors of A small, or are there dozens of right-hand sides?", 'method="direct"',
     "Up to some ten thousand unknowns in 2D a factorisation is quicker than any iteration, and it needs no luck. Further "
     "right-hand sides cost two triangular solves each. In 3D fill grows fast: `swell info A.mtx` predicts it."),
    ("Are there several fields, such as velocity and pressure?", 'method="gmres", precond="field_split"',
     "A zero block on the diagonal stops incomplete factors and multigrid. Each field gets its own preconditioner: "
     "[SADDLE_POINTS.md](SADDLE_POINTS.md)."),
    ("Is A symmetric positive definite, and of an elastic body?", 'method="cg", precond="smoothed_aggregation"',
     "Rigid motions are slow for all local methods. Give the points: `swell.SmoothedAggregation(coordinates=points)`. "
     "[AMG.md](AMG.md)."),
    ("Is it symmetric positive definite, and a diffusion problem?", 'method="cg", precond="amg"',
     "Iterations hardly grow with the mesh: 10 to 30 for millions of unknowns. The setup costs more than IC(0)'s, and pays "
     "from some ten thousand unknowns on. [AMG.md](AMG.md)."),
    ("Is it any other symmetric positive definite matrix?", 'method="cg", precond="ic0"',
     "Short setup, no parameters. On a GPU, or where the diagonal dominates as in small time steps, take "
     "`scaling=\"jacobi\"` in its place."),
    ("Is it symmetric, but indefinite?", 'method="minres"',
     "CG may break down; MINRES needs symmetry only. Its preconditioner must be positive definite."),
    ("Is it complex with A = Aᵀ, as for sound at one frequency?", 'method="cocg", precond="ilu0"',
     "COCG has CG's cost. At high frequencies take `precond=\"shifted_laplacian(inner=amg)\"`. [SOUND.md](SOUND.md)."),
    ("Is it convection, with or without diffusion?", 'method="bicgstab", precond="amg"',
     "AMG takes all cell Péclet numbers; `precond=\"air\"` is quicker for pure advection. If the flow follows the numbering "
     "of the rows, `ilu0` wins."),
    ("Anything else", 'method="gmres(restart=50)", precond="ilu0"',
     "GMRES never lets the residual grow, and asks nothing of A. If it stalls: a longer restart, or more fill, "
     "`ilu(drop=1e-3, fill=10)`."),
)
WIDTH, ROW, LEFT, RIGHT = 1000, 58, 480, 400


def picture() -> str:
    """Return the questions as boxes, one below the other, with what to take at their right, as SVG."""
    height = ROW * len(STEPS) + 10
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" '
             f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="15">',
             "<title>Which method to take: questions from top to bottom, the first yes decides</title>",
             f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>']
    for k, (question, take, _) in enumerate(STEPS):
        y, last = 10 + k * ROW, k == len(STEPS) - 1
        middle = y + 19
        parts += [f'<rect x="10" y="{y}" width="{LEFT}" height="38" rx="6" fill="#eef3f8" stroke="#0b5fa5"/>',
                  f'<text x="24" y="{y + 24}" fill="#12263a">{escape(question)}</text>',
                  f'<path d="M{LEFT + 10} {middle} H{LEFT + 96}" stroke="#2d6a2d" stroke-width="2"/>',
                  f'<path d="M{LEFT + 96} {middle - 5} l9 5 l-9 5 z" fill="#2d6a2d"/>',
                  f'<rect x="{LEFT + 106}" y="{y}" width="{RIGHT}" height="38" rx="6" fill="#eef7ee" '
                  'stroke="#2d6a2d"/>',
                  f'<text x="{LEFT + 118}" y="{y + 24}" fill="#12331a" font-family="monospace" font-size="13">'
                  f'{escape(take)}</text>']
        if not last:
            parts += [f'<text x="{LEFT + 36}" y="{middle - 6}" fill="#2d6a2d">yes</text>',
                      f'<path d="M60 {y + 38} v14" stroke="#555555" stroke-width="2"/>',
                      f'<path d="M55 {y + 50} l5 8 l5 -8 z" fill="#555555"/>',
                      f'<text x="72" y="{y + 53}" fill="#555555" font-size="13">no</text>']
    return "\n".join([*parts, "</svg>", ""])


def table() -> str:
    """Return the same with reasons, in Markdown."""
    return "\n".join(["| question | take | why, and when not |", "|---|---|---|",
                      *(f"| {question} | {' with '.join(f'`{name}`' for name in NAME.findall(take))} | {why} |"
                        for question, take, why in STEPS)])
