"""Flows of a resident graph by edge: each is checked as it will be answered, before it goes out."""

from collections.abc import Callable, Sequence

from gpu_engine.checks.flows import FlowProof, prove_flow, prove_paths
from gpu_engine.engine import Control
from gpu_engine.footprint import Footprint, Room
from gpu_engine.paths import Paths, decompose
from gpu_engine.types import UnitArray
from service.worker.graph import Graph, NotProven, Solved


def read_proven(
    graph: Graph, solved: Solved, control: Control, on_failure: Callable[[], None], *, acyclic: bool
) -> tuple[UnitArray, FlowProof]:
    """The flow of each edge, int64[m], and what it carries from and to the terminals. Raises `Cancelled`.

    One that fails its check is not answered: raises `NotProven`, and the next question solves it from zero. The room
    that the engine asks for is enough for the proof as well.
    """
    flow = graph.engine.flow(solved.state, control, acyclic=acyclic)
    proof = prove_flow(graph.network, solved.terminals, flow, acyclic=acyclic)
    failures = [*proof.failures]
    if solved.report is None or solved.report.value != proof.value:
        failures.append(f"{proof.value} units arrive, the flow has another value")
    _refuse(graph, solved, "flow", failures, on_failure)
    return flow, proof


def read_paths(
    graph: Graph,
    solved: Solved,
    flow: UnitArray,
    proof: FlowProof,
    top: int,
    control: Control,
    room: Room,
    on_failure: Callable[[], None],
) -> Paths:
    """The paths of a proven flow that carry most, themselves proven. Raises as `read_proven`, or `OutOfMemory`."""
    found = decompose(graph.network, solved.terminals, flow, proof, top, control, room)
    room(Footprint(flow.nbytes))
    _refuse(graph, solved, "paths", prove_paths(graph.network, flow, proof.value, found), on_failure)
    return found


def _refuse(graph: Graph, solved: Solved, what: str, failures: Sequence[str], on_failure: Callable[[], None]) -> None:
    if failures:
        on_failure()
        graph.close(solved)
        raise NotProven(f"the {what} could not be proven: {'; '.join(failures)}")
