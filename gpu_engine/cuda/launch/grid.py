"""How many blocks a kernel gets that has one thread for each item."""

from typing import Any, Final

from gpu_engine.cuda.module import kernel

BLOCK: Final = 256
"""Threads in a block."""

MAX_BLOCKS: Final = 4096
"""Kernels with a grid-stride loop get no more blocks than this."""


def launch_strided(file: str, name: str, items: int, wide: bool, *arguments: Any) -> None:
    """Launch a kernel whose threads go over the items in a grid-stride loop."""
    blocks = max(1, min(MAX_BLOCKS, -(-items // BLOCK)))
    kernel(file, name, wide=wide)((blocks,), (BLOCK,), arguments)


def launch_each(file: str, name: str, items: int, wide: bool, *arguments: Any) -> None:
    """Launch a kernel with a thread for each item."""
    kernel(file, name, wide=wide)((-(-items // BLOCK),), (BLOCK,), arguments)
