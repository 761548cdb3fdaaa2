"""discretize: a cell-centred Poisson problem on tensor meshes; one line: ``spsolve`` of swell.scipy_like."""
PACKAGE = "discretize"


def cases():
    """Two charges in a box, as in its tutorial on Poisson's equation."""
    import numpy as np
    from discretize import TensorMesh
    from scipy.sparse.linalg import spsolve as scipys

    from swell.scipy_like import spsolve

    for shape in ((12, 12, 6), (20, 20, 14), (30, 30, 20)):
        mesh = TensorMesh([np.ones(n) for n in shape])
        A = (mesh.face_divergence @ mesh.get_face_inner_product(invert_matrix=True) @ mesh.face_divergence.T).tocsc()
        A[0, 0] += 1.0
        b = np.zeros(mesh.n_cells)
        b[[mesh.n_cells // 3, 2 * mesh.n_cells // 3]] = 1.0, -1.0
        yield "two charges", mesh.n_cells, lambda A=A, b=b: scipys(A, b), lambda A=A, b=b: spsolve(A, b)
