"""A network that is pinned for a question is paid for, and stays as it was."""

from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu_engine.control import Control
from gpu_engine.errors import OutOfMemory
from gpu_engine.footprint import Footprint
from gpu_engine.networks.network import Network
from service.worker.memory import Residents
from service.worker.pinned import pin, pin_for
from tests.graphs import diamond


def test_it_stays_as_it_was_and_its_memory_is_counted_until_it_is_closed() -> None:
    network = Network(diamond().edges)
    needed = Footprint(1000)
    residents = Residents(Footprint(network.nbytes + 1500), lambda graph: None)
    graph: Any = SimpleNamespace(name="g", network=network)
    solver: Any = SimpleNamespace(giving_way=lambda graph, work: work())
    task: Any = SimpleNamespace(control=Control(), command=SimpleNamespace(id="1"))
    stack = ExitStack()
    with residents.at_work("g"):
        pinned = pin(graph, task, residents, solver, needed, stack)
    before = pinned.capacity.copy()
    network.set_capacity(np.array([0]), np.array([77]))
    assert (pinned.capacity == before).all()
    assert pinned.head is network.head
    with residents.at_work("other", displaces=False):  # it waits for nobody
        with pytest.raises(OutOfMemory):
            residents.take("other", Footprint(1000))
        stack.close()
        residents.take("other", Footprint(network.nbytes + 1500))


def test_the_first_wish_that_there_is_room_for_is_granted() -> None:
    network = Network(diamond().edges)
    residents = Residents(Footprint(network.nbytes + 1500), lambda graph: None)
    graph: Any = SimpleNamespace(name="g", network=network)
    solver: Any = SimpleNamespace(giving_way=lambda graph, work: work())
    task: Any = SimpleNamespace(control=Control(), command=SimpleNamespace(id="1"))
    for wishes, granted in (([1200, 700], 0), ([2000, 1600, 1000], 2)):
        with ExitStack() as stack:
            with residents.at_work("g"):
                _, which = pin_for(graph, task, residents, solver, [Footprint(wish) for wish in wishes], stack)
            assert which == granted
            assert residents.unused == Footprint(1500 - wishes[granted])
    with residents.at_work("g"), ExitStack() as stack, pytest.raises(OutOfMemory):
        pin_for(graph, task, residents, solver, [Footprint(3000), Footprint(2000)], stack)
