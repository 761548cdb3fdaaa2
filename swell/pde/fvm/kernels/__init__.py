"""Numba and CUDA kernels of the finite volumes."""
