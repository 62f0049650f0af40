"""Much work that comes at once keeps what comes behind it waiting for a few pieces only."""

from collections import deque
from collections.abc import Callable

from service.worker.membership.gradually import Gradually
from service.worker.running.lanes import SHORT_S

AT_ONCE = 3


class House:
    """Lanes whose work is done when it is told to be."""

    def __init__(self) -> None:
        self.lined_up: deque[tuple[str, Callable[[], None], float]] = deque()
        self.done: list[str] = []
        self.gradually = Gradually(lambda *piece: self.lined_up.append(piece), AT_ONCE)

    def put(self, lane: str, expected_s: float = 0.0) -> None:
        self.gradually.put(lane, lambda: self.done.append(lane), expected_s)

    def lanes(self) -> list[str]:
        return [lane for lane, _, _ in self.lined_up]

    def run_one(self) -> None:
        _, work, _ = self.lined_up.popleft()
        work()


def test_a_few_are_in_their_lanes_at_a_time_and_all_are_done_in_order() -> None:
    house = House()
    names = [f"g{number}" for number in range(10)]
    for name in names:
        house.put(name)
    assert house.lanes() == names[:AT_ONCE]
    house.run_one()
    assert house.lanes() == names[1 : AT_ONCE + 1]
    while house.lined_up:
        assert len(house.lined_up) <= AT_ONCE
        house.run_one()
    assert house.done == names
    for name in names:
        house.put(name)
    assert house.lanes() == names[:AT_ONCE]


def test_long_work_keeps_no_short_work_waiting() -> None:
    house = House()
    for number in range(10):
        house.put(f"long {number}", 2 * SHORT_S)
    house.put("short")
    assert house.lanes() == [*(f"long {number}" for number in range(AT_ONCE)), "short"]


def test_work_that_fails_makes_way_for_the_next() -> None:
    house = House()

    def fail() -> None:
        raise OSError

    for _ in range(AT_ONCE):
        house.gradually.put("broken", fail, 0.0)
    house.put("next")
    for _ in range(AT_ONCE):
        try:
            house.run_one()
        except OSError:
            continue
    assert house.lanes() == ["next"]
