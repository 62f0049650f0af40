"""Questions of many rows, and those without a flow: each answer is held against the oracles."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, pairwise, permutations, product
from typing import Any, Final

import networkx as nx

from tests.sequences import flows
from tests.sequences.graph import UNLIMITED, Ends, Graph
from tests.sequences.oracles import between, maximum
from tests.sequences.sequence import Run

FEW: Final = 6
"""Of so many vertices all partitions are tried."""


def what_if(run: Run) -> None:
    ends, body = run.draw_ends()
    value = maximum(run.graph, ends)
    drawn = [draw_scenario(run, ends) for _ in range(run.rng.randint(1, 5))]
    body["scenarios"] = [scenario for scenario, _, _ in drawn]
    if value == UNLIMITED:
        return  # what then is answered of the rows is told nowhere
    answer = run.ask("/what-if", body)
    run.check(run.got(answer["base"]["value"]) == value, "the value without a scenario", value)
    for row, (_, graph, its_ends) in zip(answer["answers"], drawn, strict=True):
        wanted = maximum(graph, its_ends)
        got = UNLIMITED if row.get("error", {}).get("code") == "unbounded" else run.got(row["value"])
        run.check(got == wanted, "the value of a scenario", row, wanted)


def draw_scenario(run: Run, ends: Ends) -> tuple[dict[str, Any], Graph, Ends]:
    rng, graph, scenario = run.rng, run.graph.copy(), dict[str, Any]()
    names = run.some_edges(2)
    if names and rng.random() < 0.8:
        kind = rng.choice(["close", "reopen", "set"])
        operation: dict[str, Any] = {"edges": names}
        if kind == "set":
            own = [rng.randint(0, 9) for _ in names]
            operation["set"] = run.puts(own)
            for name, units in zip(names, own, strict=True):
                graph.change(name, units)
        else:
            operation["op"] = kind
            for name in names:
                graph.edges[name] = replace(graph.edges[name], closed=kind == "close")
        scenario["batch"] = [operation]
    if rng.random() < 0.25:
        vertex, most = rng.choice(list(graph.vertices)), rng.choice([0, rng.randint(0, 9)])
        graph.vertices[vertex] = most
        scenario["vertex_batch"] = [{"vertices": [vertex], "set": [run.put(most)]}]
    if rng.random() < 0.2:
        ends, more = run.draw_ends()
        scenario |= more
    return scenario, graph, ends


def closure_study(run: Run) -> None:
    ends, body = run.draw_ends()
    value, of_vertices = maximum(run.graph, ends), run.rng.random() < 0.4
    if value == UNLIMITED:
        return
    closing = "vertices" if of_vertices else "edges"
    answer = run.ask("/closure-study", body | {"top": None} | ({"close": "vertices"} if of_vertices else {}))
    for row in answer["answers"]:
        left = run.graph.without(**{closing: tuple(row[closing])})
        wanted = maximum(left, ends)
        run.check((run.got(row["value"]), run.got(row["loss"])) == (wanted, value - wanted), "a closure", row, wanted)
    candidates = set(run.graph.vertices) - set(ends.supply) - set(ends.demand) if of_vertices else set(run.graph.edges)
    run.check({row[closing][0] for row in answer["answers"]} == candidates, "the candidates", candidates)
    losses = [run.got(row["loss"]) for row in answer["answers"]]
    run.check(losses == sorted(losses, reverse=True), "the order of closures", losses)


def pairs(run: Run) -> None:
    if run.knows_capacities:
        return
    answer = run.ask("/pairs", {"among": list(run.graph.vertices)})
    for row in answer["answers"]:
        wanted = between(run.graph, row["source"], row["sink"])
        got = UNLIMITED if row.get("error", {}).get("code") == "unbounded" else run.got(row["value"])
        run.check(got == wanted, "the value of a pair", row, wanted)
    ordered = len(run.graph.vertices) * (len(run.graph.vertices) - 1)
    run.check(
        len(answer["answers"]) == (ordered // 2 if run.graph.is_undirected else ordered), "how many pairs there are"
    )


def gomory_hu_tree(run: Run) -> None:
    if run.knows_capacities:
        return
    if not run.graph.is_undirected:
        run.ask("/gomory-hu-tree", {}, "not_undirected")
        return
    told, tree = run.ask("/gomory-hu-tree", {})["tree"], nx.Graph()
    tree.add_nodes_from(run.graph.vertices)
    for tail, head, value in zip(told["tail"], told["head"], told["value"], strict=True):
        tree.add_edge(tail, head, value=run.got(value))
    run.check(nx.is_tree(tree), "a tree", told)
    for a, b in combinations(run.graph.vertices, 2):
        path = nx.shortest_path(tree, a, b)
        least = min(tree[x][y]["value"] for x, y in pairwise(path))
        run.check(least == between(run.graph, a, b), "the least value on the way", a, b, least)


def global_min_cut(run: Run) -> None:
    if run.knows_capacities:
        return
    wanted = min(between(run.graph, a, b) for a, b in permutations(run.graph.vertices, 2))
    if wanted == UNLIMITED:
        run.ask("/global-min-cut", {}, "unbounded")
    else:
        answer = run.ask("/global-min-cut", {})
        run.check(run.got(answer["value"]) == wanted, "the least cut of all", wanted)


def matching(run: Run) -> None:
    edges, one = run.graph.edges.values(), 10**run.decimals
    tails, heads = {edge.tail for edge in edges}, {edge.head for edge in edges}
    if run.knows_capacities:
        return
    if tails & heads or any(edge.undirected for edge in edges):
        run.ask("/matching", {}, "not_bipartite")
    elif any(0 < edge.capacity < one for edge in edges):
        run.ask("/matching", {}, "invalid_body")
    else:
        open_ones = nx.Graph()
        open_ones.add_nodes_from(tails | heads)
        open_ones.add_edges_from((edge.tail, edge.head) for edge in edges if edge.capacity >= one)
        wanted = len(nx.bipartite.hopcroft_karp_matching(open_ones, tails)) // 2
        run.check(run.ask("/matching", {})["size"] == wanted, "how many edges match", wanted)


def partition(run: Run) -> None:
    rng, n = run.rng, len(run.graph.vertices)
    k, epsilon, weights = rng.randint(1, n), rng.choice([0.0, 0.5, 1.0]), rng.choice(["one", "capacity"])
    body = {"k": k, "epsilon": epsilon, "weights": weights, "fields": ["parts", "cut"]}
    across = [edge for edge in run.graph.edges.values() if not edge.is_loop]
    if weights == "capacity" and any(edge.capacity >= UNLIMITED for edge in across):
        run.ask("/partition", body, "invalid_body")
        return
    answer = run.ask("/partition", body)
    part = dict(zip(answer["parts"]["vertices"], answer["parts"]["part"], strict=True))
    run.check(set(part) == set(run.graph.vertices), "who has a part")
    limit = max(int((1 + epsilon) * n / k), -(-n // k))
    sizes = [list(part.values()).count(number) for number in range(k)]
    run.check(max(sizes) <= limit and sizes == answer["n_vertices"], "the sizes of parts", sizes, limit)

    def cut(parts: dict[Any, int]) -> int:
        cut_edges = [edge for edge in across if parts[edge.tail] != parts[edge.head]]
        return sum(edge.capacity if weights == "capacity" else 1 for edge in cut_edges)

    value = run.got(answer["value"]) if weights == "capacity" else int(answer["value"])
    run.check(value == cut(part), "the value of a partition", cut(part))
    if n <= FEW and answer["mode"] == "full":
        every = (numbers for numbers in product(range(k), repeat=n) if max(map(numbers.count, range(k))) <= limit)
        least = min(cut(dict(zip(run.graph.vertices, numbers, strict=True))) for numbers in every)
        run.check(value == least, "the best partition", least)


QUESTIONS: Final[tuple[Callable[[Run], None], ...]] = (
    *[flows.max_flow] * 5,
    *[flows.min_cost_flow] * 2,
    *(flows.capacity_expansion, flows.circulation, flows.parametric),
    *(what_if, closure_study, pairs, gomory_hu_tree, global_min_cut, matching, partition),
)
