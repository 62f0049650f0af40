"""Flows of a resident graph by edge: each is checked as it will be answered, before it goes out."""

from collections.abc import Callable, Sequence
from typing import Final

from gpu_engine.checks.flows import FlowProof, prove_flow, prove_paths, prove_rest
from gpu_engine.checks.throughput import prove_throughput
from gpu_engine.control import Control
from gpu_engine.footprint import Footprint, Room
from gpu_engine.mincost.cycles import cycles_of
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.paths import Paths, decompose
from gpu_engine.types import UnitArray
from service.worker.graph import Graph, NotProven, Solved

PROOF_ARRAYS: Final = 6
"""How many arrays of the length of a flow exist at a time while its cycles are proven."""


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
    if graph.vertices is not None:
        failures += prove_throughput(graph.network, flow, graph.vertices.vertices, graph.vertices.capacity)
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


def read_paths_and_cycles(
    network: Network, terminals: Terminals, flow: UnitArray, proof: FlowProof, top: int, control: Control, room: Room
) -> tuple[Paths, UnitArray]:
    """The paths of a proven flow that carry most, and what of it goes round in cycles, int64[m]: itself proven.

    All paths and the cycles add up to the flow. Raises `Cancelled`, `OutOfMemory`, and `NotProven` for what fails.
    """
    cycles = cycles_of(network, flow, control, room)
    room(Footprint(PROOF_ARRAYS * flow.nbytes))
    rest = flow - cycles
    proven = prove_rest(network, terminals, flow, proof, rest)
    found = decompose(network, terminals, rest, proven, top, control, room) if not proven.failures else None
    failures = [*proven.failures] if found is None else prove_paths(network, rest, proof.value, found)
    if found is None or failures:
        raise NotProven(f"the paths could not be proven: {'; '.join(failures)}")
    return found, cycles


def _refuse(graph: Graph, solved: Solved, what: str, failures: Sequence[str], on_failure: Callable[[], None]) -> None:
    if failures:
        on_failure()
        graph.close(solved)
        raise NotProven(f"the {what} could not be proven: {'; '.join(failures)}")
