"""How many blocks refine a partition on a device, without one: `gpu_engine.cuda.launch.partition` is read anew beside
stand-ins for what needs CuPy, and one that knows its shared memory stands for a device."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import gpu_engine
from gpu_engine.cuda.layout import PARTITION_LANES

MULTIPROCESSORS = 40
RESERVED = 1 << 10
"""Bytes of shared memory that each block takes beside its own, from compute capability 8.0 on."""


@pytest.fixture
def partition(monkeypatch: pytest.MonkeyPatch) -> Any:
    names = {
        "launch.arrays": {"Array": object, "as_struct": object},
        "launch.grid": {"launch_strided": object},
        "module": {"kernel": lambda *_, **__: SimpleNamespace(kernel=SimpleNamespace(ptr=1))},
    }
    for name, members in names.items():
        stand_in: Any = ModuleType(f"gpu_engine.cuda.{name}")
        vars(stand_in).update(members)
        monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    path = Path(gpu_engine.__file__).parent / "cuda" / "launch" / "partition.py"
    name = "refinement_beside_stand_ins"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


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
