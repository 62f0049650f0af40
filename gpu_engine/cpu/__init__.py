"""The CPU engine: Numba kernels behind the `Engine` interface."""
