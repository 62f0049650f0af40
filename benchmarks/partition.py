"""Partitions: the cut against METIS, and what it takes to follow a graph that changes, against a partition from nothing
and against METIS. `python -m benchmarks.partition cuts|follow|kinds|table1`; every result is counted anew. Seconds are
of processors, since other work runs on the same ones, but ``wall_s``. With `--device` the partition is on a CUDA
device, all seconds are those of a clock on the wall, and `follow` has the host's beside it.

A network of ours stands in for the circuits of iG-kway (Lee et al.), which are not public: a grid with shortcuts has
their degrees. Modifiers are drawn as the paper draws them: vertices and edges are inserted and deleted at random.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pymetis
from numpy.typing import NDArray

from benchmarks.machine import describe
from benchmarks.modifiers import KINDS, MOST_CAPACITY
from benchmarks.partition_graphs import GRAPHS, Graph, network_of
from gpu_engine.checks.partitions import prove_partition
from gpu_engine.control import Control
from gpu_engine.footprint import unlimited
from gpu_engine.networks.network import Network
from gpu_engine.partition import upkeep
from gpu_engine.partition.buckets import bucketed, compressed, link_weights
from gpu_engine.partition.problem import Question, Weights, edge_weights, limit_of
from gpu_engine.partition.resident import KeptPartition, ResidentPartition
from gpu_engine.select import device_label

EPSILON: Final = Fraction(3, 100)
PARTS: Final = (2, 4, 8, 16, 32)
ROADS: Final = Path(__file__).parents[1] / "examples"
TABLE_MODIFIERS: Final = 200
"""In each iteration of `table1`, where the paper has "tens to hundreds"."""
RESULTS: Final = Path(__file__).parent / "results"


def grid(side: int, shortcuts: float, seed: int = 1) -> Network:
    """A grid of side times side vertices, with so many random edges of a length up to 50 for each vertex."""
    at, rng = np.arange(side * side, dtype=np.int32).reshape(side, side), np.random.default_rng(seed)
    tail, head = [at[:, :-1].ravel(), at[:-1].ravel()], [at[:, 1:].ravel(), at[1:].ravel()]
    more = int(shortcuts * at.size)
    row, column = rng.integers(0, side, (2, more))
    other = (
        np.clip(row + rng.integers(-50, 51, more), 0, side - 1),
        np.clip(column + rng.integers(-50, 51, more), 0, side - 1),
    )
    tail, head = [*tail, at[row, column]], [*head, at[other]]
    return network_of(at.size, np.concatenate(tail), np.concatenate(head))


def road(name: str) -> Network:
    with np.load(ROADS / f"{name}.npz") as roads:
        inner = (roads["src"] < roads["n"] - 2) & (roads["dst"] < roads["n"] - 2)
        return network_of(int(roads["n"]) - 2, roads["src"][inner], roads["dst"][inner])


def power_law(scale: int, edges: int) -> Network:
    rng, tail, head = np.random.default_rng(3), np.zeros(edges, np.int64), np.zeros(edges, np.int64)
    for _ in range(scale):
        drawn = rng.random(edges)
        tail = 2 * tail + (drawn > 0.76)
        head = 2 * head + (((drawn > 0.57) & (drawn < 0.76)) | (drawn > 0.95))
    return network_of(1 << scale, tail.astype(np.int32), head.astype(np.int32))


def blocks(n: int, n_groups: int, degree: int) -> Network:
    """Groups with most edges inside them, as authors have who write together."""
    rng, m = np.random.default_rng(5), n * degree // 2
    tail = rng.integers(0, n, m)
    inside = rng.random(m) < 0.8
    size = n // n_groups
    head = np.where(inside, tail // size * size + rng.integers(0, size, m), rng.integers(0, n, m)) % n
    return network_of(n, tail.astype(np.int32), head.astype(np.int32))


def processor_s() -> float:
    """What this process and those that it has waited for have taken: others work on the same cores."""
    waited_for = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + waited_for.ru_utime + waited_for.ru_stime


@dataclass(frozen=True, slots=True)
class Place:
    """Where partitions are kept up to date."""

    open: Callable[[Question], KeptPartition]
    clock: Callable[[], float]
    beside: bool = False
    """Have one on the host beside it."""


HOST: Final = Place(ResidentPartition, processor_s)


def on_device() -> Place:
    from gpu_engine.cuda.partition.resident import CudaResidentPartition

    return Place(lambda question: CudaResidentPartition(question), time.perf_counter, beside=True)


def metis(
    network: Network, k: int, weights: Weights = "one", clock: Callable[[], float] = processor_s
) -> tuple[NDArray[np.int32], float]:
    """As it comes, k-way and with the same imbalance; in this process, with the columns it takes made beforehand."""
    weight = link_weights(network.n_arcs, network.edge_arc, network.reverse_arc, edge_weights(network, weights))
    buckets = bucketed(network.row_offsets, network.head, weight)
    offsets, head, own, _ = compressed(buckets, np.ones(network.n_vertices, np.bool_))
    vertex = network.there.astype(np.int64)
    graph, options = pymetis.CSRAdjacency(offsets, head), pymetis.Options(ufactor=int(1000 * EPSILON), seed=0)
    began = clock()
    found = pymetis.part_graph(k, graph, eweights=own, vweights=vertex, recursive=False, options=options)
    took = clock() - began
    part = np.asarray(found.vertex_part, np.int32)
    part[~network.there] = -1
    return part, took


def counted(network: Network, part: NDArray[np.int32], k: int, weights: Weights = "one") -> tuple[int, float]:
    """The cut and the imbalance, from the edges."""
    weight = network.there.astype(np.int64)
    nothing = 0, np.zeros(k, np.int64)
    proof = prove_partition(network, edge_weights(network, weights), weight, part, k, nothing)
    return proof.cut, float(proof.part_weight.max() * k / weight.sum() - 1)


def brought(
    found: KeptPartition, network: Network, clock: Callable[[], float] = processor_s
) -> tuple[dict[str, Any], float]:
    """Bring it up to date, and check it: what came of it, and the seconds without and with the check."""
    weight = np.ones(network.n_vertices, np.int64)
    wall, began = time.perf_counter(), clock()
    report = found.bring(network, None, Control(), unlimited)
    took, waited = clock() - began, time.perf_counter() - wall
    of_edge = edge_weights(network, found.question.weights)
    proof = prove_partition(network, of_edge, weight, found.part, found.question.k, (found.cut, found.part_weight))
    checked = clock() - began
    assert proof.valid, proof.failures
    limit = limit_of(network.n_live_vertices, found.question.k, EPSILON)
    assert int(proof.part_weight.max()) <= limit
    told = {"way": report.way.value, "cut": found.cut, "moved": report.moved, "s": took, "s_checked": checked}
    return told | {"wall_s": waited}, took


def cuts(smaller: int, place: Place = HOST) -> Iterator[dict[str, Any]]:
    """Of each network and each k: our cut from nothing, and that of METIS."""
    side = 1000 // smaller
    networks = {
        "grid": lambda: grid(side, 0),
        "grid with shortcuts": lambda: grid(side // 2, 0.3),
        "roads of Heidelberg": lambda: road("osm-heidelberg"),
        "roads of Andorra": lambda: road("osm-andorra"),
        "groups": lambda: blocks(60_000 // smaller, 400 // smaller, 8),
        "power law": lambda: power_law(14, 120_000 // smaller),
    }
    for name, make in networks.items():
        network = make()
        for k in PARTS:
            part, theirs = metis(network, k, "one", place.clock)
            cut, imbalance = counted(network, part, k)
            ours, took = brought(place.open(Question(k, EPSILON, "one")), network, place.clock)
            size = {"n": network.n_vertices, "m": network.n_edges}
            yield {"network": name, **size, "k": k, "metis": cut, "metis_imbalance": imbalance, "metis_s": theirs,
                   "ours": ours["cut"], "ours_s": took, "ratio": ours["cut"] / cut}  # fmt: skip


def follow(
    network: Network, k: int, modifiers: int, iterations: int, every: int, kind: str = "mixed", place: Place = HOST
) -> Iterator[dict[str, Any]]:
    """Iterations of so many modifiers each; every so often a partition from nothing and one of METIS beside it."""
    rng, question = np.random.default_rng(modifiers), Question(k, EPSILON, weights_of(kind))
    found = place.open(question)
    first, _ = brought(found, network, place.clock)
    host = ResidentPartition(question) if place.beside else None
    if host is not None:
        brought(host, network)
    asked = {"kind": kind, "k": k, "modifiers": modifiers}
    yield {"iteration": 0, **asked, "n": network.n_vertices, "m": network.n_edges, **first}
    for i in range(1, iterations + 1):
        network, modified_s = KINDS[kind](network, modifiers, rng)
        row, _ = brought(found, network, place.clock)
        row |= {"iteration": i, **asked, "modified_s": modified_s}
        if host is not None:
            beside, _ = brought(host, network, place.clock)
            row |= {"host_s": beside["s"], "host_cut": beside["cut"]}
        if i % every == 0:
            full, _ = brought(place.open(question), network, place.clock)
            part, metis_s = metis(network, k, question.weights, place.clock)
            row |= {"full_cut": full["cut"], "full_s": full["s"], "full_s_checked": full["s_checked"],
                    "metis_cut": counted(network, part, k, question.weights)[0], "metis_s": metis_s}  # fmt: skip
        yield row


def one_of_table(graph: Graph, k: int, iterations: int, every: int) -> dict[str, Any] | None:
    """A line as Table I of iG-kway has it, with METIS beside it. None: the graph is not at hand."""
    network = graph.load()
    if network is None:
        return None
    run = list(follow(network, k, TABLE_MODIFIERS, iterations, every))
    row, published = summary(run), graph.published
    size = {"network": graph.name, "n": network.n_vertices, "m": network.n_edges, "iterations": iterations}
    last = next(one for one in reversed(run) if "full_s" in one)
    cuts = {
        "first_cut": run[0]["cut"],
        "cut": last["cut"],
        "full_cut": last["full_cut"],
        "metis_cut": last["metis_cut"],
    }
    theirs = {"name": published.name, "times": published.times, "cut": round(published.cut, 2)}
    return size | cuts | row | {"published": theirs}


def weights_of(kind: str) -> Weights:
    return "capacity" if kind == "other capacities" else "one"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Of one run of `follow`: medians of times, and the last comparison of cuts."""
    own = [row for row in rows if row["iteration"] and row["way"] == "incremental"]
    beside = [row for row in rows if "full_s" in row]
    middle = (
        {name: float(np.median([row[name] for row in own])) for name in ("s", "s_checked", "modified_s")} if own else {}
    )
    told = {
        "kind": rows[0]["kind"],
        "k": rows[0]["k"],
        "modifiers": rows[0]["modifiers"],
        "incremental": len(own),
        "of": len(rows) - 1,
        **middle,
    }
    if beside and own:
        full, theirs = (float(np.median([row[name] for row in beside])) for name in ("full_s", "metis_s"))
        mean = float(np.mean([row["s"] for row in rows if row["iteration"]]))
        told |= {"full_s": full, "metis_s": theirs, "mean_s": mean}
        told |= {"times_full": full / middle["s"], "mean_times_full": full / mean}
        told |= {"times_metis": theirs / middle["s"], "mean_times_metis": theirs / mean}
        told |= {"times_metis_checked": theirs / middle["s_checked"]}
        told["max_s"] = max(row["s"] for row in rows if row["iteration"])
        if "host_s" in rows[-1]:
            told["host_s"], told["host_mean_s"] = (f([row["host_s"] for row in rows[1:]]) for f in (np.median, np.mean))
            told["cut_to_host"] = float(np.exp(np.mean([np.log(row["cut"] / row["host_cut"]) for row in rows[1:]])))
        for other in ("full", "metis"):
            told[f"cut_to_{other}"] = [round(row["cut"] / max(row[f"{other}_cut"], 1), 4) for row in beside]
    return told


