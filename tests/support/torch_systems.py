"""Systems that the tests of swell.torch share."""
from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'swell[torch]'")

LAYOUTS = ["coo", "csr", "csc", "bsr", "bsc", "dense"]
BOTH = [torch.float64, torch.complex128]


def matrix(dtype=torch.float64, n=6, device="cpu"):
    """A nonsymmetric dense matrix with zeros, well conditioned."""
    random = torch.Generator().manual_seed(1)
    found = torch.rand(n, n, generator=random, dtype=dtype) * (torch.rand(n, n, generator=random) < 0.4)
    return (found + 4 * torch.eye(n, dtype=dtype)).to(device)


def csr(dtype=torch.float64, n=6, device="cpu"):
    """(values, crow, col) of that matrix."""
    A = matrix(dtype, n, device).to_sparse_csr()
    return A.values().clone(), A.crow_indices(), A.col_indices()


def vectors(*shape, dtype=torch.float64, device="cpu"):
    """Random vectors, the same at each call."""
    return torch.rand(*shape, dtype=dtype, generator=torch.Generator().manual_seed(2)).to(device)


def in_layout(dense, layout):
    """A dense matrix in another layout, blocks 2 × 3."""
    if layout == "dense":
        return dense.clone()
    return getattr(dense, f"to_sparse_{layout}")(*(((2, 3),) if layout.startswith("bs") else ()))


def leaf(tensor):
    """A copy that requires grad."""
    return tensor.detach().clone().requires_grad_()


def energy(x):
    """A real function of x whose derivative tells conj(x) from x."""
    weights = torch.arange(1.0, 1 + x.shape[-1], dtype=torch.float64, device=x.device)
    return (weights * (x.real**2 + 3 * (x * (1 + 2j)).imag)).sum() if x.is_complex() else (weights * x**2).sum()
