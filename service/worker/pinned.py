"""The network of a graph as it is now, for a question that goes on beside the graph's lane."""

from collections.abc import Sequence
from contextlib import ExitStack, suppress

from gpu_engine.errors import OutOfMemory
from gpu_engine.footprint import Footprint
from gpu_engine.networks.network import Network
from service.worker.graph import Graph
from service.worker.memory import Residents
from service.worker.running.task import Task
from service.worker.solving import Solver


def pin(graph: Graph, task: Task, residents: Residents, solver: Solver, needed: Footprint, stack: ExitStack) -> Network:
    """The network with capacities of its own; ``needed`` is what the question takes beside. Both are promised to
    `pinned_name` until ``stack`` is closed. Older flow states of the graph give way, and other graphs.

    The network counts in full, although most of it is shared: the graph may give way, or be replaced, before the
    question is done with it. Raises `OutOfMemory`.
    """
    return pin_for(graph, task, residents, solver, [needed], stack)[0]


def pin_for(
    graph: Graph, task: Task, residents: Residents, solver: Solver, wishes: Sequence[Footprint], stack: ExitStack
) -> tuple[Network, int]:
    """`pin` for the first of several wishes that there is room for, and which one it is. Flow states give way for the
    last one alone."""
    network, name = graph.network, pinned_name(graph, task)

    def take(needed: Footprint) -> None:
        promised = needed + Footprint(network.nbytes)
        residents.take(graph.name, promised)
        stack.enter_context(residents.at_work(name, task.control, displaces=False))
        residents.promise(name, promised)

    def admit() -> int:
        for which, needed in enumerate(wishes[:-1]):
            with suppress(OutOfMemory):
                take(needed)
                return which
        take(wishes[-1])
        return len(wishes) - 1

    which = solver.giving_way(graph, admit)
    return network.fork(), which


def pinned_name(graph: Graph, task: Task) -> str:
    """The name under which the memory of the question is promised."""
    return f"{graph.name} {task.command.id}"
