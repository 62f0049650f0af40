"""NetworkX's own tests of maximum flows and minimum cuts, with the service in place of its algorithms.

Each of them runs, or stands in `NOT_APPLICABLE` with the reason.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import networkx as nx
import networkx.algorithms.flow.tests as flow_tests
import pytest
from headrace import Client
from networkx.algorithms.connectivity import cuts
from networkx.algorithms.connectivity.tests import test_cuts
from networkx.algorithms.flow import gomory_hu, maxflow
from networkx.algorithms.flow.tests import test_gomory_hu, test_maxflow, test_maxflow_large_graph

from tests.foreign.networkx_flow import NetworkXFlow

THEIRS: Mapping[ModuleType, ModuleType] = {
    test_maxflow: maxflow,
    test_maxflow_large_graph: maxflow,
    test_gomory_hu: gomory_hu,
    test_cuts: cuts,
}
"""Modules of tests, and where the algorithm stands that is taken when a test names none."""

OTHERS: Mapping[str, str] = {
    "test_mincost": "flows of least cost: in test_networkx_backend.py",
    "test_networksimplex": "flows of least cost: in test_networkx_backend.py",
}
"""The other modules in NetworkX's folder of flow tests."""

NOT_APPLICABLE: Mapping[str, str] = {
    "test_maxflow.test_preflow_push_global_relabel_freq": "how often NetworkX's preflow_push relabels",
    "test_maxflow.TestMaxFlowMinCutInterface.test_minimum_cut_no_cutoff": (
        "nx.minimum_cut refuses a cutoff for NetworkX's own preflow_push, which it knows by identity"
    ),
}
"""By module, class and name."""

NO_FLOW_FUNC = "it tests what NetworkX's functions do about their argument flow_func, which ours pass over"
NO_CUT_OF_OURS: Mapping[str, str] = {
    "test_maxflow.TestMaxFlowMinCutInterface.test_flow_func_not_callable": NO_FLOW_FUNC,
    "test_maxflow.TestMaxFlowMinCutInterface.test_kwargs_default_flow_func": NO_FLOW_FUNC,
    "test_gomory_hu.TestGomoryHuTree.test_les_miserables_graph_cutset": (
        "NetworkX finds 2,926 values in it by itself, for as long as all other tests of trees take, which ask the same"
    ),
}
"""What is run as a flow_func alone."""

ALGORITHMS = ("boykov_kolmogorov", "dinitz", "edmonds_karp", "preflow_push", "shortest_augmenting_path")
FLOWS_AND_CUTS = ("maximum_flow", "minimum_cut")
VALUES = ("maximum_flow_value", "minimum_cut_value")


class Theirs(NamedTuple):
    name: str
    module: ModuleType
    owner: type | None
    function: Callable[..., None]
    arguments: Mapping[str, Any]
    """What it is parametrized by, but for its algorithm."""

    def run(self, ours: NetworkXFlow) -> None:
        arguments = dict(self.arguments)
        if "flow_func" in inspect.signature(self.function).parameters:
            arguments["flow_func"] = ours.flow_func
        if self.owner is None:
            self.function(**arguments)
            return
        instance = self.owner()
        getattr(instance, "setup_method", lambda: None)()
        self.function(instance, **arguments)


def collected() -> Iterator[Theirs]:
    """As pytest would find them, but each with one algorithm."""
    for module in THEIRS:
        short = short_name(module)
        for name, found in vars(module).items():
            if name.startswith("test"):
                yield from parametrized(Theirs(f"{short}.{name}", module, None, found, {}))
            elif name.startswith("Test") and inspect.isclass(found):
                for method, function in vars(found).items():
                    if method.startswith("test"):
                        yield from parametrized(Theirs(f"{short}.{name}.{method}", module, found, function, {}))


def parametrized(test: Theirs) -> Iterator[Theirs]:
    """The test with each combination of what its marks give it."""
    marks = [mark.args for mark in getattr(test.function, "pytestmark", []) if mark.name == "parametrize"]
    rows = [
        [{names: row} if isinstance(names, str) else dict(zip(names, row, strict=True)) for row in values]
        for names, values in marks
        if names != "flow_func"
    ]
    for at, combination in enumerate(product(*rows)):
        arguments = {name: value for row in combination for name, value in row.items()}
        yield test._replace(name=f"{test.name}[{at}]" if arguments else test.name, arguments=arguments)


def short_name(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


ALL = list(collected())


def applicable(but_for: Mapping[str, str]) -> list[Any]:
    """Each of theirs, skipped for the reason that is listed."""
    return [
        pytest.param(test, id=test.name, marks=[pytest.mark.skip(but_for[test.name])] if test.name in but_for else [])
        for test in ALL
    ]


@pytest.fixture(scope="module")
def ours(service_url: str) -> Iterator[NetworkXFlow]:
    with Client(service_url) as client:
        yield NetworkXFlow(client, "networkx")


@pytest.mark.parametrize("test", applicable(NOT_APPLICABLE))
def test_as_flow_func(test: Theirs, ours: NetworkXFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    """NetworkX reads value, flow and cut from a residual network that holds the service's flow."""
    in_place_of_algorithms(test, ours, monkeypatch)
    test.run(ours)


@pytest.mark.parametrize("test", applicable({**NOT_APPLICABLE, **NO_CUT_OF_OURS}))
def test_with_the_cut_of_the_service(test: Theirs, ours: NetworkXFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cuts in a tree of them are compared with values that NetworkX finds by itself."""
    in_place_of_algorithms(test, ours, monkeypatch)
    for name in FLOWS_AND_CUTS if test.module is test_gomory_hu else (*FLOWS_AND_CUTS, *VALUES):
        monkeypatch.setattr(nx, name, getattr(ours, name))
    if test.module is test_maxflow:
        both, values = ({getattr(ours, name) for name in names} for names in (FLOWS_AND_CUTS, VALUES))
        monkeypatch.setattr(test.module, "max_min_funcs", both)
        monkeypatch.setattr(test.module, "interface_funcs", both | values)
        monkeypatch.setattr(test.module, "all_funcs", both | values | {ours.flow_func})
    test.run(ours)


def in_place_of_algorithms(test: Theirs, ours: NetworkXFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ALGORITHMS:
        if hasattr(test.module, name):
            monkeypatch.setattr(test.module, name, ours.flow_func)
    monkeypatch.setattr(test.module, "flow_funcs", [ours.flow_func])
    if test.module is test_maxflow:
        interface = {getattr(nx, name) for name in (*FLOWS_AND_CUTS, *VALUES)}
        monkeypatch.setattr(test.module, "all_funcs", interface | {ours.flow_func})
    monkeypatch.setattr(THEIRS[test.module], "default_flow_func", ours.flow_func)


def test_none_is_forgotten() -> None:
    """A later NetworkX may bring more tests and modules, or drop some that are listed here."""
    assert {*NOT_APPLICABLE, *NO_CUT_OF_OURS} <= {test.name for test in ALL}
    files = {path.stem for folder in flow_tests.__path__ for path in Path(folder).glob("test_*.py")}
    assert files <= {*map(short_name, THEIRS), *OTHERS}
    assert set(OTHERS) <= files
    assert len(ALL) > 60
