"""NetworkX's own tests of cheapest flows, with the functions of the client's backend in place of its algorithms.

pytest finds those that are imported here: that is all of them, as each applies. `min_cost_flow` and
`min_cost_flow_cost` are NetworkX's own, and ask `network_simplex`.
"""

from collections.abc import Callable
from typing import Any

import networkx as nx
import pytest
from headrace import _nx as backend
from networkx.algorithms.flow.tests import test_mincost, test_networksimplex
from networkx.algorithms.flow.tests.test_mincost import TestMinCostFlow
from networkx.algorithms.flow.tests.test_networksimplex import (
    faux_inf_example,
    simple_flow_graph,
    simple_no_flow_graph,
    test_bone_shaped,
    test_deadend,
    test_digon,
    test_digraph1,
    test_google_or_tools_example,
    test_google_or_tools_example2,
    test_graphs_type_exceptions,
    test_infinite_capacity_neg_digon,
    test_infinite_demand_raise,
    test_infinite_weight_raise,
    test_large,
    test_multidigraph,
    test_neg_infinite_demand_raise,
    test_negative_capacity_raise,
    test_negative_selfloops,
    test_negcycle_infcap,
    test_network_simplex_faux_infinity,
    test_network_simplex_unbounded_flow,
    test_no_flow_satisfying_demands,
    test_nonzero_net_demand_raise,
    test_simple_digraph,
    test_sum_demands_not_zero,
    test_transshipment,
    test_zero_capacity_edges,
)

THEIRS = (
    TestMinCostFlow,
    test_bone_shaped,
    test_deadend,
    test_digon,
    test_digraph1,
    test_google_or_tools_example,
    test_google_or_tools_example2,
    test_graphs_type_exceptions,
    test_infinite_capacity_neg_digon,
    test_infinite_demand_raise,
    test_infinite_weight_raise,
    test_large,
    test_multidigraph,
    test_neg_infinite_demand_raise,
    test_negative_capacity_raise,
    test_negative_selfloops,
    test_negcycle_infcap,
    test_network_simplex_faux_infinity,
    test_network_simplex_unbounded_flow,
    test_no_flow_satisfying_demands,
    test_nonzero_net_demand_raise,
    test_simple_digraph,
    test_sum_demands_not_zero,
    test_transshipment,
    test_zero_capacity_edges,
)
GRAPHS = (faux_inf_example, simple_flow_graph, simple_no_flow_graph)
"""Fixtures of theirs."""


@pytest.fixture(autouse=True)
def ours_in_place_of_theirs(service_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_URL", service_url)
    for name in ("network_simplex", "capacity_scaling", "max_flow_min_cost"):
        monkeypatch.setattr(nx, name, as_dispatched(getattr(backend, name)))


def as_dispatched(function: Callable[..., Any]) -> Callable[..., Any]:
    """What NetworkX makes of a function of a backend."""

    def dispatched(G: Any, *args: Any, **kwargs: Any) -> Any:
        return function(backend.convert_from_nx(G), *args, **kwargs)

    return dispatched


def test_none_is_forgotten() -> None:
    """A later NetworkX may bring more tests, or drop some."""
    names = {
        name
        for module in (test_mincost, test_networksimplex)
        for name in vars(module)
        if name.lower().startswith("test")
    }
    assert names == {test.__name__ for test in THEIRS}
    assert len([name for name in vars(TestMinCostFlow) if name.startswith("test")]) > 15
