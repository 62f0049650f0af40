"""Flows of a resident graph by edge: each is checked as it will be answered, before it goes out."""

from collections.abc import Callable

from gpu_engine.checks import FlowProof, prove_flow
from gpu_engine.engine import Control
from gpu_engine.footprint import Footprint
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import UnitArray
from service.worker.graph import Graph, NotProven, Solved


def working_memory(network: Network, terminals: Terminals) -> Footprint:
    """Beside the engine's own, while a flow is proven: what flows into each vertex and each terminal."""
    return Footprint(16 * network.n_vertices + 16 * (len(terminals.sources) + len(terminals.sinks)))


def read_proven(
    graph: Graph, solved: Solved, control: Control, on_failure: Callable[[], None]
) -> tuple[UnitArray, FlowProof]:
    """The flow of each edge, int64[m], and what it carries from and to the terminals. Raises `Cancelled`.

    One that fails its check is not answered: raises `NotProven`, and the next question solves it from zero.
    """
    flow = graph.engine.flow(solved.state, control)
    proof = prove_flow(graph.network, solved.terminals, flow)
    failures = [*proof.failures]
    if solved.report is None or solved.report.value != proof.value:
        failures.append(f"{proof.value} units arrive, the flow has another value")
    if failures:
        on_failure()
        graph.close(solved)
        raise NotProven(f"the flow could not be proven: {'; '.join(failures)}")
    return flow, proof
