"""Some seeded fault histories, and each fault there is; a thousand by ``python -m tests.faults --seeds 0:1000``."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.aof import read_commands
from tests.faults.house import WORKERS, House
from tests.faults.injector import FAULTS
from tests.faults.runner import run_history, save_failure

NAMES = list(FAULTS)

pytestmark = [pytest.mark.crash, pytest.mark.faults]


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        house = House(Path(folder))
        yield house
        house.close()


def test_a_history_begins_between_commands(house: House) -> None:
    """Found by seed 133, whose history began within what a worker was writing just then."""
    house.wait_ready(len(WORKERS))
    for _ in range(60):
        house.begin_history()
        list(read_commands(house.read_history()))


@pytest.mark.parametrize("seed", range(1, 5))  # the large graphs of seed 0 are below
def test_history(house: House, seed: int, tmp_path: Path) -> None:
    outcome = run_history(house, seed)
    if outcome.verdict.faults:
        path = save_failure(outcome, tmp_path)
        pytest.fail(
            "\n".join([*outcome.verdict.faults, f"history in {path}; again: python -m tests.faults --seeds {seed}"])
        )
    assert outcome.verdict.counts["commits"] + outcome.verdict.counts["cut off"] > 0


@pytest.mark.parametrize(
    ("seed", "faults"), [*enumerate(",".join(NAMES[at : at + 2]) for at in range(0, len(NAMES), 2))]
)
def test_each_fault(house: House, seed: int, faults: str, tmp_path: Path) -> None:
    """Two by two, whatever the seeds draw themselves; one of ten in a row has a large graph."""
    outcome = run_history(house, seed, faults.split(","))
    if outcome.verdict.faults:
        path = save_failure(outcome, tmp_path)
        pytest.fail("\n".join([*outcome.verdict.faults, f"history in {path}; again: --seeds {seed} --faults {faults}"]))


def test_a_history_can_be_repeated_at_once(house: House) -> None:
    """With the same keys; within a second it once met the graphs of its last time."""
    for _ in range(3):
        assert run_history(house, 1, []).verdict.faults == []
