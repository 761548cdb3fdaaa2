"""Gradients through a solve, in torch: fit the conductivity of a plate to temperatures that were measured."""
import torch

import swell.torch

# −∇·(k ∇u) = 1 on n × n cells, u = 0 at the boundary. The conductivity k of a cell is exp(log_k).
n = 24
cell = torch.arange(n * n).reshape(n, n)
one = torch.cat([cell[:, :-1].reshape(-1), cell[:-1].reshape(-1)])          # the cells of each inner face
other = torch.cat([cell[:, 1:].reshape(-1), cell[1:].reshape(-1)])
edges = sum(torch.bincount(line, minlength=n * n) for line in (cell[0], cell[-1], cell[:, 0], cell[:, -1]))
where = torch.stack([torch.cat([one, other, cell.reshape(-1)]), torch.cat([other, one, cell.reshape(-1)])])


def matrix(log_k):
    """A by torch's own operations: its graph leads back to log_k."""
    k = log_k.exp()
    face = 2 / (1 / k[one] + 1 / k[other])
    diagonal = (2 * k * edges).index_add(0, one, face).index_add(0, other, face)
    return torch.sparse_coo_tensor(where, torch.cat([-face, -face, diagonal]), (n * n, n * n))


heat = torch.full((n * n,), 1 / n**2, dtype=torch.float64)
truth = torch.zeros(n, n, dtype=torch.float64)
truth[6:18, 6:18] = -1.0                                                    # a square that conducts badly
measured = swell.torch.solve(matrix(truth.reshape(-1)), heat)

# One call: differentiable in A's values and in b.
log_k = torch.zeros(n * n, dtype=torch.float64, requires_grad=True)
loss = ((swell.torch.solve(matrix(log_k), heat) - measured)**2).sum()
loss.backward()                                                             # one adjoint solve
print(f"misfit {loss.item():.3e}, gradient of norm {log_k.grad.norm().item():.3e}")

# A training loop: the pattern is read once, and the setup follows the values.
p = swell.torch.prepare(matrix(log_k.detach()), method="cg", precond="ic0", rtol=1e-10)
adam = torch.optim.Adam([log_k], lr=0.05)
for step in range(60):
    adam.zero_grad()
    loss = ((p.update(matrix(log_k)).solve(heat) - measured)**2).sum()
    loss.backward()
    adam.step()
print(f"misfit {loss.item():.3e} after {p.solves} solves and {p.adjoint_solves} adjoint ones; {p.setups} setup, "
      f"{p.updates} updates")
print(p.result)
assert p.solves == p.adjoint_solves == 60 and p.setups == 1
inside, outside = log_k.detach().reshape(n, n)[8:16, 8:16].mean(), log_k.detach().reshape(n, n)[:, :4].mean()
print(f"log k: {inside:.2f} inside the square, {outside:.2f} at the edge")
assert loss < 1e-3 * (measured**2).sum() and inside < -0.3

# Many right-hand sides by vmap are the columns of one solve.
sources = torch.rand(8, n * n, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
before = p.solves
temperatures = torch.func.vmap(p.solve)(sources)
assert temperatures.shape == (8, n * n) and p.solves == before + 1
