"""NetworkX's own tests with its backend `headrace`, run as NetworkX runs them for every backend.

`networkx_plugin.py` has each of NetworkX's algorithms that a test names replaced by the backend. Every test passes, or
stands in `NOT_APPLICABLE` with the reason; and the backend has answered in it, or it stands in `NOTHING_TO_ANSWER`.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.foreign.installed import ROOT, search_path, write_metadata

MODULES = (
    "flow.tests.test_maxflow",
    "flow.tests.test_maxflow_large_graph",
    "flow.tests.test_mincost",
    "flow.tests.test_networksimplex",
    "flow.tests.test_gomory_hu",
    "connectivity.tests.test_cuts",
    "connectivity.tests.test_connectivity",
    "connectivity.tests.test_stoer_wagner",
    "bipartite.tests.test_matching",
)

CUTOFF = "a cutoff tells NetworkX's own algorithms when to stop; the backend leaves such calls to them"
ANOTHER = "it wants one certain matching of several that are maximum"
ANOTHER_FLOW = "it wants one certain flow of several that are cheapest"
NOT_APPLICABLE: Mapping[str, str] = {
    "test_maxflow.TestMaxFlowMinCutInterface.test_minimum_cut_no_cutoff": CUTOFF,
    "test_maxflow.TestCutoff.test_complete_graph_cutoff": CUTOFF,
    "test_maxflow.test_preflow_push_global_relabel_freq": "how often NetworkX's preflow_push relabels",
    "test_connectivity.test_brandes_erlebach": CUTOFF,
    "test_connectivity.test_cutoff": CUTOFF,
    "test_matching.TestMatching.test_eppstein_matching_simple": ANOTHER,
    "test_matching.TestMatching.test_hopcroft_karp_matching_simple": ANOTHER,
    "test_mincost.TestMinCostFlow.test_digraph1": ANOTHER_FLOW,
    "test_networksimplex.test_digraph1": ANOTHER_FLOW,
}

TWICE = "karate_club_graph and not cutset"
"""Not run: two tests that ask the same, since the backend has one algorithm for a tree, and of the 561 pairs of a graph
what `test_davis_southern_women_graph` asks of the 496 of another."""

REFUSED_BEFORE = "NetworkX refuses the call before a backend is asked"
NOT_ASKED = "it needs no flow"
FULL = "minimum_weight_full_matching is no question of the service"
NOTHING_TO_ANSWER: Mapping[str, str] = {
    "test_gomory_hu.TestGomoryHuTree.test_directed_raises": REFUSED_BEFORE,
    "test_gomory_hu.TestGomoryHuTree.test_empty_raises": REFUSED_BEFORE,
    "test_maxflow.TestMaxFlowMinCutInterface.test_flow_func_not_callable": "flow_func= is NetworkX's own",
    "test_maxflow.TestMaxFlowMinCutInterface.test_kwargs_default_flow_func": "what steers algorithms is NetworkX's own",
    "test_mincost.TestMinCostFlow.test_digraph3": "it tests cost_of_flow",
    **dict.fromkeys(
        (
            f"test_{module}.{test}"
            for module in ("cuts", "connectivity")
            for test in (
                "test_empty_graphs",
                "test_missing_source",
                "test_missing_target",
                "test_missing_source_target",
                "test_not_weakly_connected",
                "test_not_connected",
                "test_invalid_auxiliary",
                "test_interface_only_source",
                "test_interface_only_target",
                "test_interface_only_source_or_only_target_specified",
            )
        ),
        REFUSED_BEFORE,
    ),
    "test_cuts.test_node_cutset_exception": REFUSED_BEFORE,
    "test_cuts.tests_min_cut_complete": NOT_ASKED,
    "test_cuts.tests_minimum_st_node_cut": NOT_ASKED,
    "test_cuts.test_minimum_node_cut_self_loops": NOT_ASKED,
    "test_connectivity.test_node_connectivity_self_loops": NOT_ASKED,
    "test_connectivity.test_node_connectivity_multigraphs": NOT_ASKED,
    "test_connectivity.test_edge_missing_source": REFUSED_BEFORE,
    "test_connectivity.test_edge_missing_target": REFUSED_BEFORE,
}


@pytest.fixture(scope="module")
def environment(service_url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("installed")
    write_metadata(folder)
    return os.environ | {"PYTHONPATH": search_path(folder), "HEADRACE_URL": service_url}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("module", MODULES)
def test_theirs(module: str, environment: dict[str, str], tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    plugins = ("no:cacheprovider", "networkx.conftest", "tests.foreign.networkx_plugin")
    options = [*(part for name in plugins for part in ("-p", name)), "--noconftest", "--rootdir", str(tmp_path), "-q"]
    options += ["-k", f"not ({TWICE})"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--pyargs", f"networkx.algorithms.{module}"],
        env=environment
        | {"NETWORKX_REPORT": str(report), "NETWORKX_TEST_BACKEND": "headrace", "NETWORKX_FALLBACK_TO_NX": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert report.exists(), run.stdout + run.stderr
    tests = outcomes(module.rpartition(".")[2], report)
    failed = {name for name, test in tests.items() if test["outcome"] == "failed"}
    expected = {name for name in NOT_APPLICABLE if name in tests}
    assert failed <= expected, run.stdout
    # Which of several maximum matchings an engine finds is its own affair, and may be the one that a test wants.
    assert {name for name in expected - failed if NOT_APPLICABLE[name] != ANOTHER} == set(), run.stdout
    silent = {name for name, test in tests.items() if test["outcome"] == "passed" and not test["answered"]}
    assert {name for name in silent if "TestMinimumWeightFullMatching" not in name} <= set(NOTHING_TO_ANSWER)
    assert len(tests) >= 5


def outcomes(module: str, report: Path) -> dict[str, Any]:
    """What became of each test, by module, class and name; of one with parameters, of all its cases together."""
    found: dict[str, Any] = {}
    for line in report.read_text().splitlines():
        test = json.loads(line)
        name = ".".join([module, *test["test"].partition("[")[0].split("::")[1:]])
        before = found.setdefault(name, test)
        before["answered"] += 0 if before is test else test["answered"]
        if before["outcome"] != "failed":
            before["outcome"] = test["outcome"]
    return found


def test_no_module_is_forgotten() -> None:
    """A later NetworkX may bring more of them."""
    import networkx.algorithms.flow.tests as flow_tests

    files = {path.stem for folder in flow_tests.__path__ for path in Path(folder).glob("test_*.py")}
    assert files == {name.rpartition(".")[2] for name in MODULES if name.startswith("flow.")}
    assert {name.partition(".")[0] for name in (*NOT_APPLICABLE, *NOTHING_TO_ANSWER)} <= {
        name.rpartition(".")[2] for name in MODULES
    }


def test_the_page_lists_what_does_not_apply() -> None:
    page = (ROOT / "docs" / "adapters.md").read_text()
    assert dict(re.findall(r"^\| `(test_.+)` \| (.+) \|$", page, re.M)) == NOT_APPLICABLE


def ran(program: str, environment: dict[str, str]) -> str:
    """What a program prints; each sees NetworkX for the first time."""
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, cwd=ROOT)
    return run.stdout + run.stderr.strip().rpartition("\n")[2]


PATH = "import networkx as nx; G = nx.DiGraph(); G.add_edge('s', 't', capacity=3); "


def test_a_call_may_name_the_backend(environment: dict[str, str]) -> None:
    assert (
        ran(PATH + "print(nx.maximum_flow(G, 's', 't', backend='headrace'))", environment)
        == "(3, {'s': {'t': 3}, 't': {}})\n"
    )


def test_a_function_may_say_capacities(environment: dict[str, str]) -> None:
    """As from NetworkX 3.7 on; None hides an edge."""
    program = PATH + (
        "G.add_edge('s', 'hidden', capacity=1); G.add_edge('hidden', 't');"
        "capacity = lambda u, v, data: 2 * data['capacity'] if (u, v) == ('s', 't') else None;"
        "print(nx.maximum_flow(G, 's', 't', capacity, backend='headrace'));"
        "print(nx.gomory_hu_tree(G.to_undirected(), capacity, backend='headrace').size('weight'))"
    )
    assert ran(program, environment) == "(6, {'s': {'t': 6, 'hidden': 0}, 't': {}, 'hidden': {'t': 0}})\n6.0\n"


def test_the_environment_may_name_the_backend(environment: dict[str, str]) -> None:
    program = PATH + (
        "print(nx.maximum_flow_value(G, 's', 't'), len(__import__('headrace._kept')._kept.kept('nx')));"
        "print(nx.maximum_flow_value(G, 's', 't', flow_func=nx.algorithms.flow.dinitz))"
    )
    assert ran(program, environment | {"NETWORKX_BACKEND_PRIORITY": "headrace"}) == "3 1\n3\n"


def test_a_capacity_that_is_changed_in_place_counts(environment: dict[str, str]) -> None:
    """NetworkX keeps what it has converted, and does not hear of it."""
    program = PATH + (
        "nx.config.warnings_to_ignore.add('cache'); f = lambda: nx.maximum_flow_value(G, 's', 't', backend='headrace');"
        "a = f(); G['s']['t']['capacity'] = 5; print(a, f())"
    )
    assert ran(program, environment) == "3 5\n"


def test_a_service_that_is_not_there(environment: dict[str, str]) -> None:
    """The error says what to do."""
    found = ran(
        PATH + "nx.maximum_flow(G, 's', 't', backend='headrace')", environment | {"HEADRACE_URL": "http://127.0.0.1:9"}
    )
    assert "no connection to http://127.0.0.1:9" in found
    assert "HEADRACE_URL" in found
    assert "headrace serve" in found


def test_nothing_is_left_in_the_service(environment: dict[str, str], service_url: str) -> None:
    ran(PATH + "nx.maximum_flow(G, 's', 't', backend='headrace')", environment)
    from headrace import Client

    with Client(service_url) as client:
        assert not [graph.name for graph in client.graphs() if graph.name.startswith("nx-")]


def test_who_does_not_ask_loads_nothing(environment: dict[str, str]) -> None:
    """NetworkX reads the entry points of every backend whenever it is imported."""
    program = (
        "import networkx as nx, sys; print('headrace' in sys.modules, 'headrace' in nx.maximum_flow.__doc__,"
        " nx.config.backends.headrace.kept_graphs)"
    )
    assert ran(program, environment) == "False True 8\n"
