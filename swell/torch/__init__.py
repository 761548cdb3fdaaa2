"""swell in torch: sparse solves with gradients.

    import swell.torch
    x = swell.torch.solve(A, b)                 # a tensor; x.sum().backward() gives b.grad and A.grad
    p = swell.torch.prepare(A)                  # set up once; p.update(A2) follows a training step
    x = p.solve(b)

docs/TORCH.md explains types, layouts, transforms and costs. torch itself is imported at the first call.
"""
from swell.core.errors import NotConverged
from swell.torch.calls import prepare, solve, solve_batch, solve_values

__all__ = ["NotConverged", "prepare", "solve", "solve_batch", "solve_values"]