def drawn_for(kind: str, side: int) -> Network:
    network = grid(side, 0.3)
    if weights_of(kind) == "capacity":
        drawn = np.random.default_rng(1).integers(1, MOST_CAPACITY + 1, network.n_edges)
        network.set_capacity(np.arange(network.n_edges), drawn)
    return network


def compile_all(place: Place) -> None:
    """Every kernel, so that no time has that in it."""
    for kind in ("mixed", "other capacities"):
        list(follow(drawn_for(kind, 30), 4, 8, 2, 1, kind, place))
    network = grid(160, 0.3)
    found = place.open(Question(4, EPSILON, "one"))
    for _ in range(40):
        brought(found, network)
        network, _ = KINDS["into a cylinder"](network, 100, np.random.default_rng(1))


def main(arguments: list[str] | None = None) -> int:
    top = argparse.ArgumentParser(prog="python -m benchmarks.partition", description=__doc__)
    top.add_argument("what", choices=("cuts", "follow", "kinds", "table1"))
    top.add_argument("--side", type=int, default=1000, help="follow, kinds: a grid of side times side vertices")
    top.add_argument("--smaller", type=int, default=1, help="cuts: networks so many times smaller")
    top.add_argument("-k", type=int, nargs="+", default=[2, 32])
    top.add_argument("--modifiers", type=int, nargs="+", default=[50, 500, 5000])
    top.add_argument("--iterations", type=int, default=100)
    top.add_argument("--every", type=int, default=10, help="follow: iterations between two partitions from nothing")
    top.add_argument("--always", action="store_true", help="follow: never from nothing, however much has changed")
    top.add_argument("--out", type=Path)
    top.add_argument("--device", action="store_true", help="cuts, follow, kinds: on a CUDA device")
    options = top.parse_args(arguments)
    place = on_device() if options.device else HOST
    if options.always:
        upkeep.MOST_AT_ONCE = upkeep.MOST_IN_ALL = upkeep.SOME = 1e9  # type: ignore[misc]
    compile_all(place)
    rows: list[dict[str, Any]] = []
    summaries: list[dict[str, Any]] = []
    path = options.out or RESULTS / f"partition-{options.what}{'-device' if options.device else ''}.json"
    document = {"kind": f"partition-{options.what}", "machine": describe(), "summary": summaries, "rows": rows}
    if options.device:
        document["device"] = device_label("cuda")
    if options.what == "cuts":
        for row in cuts(options.smaller, place):
            rows.append(row)
            print(row, file=sys.stderr)
        mean = float(np.exp(np.mean([np.log(row["ratio"]) for row in rows])))
        by_k = {k: [np.log(row["ratio"]) for row in rows if row["k"] == k] for k in PARTS}
        means = {k: float(np.exp(np.mean(logs))) for k, logs in by_k.items()}
        summaries.append({"geometric_mean": mean, "by_k": means})
    elif options.what == "table1":
        for graph, k in product(GRAPHS, options.k):
            told = one_of_table(graph, k, options.iterations, options.every)
            if told is not None:
                summaries.append(told)
                print(told, file=sys.stderr)
    else:
        for k in options.k:
            kinds = list(KINDS) if options.what == "kinds" else ["mixed"]
            for kind, modifiers in product(kinds, options.modifiers):
                network = drawn_for(kind, options.side)
                run = list(follow(network, k, modifiers, options.iterations, options.every, kind, place))
                rows += run
                summaries.append(summary(run))
                print(summaries[-1], file=sys.stderr)
                path.write_text(json.dumps(document, indent=1) + "\n")  # what is measured outlives an interrupted run
    path.write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(summaries, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
