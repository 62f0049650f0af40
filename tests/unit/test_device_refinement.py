"""How many blocks refine a partition on a device, without one: `gpu_engine.cuda.launch.partition` is read anew beside
stand-ins for what needs CuPy, and one that knows its shared memory stands for a device."""

from types import SimpleNamespace
from typing import Any

import pytest

from gpu_engine.cuda.layout import PARTITION_LANES
from tests.stand_ins import read_beside

MULTIPROCESSORS = 40
RESERVED = 1 << 10
"""Bytes of shared memory that each block takes beside its own, from compute capability 8.0 on."""


@pytest.fixture
def partition(monkeypatch: pytest.MonkeyPatch) -> Any:
    stand_ins = {
        "launch.arrays": {"Array": object, "as_struct": object},
        "launch.grid": {"launch_strided": object},
        "module": {"kernel": lambda *_, **__: SimpleNamespace(kernel=SimpleNamespace(ptr=1))},
    }
    return read_beside(monkeypatch, "launch.partition", stand_ins)


@pytest.mark.parametrize("shared_kib", [64, 96, 100, 164, 228])
@pytest.mark.parametrize("k", [2, 100, 300, 1000, 1024])
def test_all_blocks_run_at_once(partition: Any, shared_kib: int, k: int) -> None:
    """Those of a cooperative kernel must: on devices that are smaller than those it was measured on, too."""

    def fit(kernel: int, threads: int, shared_bytes: int) -> int:
        del kernel
        return min((shared_kib << 10) // (shared_bytes + RESERVED), 1024 // threads, 16)

    device = SimpleNamespace(attributes={"MultiProcessorCount": MULTIPROCESSORS})
    driver = SimpleNamespace(occupancyMaxActiveBlocksPerMultiprocessor=fit)
    partition.cupy.cuda = SimpleNamespace(Device=lambda: device, driver=driver)
    table = 8 * (k + 1)
    tiles = max(4, min(partition.MOST_TILES, partition.TABLES_BYTES // table // 4 * 4))
    blocks = partition._blocks(tiles, tiles * table)
    assert 0 < blocks <= MULTIPROCESSORS * fit(1, PARTITION_LANES * tiles, tiles * table)
    if shared_kib == 228:
        assert blocks == MULTIPROCESSORS * 7 // 8 * min(4, 2 * partition.MOST_TILES // tiles), "as many as are fastest"
