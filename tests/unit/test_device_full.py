"""A full device, on a CuPy that is not there: `gpu_engine.cuda.memory` is read anew beside a stand-in."""

from contextlib import nullcontext
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_engine.errors import OutOfMemory
from tests.stand_ins import read_beside

ENGINE = SimpleNamespace(stream=nullcontext())


class Full(MemoryError):
    pass


class Pool:
    freed = 0
    was_alone = True
    """Whether nobody could launch kernels on several devices meanwhile."""
    one_by_one: Lock

    def free_all_blocks(self) -> None:
        self.freed += 1
        self.was_alone = self.was_alone and self.one_by_one.locked()

    def used_bytes(self) -> int:
        return 30


@pytest.fixture
def pool() -> Pool:
    return Pool()


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch, pool: Pool) -> Any:
    device = SimpleNamespace(mem_info=(5, 80))
    cuda = SimpleNamespace(memory=SimpleNamespace(OutOfMemoryError=Full), Device=lambda number=None: device)
    module = read_beside(monkeypatch, "memory", cupy={"cuda": cuda, "get_default_memory_pool": lambda: pool})
    pool.one_by_one = module.ONE_BY_ONE
    return module


def failing(times: int, error: Exception) -> Any:
    """A call that fails so often, then answers how often it was made."""
    calls = 0

    def call(owner: object) -> int:
        nonlocal calls
        calls += 1
        if calls <= times:
            raise error
        return calls

    return call


def test_the_pool_is_emptied_before_the_second_try(memory: Any, pool: Pool) -> None:
    assert memory.device_call(failing(0, Full()))(ENGINE) == 1
    assert pool.freed == 0
    assert memory.device_call(failing(1, Full()))(ENGINE) == 2
    assert pool.freed == 1
    assert pool.was_alone
    assert not memory.ONE_BY_ONE.locked()


def test_the_second_failure_is_a_refusal_with_numbers(memory: Any) -> None:
    text = r"the device is full: 30 bytes in use by this process, 5 of 80 free; 512 bytes wanted"
    with pytest.raises(OutOfMemory, match=text):
        memory.device_call(failing(2, Full("512 bytes wanted")))(ENGINE)


def test_other_errors_pass(memory: Any, pool: Pool) -> None:
    with pytest.raises(ValueError, match="no shape"):
        memory.device_call(failing(1, ValueError("no shape")))(ENGINE)
    assert pool.freed == 0
    assert memory.total_bytes() == 80
