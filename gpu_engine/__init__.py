"""The Headrace solver library: arrays in, arrays out. Knows no HTTP, no Redis, no service."""

from gpu_engine._kernel_cache import set_directory

set_directory()
