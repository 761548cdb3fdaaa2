"""The part of CuPy that wraps NVIDIA's libraries; `cuda.libs.cusolver` is there for its file."""
