"""The Headrace solver library: arrays in, arrays out. Knows no HTTP, no Redis, no service."""

from gpu_engine.kernels.cache import directory as kernel_directory
from gpu_engine.kernels.cache import set_directory

__all__ = ["kernel_directory"]

set_directory()
