"""The CPU kernels, compiled by Numba: where they are kept, and how far their compiling is."""
