"""The resident CG runs on a GPU only: a CPU keeps no multiprocessor busy for a whole solve; there cg.py is the method."""
GPU_ONLY = ("begin", "iterate", "leave")             # blocks that wait for one another, and what they need before and after
KERNELS = ()
