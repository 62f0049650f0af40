"""The benchmarks on tiny networks: every row has its fields, every command its table."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import (
    batches,
    cold,
    instances,
    limits,
    memory,
    modifiers,
    pairs,
    partition,
    partition_graphs,
    richer,
    tables,
    warm,
)
from benchmarks.__main__ import main
from benchmarks.answers import WrongAnswer
from benchmarks.batches import Change, Drawn
from benchmarks.instances import Instance
from benchmarks.peers import PEERS, Directed, Peer, Timing
from benchmarks.report import report
from benchmarks.results import Results, read
from gpu_engine.generators import generate
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.types import INFINITE
from tests import graphs

TINY = (
    Instance("grid", "grid", {"rows": 5, "columns": 6}),
    Instance("vision", "vision", {"rows": 5, "columns": 5}),
    Instance("rlg-long", "rlg-long", {"rows": 4}),
)
CITY = [(0, 1, 4), (0, 2, 3), (1, 2, 2), (1, 3, 2), (2, 3, 4)]
EFFORT = cold.Effort(repeats=2, limit_s=60)
DESCRIPTION = {"instance", "family", "parameters", "seed", "n", "m"}


def drawn(instance: Instance) -> EdgeList:
    edges = instance.load()
    assert edges is not None
    return edges


@pytest.mark.parametrize("instance", TINY, ids=lambda instance: instance.name)
def test_cold_rows_agree_and_have_their_fields(instance: Instance) -> None:
    rows = cold.measure(instance, drawn(instance), ["cpu"], PEERS, EFFORT)
    assert [row["solver"] for row in rows] == ["headrace-cpu", *PEERS]
    assert len({row["value"] for row in rows if "value" in row}) == 1
    times = {"value", "build_ms", "solve_ms_best", "solve_ms_median", "repeats"}
    assert all(DESCRIPTION | times <= row.keys() for row in rows if "skipped" not in row)
    assert {"arcs", "certificate_ms_median", "certificate_valid", "counters"} <= rows[0].keys()
    assert rows[0]["repeats"] == 2


@pytest.mark.parametrize("family", ["zigzag", "bipartite"])
def test_caps_stand_for_the_edges_at_source_and_sink(family: str) -> None:
    parameters = {"pairs": 40} if family == "zigzag" else {"left": 40, "right": 30}
    instance = Instance("matching", family, parameters, capped=True)
    edges = drawn(instance)
    asked = cold.asked_of(instance, edges)
    assert asked.edges.n_edges + len(asked.terminals.sources) + len(asked.terminals.sinks) == edges.n_edges
    rows = cold.measure(instance, edges, ["cpu"], PEERS, EFFORT)
    assert len({row["value"] for row in rows if "value" in row}) == 1


def test_every_hard_instance_can_be_drawn_small() -> None:
    smaller = {
        "n_vertices": 500,
        "leaving": 5,
        "entering": 5,
        "pairs": 20,
        "left": 20,
        "right": 20,
        "rows": 5,
        "columns": 5,
        "scale": 7,
    }
    for instance in instances.HARD:
        parameters = {name: min(value, smaller.get(name, value)) for name, value in instance.parameters.items()}
        tiny = replace(instance, parameters=parameters)
        (row,) = cold.measure(tiny, drawn(tiny), ["cpu"], {}, EFFORT)
        assert row["certificate_valid"], instance.name


def test_pairs_are_the_same_for_every_solver_and_have_their_fields() -> None:
    rows = pairs.measure(TINY[0], drawn(TINY[0]), "cpu", {"ortools": PEERS["ortools"]}, EFFORT, count=4)
    ours, other = rows
    assert (ours["solver"], other["solver"]) == ("headrace-cpu", "ortools")
    assert ours["values"] == other["values"]
    assert {"solve_ms_sum", "solve_ms_median", "arcs", "pairs"} | DESCRIPTION <= ours.keys()
    assert len(ours["pair_ms"]) == ours["pairs"] == 4
    assert ours["solve_ms_sum"] == pytest.approx(sum(ours["pair_ms"]), abs=0.001)


def test_partitions_of_two_places_are_followed_side_by_side() -> None:
    place = partition.Place(partition.ResidentPartition, time.perf_counter, beside=True)
    told = partition.summary(list(partition.follow(partition.grid(24, 0.3), 2, 8, 2, 2, "mixed", place)))
    assert told["cut_to_host"] == 1.0
    assert told["host_s"] > 0


def test_partitions_are_followed_and_compared() -> None:
    rows = list(partition.follow(partition.grid(24, 0.3), 2, 8, 2, 2))
    assert [row["way"] for row in rows] == ["full", "incremental", "incremental"]
    told = partition.summary(rows)
    assert told["incremental"] == told["of"] == 2
    assert min(told["times_full"], told["times_metis"], *told["cut_to_full"], *told["cut_to_metis"]) > 0


@pytest.mark.parametrize("kind", modifiers.KINDS)
def test_every_kind_of_change_is_followed(kind: str) -> None:
    rows = list(partition.follow(partition.drawn_for(kind, 24), 2, 40, 3, 3, kind))
    assert partition.summary(rows)["of"] == 3


def test_a_line_of_the_table_has_ours_and_theirs() -> None:
    graph = replace(partition_graphs.GRAPHS[0], load=lambda: partition_graphs.circuit(30_000, 39_000))
    told = partition.one_of_table(graph, 2, 2, 2)
    assert told is not None
    assert (told["n"], told["published"]["name"]) == (30_000, "usb")
    assert {"cut", "full_cut", "metis_cut", "mean_times_full", "mean_times_metis", "modified_s"} <= told.keys()


def test_a_peer_with_another_value_is_an_error() -> None:
    wrong = {"wrong": Peer(lambda network: Timing(network.max_flow + 1, 0.0, 0.0))}
    with pytest.raises(WrongAnswer, match="wrong"):
        cold.measure(TINY[0], drawn(TINY[0]), ["cpu"], wrong, EFFORT)


def test_a_peer_is_left_out_with_the_reason() -> None:
    narrow = {"narrow": Peer(lambda network: Timing(0, 0.0, 0.0), max_edges=1)}
    rows = cold.measure(TINY[0], drawn(TINY[0]), ["cpu"], narrow, EFFORT)
    assert rows[1]["skipped"] == "more than 1 edges"


def test_peers_get_directed_finite_edges() -> None:
    edges = EdgeList(
        n_vertices=3,
        tail=np.array([0, 1, 1], np.int32),
        head=np.array([1, 2, 1], np.int32),
        capacity=np.array([INFINITE, 5, 7]),
        undirected=np.array([False, True, False]),
        source=0,
        sink=2,
    )
    network = Directed.of(edges, max_flow=5)
    assert list(zip(network.tail.tolist(), network.head.tolist(), strict=True)) == [(0, 1), (1, 2), (2, 1)]
    assert network.capacity.tolist() == [18, 5, 5]


@pytest.mark.parametrize("instance", TINY, ids=lambda instance: instance.name)
def test_warm_rows_have_their_fields(instance: Instance) -> None:
    edges = drawn(instance)
    rows = list(warm.measure(instance, edges, warm.Plan(batches=3, cold_batches=2)))
    assert {row["drawn"] for row in rows} == set(Drawn)
    assert {row["change"] for row in rows} == set(Change)
    for row in rows:
        assert DESCRIPTION | {"update_us_median", "solve_us_median", "solve_us_p90", "ratio", "worst"} <= row.keys()
        assert sum(row["modes"].values()) == sum(row["undo_modes"].values()) == row["batches"] == 3
        assert row["certificates_valid"] == 6


def test_batches_change_capacities_as_they_say() -> None:
    rng = np.random.default_rng(1)
    capacity = np.arange(1000)
    assert (batches.new_capacities(rng, Change.INCREASE, capacity) > capacity).all()
    assert (batches.new_capacities(rng, Change.INCREASE, capacity) <= 2 * capacity + 1).all()
    decreased = batches.new_capacities(rng, Change.DECREASE, capacity)
    assert (decreased[1:] < capacity[1:]).all()
    assert (decreased >= 0).all()
    assert (batches.new_capacities(rng, Change.MIXED, capacity) > capacity).sum() == 500


def test_batch_sizes_never_repeat_or_exceed_what_is_there() -> None:
    assert batches.batch_sizes(111_276, 111_276) == {"1": 1, "10": 10, "0.1 %": 111, "1 %": 1113}
    assert batches.batch_sizes(111_276, 4) == {"1": 1, "10": 4}
    assert batches.batch_sizes(111_276, 0) == {}


def test_an_absent_file_is_no_row(tmp_path: Path) -> None:
    assert memory.measure_here(Instance("absent", "real", file="absent.npz"), tmp_path) is None


@pytest.mark.parametrize("size", ["small", "medium", "large"])
def test_the_sizes_have_the_same_instances(size: str) -> None:
    names = [instance.name for instance in instances.SIZES[size]]
    assert names == [instance.name for instance in instances.SMALL]
    assert set(instances.WARM) <= {instance.name for instance in instances.choose(size, [])}


def test_commands_write_results_and_print_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cold.json"
    assert main(["cold", "--only", "ac", "--repeats", "1", "--out", str(path)]) == 0
    document = read(path)
    assert {"kind", "date", "machine", "settings", "rows"} <= document.keys()
    assert {"cpu", "cores", "memory_bytes", "versions"} <= document["machine"].keys()
    assert main(["table", str(path)]) == 0
    assert "| ac | 300 | 44850 |" in capsys.readouterr().out


def test_what_limits_a_flow_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "within", lambda limit_s, work, *given: work(*given))
    rows = list(limits.measure("city", graphs.drawn(4, CITY), 1, 1.0))
    assert [row["work"] for row in rows] == ["bottlenecks", "parametric", "expansion"]
    assert (rows[0]["bottlenecks"], rows[1]["segments"], rows[2]["price"]) == (2, 2, 1)
    assert all(row[peer] > 0 for row, peer in zip(rows, ("scipy_ms", "ortools_ms", "networkx_ms"), strict=True))


def test_richer_networks_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(richer, "CHANGES", 2)
    monkeypatch.setattr(richer, "BATCH", 5)
    edges = generate("genrmf-wide", seed=1, a=4)
    rows = [row for measure in (richer.of_vertices, richer.of_bounds, richer.of_structure) for row in measure(edges)]
    works = ["vertex capacities", "one vertex changed", "lower bounds", "what cannot be had", "structure changed"]
    assert [row["work"] for row in rows] == works
    assert [row["feasible"] for row in rows[2:4]] == [True, False]


def test_every_kind_has_a_table(tmp_path: Path) -> None:
    of_limits = {"network": "a", "n_edges": 5, "work": "bottlenecks", "bottlenecks": 2}
    latency = {"instance": "a", "request": "b", "clients": 1, "requests": 2}
    latency |= {"p50_ms": 1.0, "p90_ms": 2.0, "p99_ms": 3.0, "per_s": 4.0}
    edges = drawn(TINY[0])
    (memory_row,) = memory.measure(TINY[0], None)
    rows = {
        "cold": cold.measure(TINY[0], edges, ["cpu", "auto"], {}, EFFORT),
        "pairs": pairs.measure(TINY[0], edges, "cpu", {}, EFFORT, count=2),
        "warm": list(warm.measure(TINY[0], edges, warm.Plan(batches=1, cold_batches=1))),
        "drift": [warm.measure_drift(TINY[0], edges, warm.Plan(), batches=10, size=2)],
        "memory": [memory_row],
        "limits": [of_limits | {"headrace_ms": 1.0, "scipy_ms": 2.0}],
        "closures": [
            {"instance": "a", "question": "what-if", "closures": 9, "call_ms": 1.0, "cpu_ms": 2.0, "cpu_speedup": 50.0},
            {"instance": "a", "question": "closure-study", "top": None, "closures": 9, "solved": 3, "call_ms": 1.0},
        ],
        "many-pairs": [
            {"instance": "a", "solver": "headrace", "threads": 1, "pairs": 9, "thread_ms": 1.0},
            {"instance": "a", "solver": "ortools", "threads": 1, "pairs": 9, "thread_ms": 2.0},
            {"instance": "a", "question": "gomory-hu-tree", "terminals": 9, "rows": 8, "thread_ms": 1.0},
            {"instance": "a", "question": "global-min-cut", "value": 3, "thread_ms": 1.0},
            {"of": "b", "question": "gomory-hu-tree", "thread_ms": 1.0, "networkx_ms": 2.0},
        ],
        "richer": [
            {"network": "a", "n": 4, "m": 5, "thread_ms": 1.0, "ortools_build_ms": 1.0, "ortools_ms": 2.0} | found
            for found in ({"work": "vertices", "value": 6}, {"work": "bounds", "feasible": False})
        ],
        "adapters": [{"call": "a", "value": 6, "first_ms": 3.0, "again_ms": 1.0, "peer_ms": 2.0}],
        "http": [latency],
        "rates": [latency | {"api_processes": 1, "workers": 2, "graphs": 1}],
    }
    assert DESCRIPTION | {"arcs", "engine_bytes", "resident_bytes_per_arc", "peak_bytes_per_arc"} <= memory_row.keys()
    assert memory_row["engine_bytes_per_arc"] == memory_row["engine_bytes"] / memory_row["arcs"]
    assert rows.keys() == tables.TABLES.keys()
    for kind, measured in rows.items():
        results = Results(kind, {"size": "tiny"}, tmp_path / f"{kind}.json")
        results.extend(measured)
        for brief in (False, True):
            lines = tables.render(read(results.path), brief).splitlines()
            assert len({line.count("|") for line in lines if line.startswith("|")}) == 1


def test_the_page_of_figures_is_made_from_the_results() -> None:
    page = Path(__file__).parents[2] / "docs" / "benchmarks.md"
    assert page.read_text() == report()
