"""Matchings of a resident graph: what is solved, and the answer, which is checked before it goes out."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gpu_engine.bipartite import edge_ends, oriented, unit
from gpu_engine.checks import Certificate
from gpu_engine.engine import Control, Engine, Mode, SolveReport
from gpu_engine.matching import Matching, read_matching
from gpu_engine.network import Network
from service import answers
from service.resident import Answer, Graph, NotProven, Solved
from service.terminals import read_vertices


def left_to_right(network: Network, left: Sequence[int] | Sequence[str] | None) -> Network:
    """`oriented`, from the caller's names of left vertices. Raises `InvalidTerminals` for an unknown one as well."""
    return oriented(network, None if left is None else read_vertices(network, left, "left"))


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
    if "edges" in wanted:
        parts |= answers.matched(network, found)
    if "cover" in wanted:
        parts["cover"] = answers.cover(network, found)
    return parts


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
