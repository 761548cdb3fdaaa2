"""The resident CG runs on a GPU only: a CPU has no multiprocessors to keep busy for a whole solve, and takes cg.py."""
GPU_ONLY = ("begin", "iterate", "leave")         # blocks that wait for one another; what they need before and after
KERNELS = ()
