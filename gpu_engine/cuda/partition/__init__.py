"""The CUDA engine: CuPy over the kernels in `kernels/`, behind the `Engine` interface."""
