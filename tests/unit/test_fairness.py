"""Graphs take turns: one with a long queue does not keep another waiting."""

import threading

from service.queue.lanes import Lanes


def test_lanes_take_turns() -> None:
    """One thread, 50 pieces of work for `a` and then one for `b`: b comes second or third, not last."""
    lanes = Lanes(1)
    order: list[str] = []
    started, go, done = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        started.set()
        go.wait(30)

    lanes.put("a", first)
    assert started.wait(30)
    for _ in range(50):
        lanes.put("a", lambda: order.append("a"))
    for name in ("b", "c"):
        lanes.put(name, lambda name=name: order.append(name))  # type: ignore[misc]
    lanes.put("z", done.set)
    go.set()
    assert done.wait(30)
    lanes.close()
    assert max(order.index("b"), order.index("c")) <= 4
