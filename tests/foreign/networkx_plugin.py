"""A plugin for runs of NetworkX's own tests on its backend `headrace`, beside NetworkX's plugin for such runs.

Most of these tests name one of NetworkX's algorithms. In its place stands a function here that asks `nx.maximum_flow`,
which NetworkX dispatches to the backend. What became of each test, and how many questions the backend answered in it,
is written to the file that `NETWORKX_REPORT` names, one line of JSON for each.
"""

import json
import os
from collections.abc import Iterator
from functools import wraps
from typing import Any

import headrace._nx as backend
import networkx as nx
import pytest
from headrace._nx.running import PARAMETERS
from networkx.algorithms.connectivity import connectivity, cuts
from networkx.algorithms.connectivity.tests import test_connectivity, test_cuts
from networkx.algorithms.flow import build_residual_network
from networkx.algorithms.flow.tests import test_gomory_hu, test_maxflow, test_maxflow_large_graph

ALGORITHMS = ("boykov_kolmogorov", "dinitz", "edmonds_karp", "preflow_push", "shortest_augmenting_path")


def flow_func(
    G: Any, s: Any, t: Any, capacity: str = "capacity", residual: Any = None, value_only: bool = False, **tuning: object
) -> Any:
    """The residual network that NetworkX wants of an algorithm, with the flow that the backend answers."""
    if G.is_multigraph():
        raise nx.NetworkXError("the residual network of NetworkX has one edge between two nodes")
    value, flow = nx.maximum_flow(G, s, t, capacity)
    network = build_residual_network(G, capacity) if residual is None else residual
    for tail, head, data in network.edges(data=True):
        data["flow"] = flow[tail].get(head, 0) - flow[head].get(tail, 0)
    network.graph.update(flow_value=value, algorithm="headrace")
    return network


def gomory_hu_tree(G: Any, capacity: str = "capacity", flow_func: object = None) -> Any:
    """NetworkX compares the tree of a backend under test with its own; here the tests compare its cuts."""
    return DISPATCHED(G, capacity, backend="headrace")


DISPATCHED = nx.gomory_hu_tree


class Questions:
    """How many the backend has answered."""

    def __init__(self) -> None:
        self.answered = 0
        for name in PARAMETERS:
            setattr(backend, name, self._counted(getattr(backend, name)))

    def _counted(self, function: Any) -> Any:
        @wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.answered += 1
            return function(*args, **kwargs)

        return counted


QUESTIONS = pytest.StashKey[Questions]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[QUESTIONS] = Questions()
    for module in (test_maxflow, test_maxflow_large_graph, test_gomory_hu, test_cuts, test_connectivity):
        for name in ALGORITHMS:
            if hasattr(module, name):
                setattr(module, name, flow_func)
        if isinstance(module.flow_funcs, list):
            module.flow_funcs[:] = [flow_func]  # in place, for the tests that are parametrized by it
        module.flow_funcs = [flow_func]
    test_maxflow.all_funcs = test_maxflow.interface_funcs | {flow_func}
    nx.gomory_hu_tree = gomory_hu_tree
    for module in (cuts, connectivity):
        module.default_flow_func = flow_func


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report: Any = yield
    if report.when == "call" or report.outcome != "passed":
        questions = item.config.stash[QUESTIONS]
        line = {"test": item.nodeid, "outcome": report.outcome, "answered": questions.answered}
        with open(os.environ["NETWORKX_REPORT"], "a") as file:
            file.write(json.dumps(line) + "\n")
        questions.answered = 0
    return report
