"""Matchings of a resident graph: what is solved, and the answer, which is checked before it goes out."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gpu_engine.checks.certificate import Certificate
from gpu_engine.control import Control
from gpu_engine.engine import Engine, Mode, SolveReport
from gpu_engine.footprint import Footprint
from gpu_engine.matching import Matching, read_matching
from gpu_engine.networks.bipartite import edge_ends, one_each, oriented, refuse_narrow, unit
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from service.worker import answers
from service.worker.graph import Answer, Graph, NotProven, Solved
from service.worker.questions.terminals import read_distinct_vertices


def left_to_right(graph: Graph, left: Sequence[int] | Sequence[str] | None) -> Network:
    """The network as `oriented` draws it, by the caller's names of left vertices. Raises `InvalidTerminals` as well."""
    if left is not None:
        return oriented(graph.network, read_distinct_vertices(graph.network, left, "left", "/left"))
    return graph.network if graph.sides is not None else oriented(graph.network)


def sides(graph: Graph, network: Network) -> Terminals:
    """`one_each` of the graph's own network or of its copy. Raises as `refuse_narrow`."""
    refuse_narrow(network)
    if network is not graph.network:
        return one_each(network)
    if graph.sides is None:
        graph.sides = one_each(network)
    return graph.sides


def copy_on(engine: Engine, graph: Graph) -> Graph:
    """The graph as the engine's network draws it, for one question: no update reaches it."""
    return replace(graph, network=engine.network, engine=engine, states=OrderedDict())


def without_edges(graph: Graph, wanted: frozenset[str]) -> dict[str, object]:
    """The whole answer where there is nothing to solve."""
    report = SolveReport(Mode.UNCHANGED, 0, graph.engine.name, reason="the graph has no edges")
    answer = Answer(report, Certificate(valid=True, value=0, flow_across_cut=0), 0.0, 0.0)
    nobody = np.zeros(graph.network.n_vertices, np.bool_)
    found = Matching(np.empty(0, np.int64), nobody, nobody)
    return answers.matching(graph, answer, {}) | fields(graph.network, found, wanted)


def fields(network: Network, found: Matching, wanted: frozenset[str]) -> dict[str, object]:
    """What was asked for beside the size."""
    parts: dict[str, object] = {}
    if "matching" in wanted:
        parts["matching"] = answers.matched(network, found)
    if "cover" in wanted:
        parts["cover"] = answers.cover(network, found)
    return parts


def working_memory(network: Network) -> Footprint:
    """What reading and proving a matching takes beside the engine's own memory: the ends, row and flow of each edge."""
    return Footprint(32 * network.n_edges)


def answer_bytes(network: Network) -> int:
    """The most that an answer's arrays take: n/2 edges, their n ends and n vertices that cover, 4 bytes each."""
    return 10 * network.n_vertices


def read_proven(graph: Graph, solved: Solved, control: Control, on_failure: Callable[[], None]) -> Matching:
    """The matching of a solved state, with its cover. Raises `Cancelled`.

    One that fails its check is not answered: raises `NotProven`, and the next question solves it from zero.
    """
    network = graph.network
    found = read_matching(graph.engine, solved.state, control)
    failures = found.failures(*edge_ends(network), closed=network.capacity == 0)
    if solved.report is None or solved.report.value != found.size * unit(network):
        failures.append(f"{found.size} edges match, the flow has another value")
    if failures:
        on_failure()
        graph.close(solved)
        raise NotProven(f"the matching could not be proven: {'; '.join(failures)}")
    return found
