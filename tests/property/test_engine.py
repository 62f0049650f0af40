"""The CPU engine against OR-tools: random networks of every kind, then update sequences, warm against cold."""

import pytest

from gpu_engine.cpu.engine import CpuEngine
from tests.cases import cases
from tests.congruence import check_sequence

SEEDS_A_CASE = 50


@pytest.mark.parametrize("first", range(0, cases(2500), SEEDS_A_CASE))
def test_update_sequences_agree_with_ortools(first: int) -> None:
    for seed in range(first, first + SEEDS_A_CASE):
        check_sequence(CpuEngine, seed, steps=8)


def test_one_state_survives_a_thousand_updates() -> None:
    for seed in range(900_000, 900_005):
        check_sequence(CpuEngine, seed, steps=1000, largest=60)
