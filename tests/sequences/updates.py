"""Loads and updates of all kinds, each put to the service and to the model."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from tests.sequences.graph import UNLIMITED, Edge, Graph, Name
from tests.sequences.oracles import maximum
from tests.sequences.sequence import Answer, Run

MOST_VERTICES: Final = 9
MOST_EDGES: Final = 24
FILES: Final = {"npz": "application/x-npz", "arrow": "application/vnd.apache.arrow.stream"}


def load(run: Run) -> None:
    """A graph of up to seven vertices."""
    rng, graph = run.rng, Graph()
    for _ in range(rng.randint(2, 7)):
        graph.vertices[run.new_vertex()] = None
    for _ in range(rng.randint(1, 2 * len(graph.vertices) + 3)):
        graph.edges[run.new_edge()] = replace(run.draw_edge(list(graph.vertices)), closed=rng.random() < 0.1)
    edges = list(graph.edges.values())
    body: dict[str, Any] = run.columns(edges) | {"decimals": run.decimals, "closed": [edge.closed for edge in edges]}
    body |= {"vertex_labels": list(graph.vertices)} if run.has_names else {"n_vertices": len(graph.vertices)}
    if run.has_ids:
        body["edge_ids"] = list(graph.edges)
    limited = [vertex for vertex in graph.vertices if rng.random() < 0.5] if rng.random() < 0.25 else []
    if limited:
        graph.vertices |= {vertex: rng.choice([UNLIMITED, rng.randint(0, 12)]) for vertex in limited}
        body["vertices"] = limited
        body["vertex_capacity"] = run.puts([graph.vertices[vertex] or 0 for vertex in limited])
        run.knows_capacities = True
    status, answer = run.send("PUT", "", body)
    run.check(status in (200, 201), "a load", answer)
    arrived(run, answer, graph)


def arrived(run: Run, answer: Answer, graph: Graph) -> None:
    run.arrive(answer["version"], graph)
    run.known_since |= {vertex: run.version for vertex in graph.vertices if vertex not in run.known_since}


def accepted(run: Run, path: str, body: object, after: Graph, *, method: str = "PATCH", **params: str) -> None:
    """The update makes a version, and what it tells of flows is so."""
    status, answer = run.send(method, path, body, **params)
    run.check(status == 200, "an update", answer)
    if params.get("dry_run"):
        run.check(answer["version"] == run.version, "the version of a dry run", answer)
    else:
        run.check(answer["version"] == run.version + 1, "the version of an update", answer)
        arrived(run, answer, after)
    for state in answer["flow_states"]:
        if state["kind"] != "flow" or state["value"] is None:
            continue
        ends = run.asked.get((frozenset(state["sources"]), frozenset(state["sinks"])), [])
        values = {maximum(after, each) for each in ends}
        run.check(not values or run.got(state["value"]) in values, "the value of a flow state", state, values)


def sometimes_dry(run: Run) -> dict[str, str]:
    return {"dry_run": "true"} if run.rng.random() < 0.15 else {}


def patch_capacities(run: Run) -> None:
    rng, after, batch, fits = run.rng, run.graph.copy(), list[dict[str, Any]](), True
    for _ in range(rng.randint(1, 3)):
        names = run.some_edges(3)
        if not names or not fits:
            break
        operation, fits = operate(run, after, names, rng.choice(["set", "add", "scale", "close", "reopen", "ends"]))
        batch.append(operation)
    if not batch:
        return
    body = batch[0] if len(batch) == 1 else {"batch": batch}
    if fits:
        solve = {"solve": "none"} if rng.random() < 0.2 else {}
        accepted(run, "/capacities", body, after, **sometimes_dry(run), **solve)
    else:
        status, answer = run.send("PATCH", "/capacities", body)
        run.check((status, answer["code"]) == (422, "invalid_body"), "a capacity below zero", answer)


def operate(run: Run, after: Graph, names: list[Name], kind: str) -> tuple[dict[str, Any], bool]:
    """One operation, and whether what comes of it is a capacity."""
    rng, body = run.rng, {"edges": names}
    if kind in ("close", "reopen"):
        for name in names:
            after.edges[name] = replace(after.edges[name], closed=kind == "close")
        return body | {"op": kind}, True
    if kind == "scale":
        for name in names:
            after.change(name, 2 * after.edges[name].own)
        return body | {"scale": [2] * len(names)}, True
    if kind == "add":
        more = [rng.randint(-4, 8) for _ in names]
        for name, units in zip(names, more, strict=True):
            own = after.edges[name].own
            after.change(name, own if own >= UNLIMITED else own + units)
        return body | {"add": run.puts(more)}, all(after.edges[name].own >= 0 for name in names)
    new = [UNLIMITED if rng.random() < 0.05 else rng.randint(0, 30) for _ in names]
    edge = after.edges[names[0]]
    if kind == "ends" and sum(other.joins(edge.tail, edge.head) for other in after.edges.values()) == 1:
        after.change(names[0], new[0])
        return {"tail": [edge.tail], "head": [edge.head], "set": run.puts(new[:1])}, True
    for name, units in zip(names, new, strict=True):
        after.change(name, units)
    return body | {"set": run.puts(new)}, True


def patch_structure(run: Run) -> None:
    rng, after, batch = run.rng, run.graph.copy(), list[dict[str, Any]]()
    edges = [name for name in after.edges if rng.random() < 0.15]
    vertices = [vertex for vertex in after.vertices if rng.random() < 0.06]
    if len(after.vertices) - len(vertices) < 2:
        vertices = []
    stay = [vertex for vertex in after.vertices if vertex not in vertices]
    given = run.n_vertices, run.n_edges
    if rng.random() < 0.4 and len(after.vertices) < MOST_VERTICES:
        batch.append(insert_vertices(run, after, stay))
    if rng.random() < 0.6 and len(after.edges) < MOST_EDGES:
        new = {run.new_edge(): run.draw_edge(stay) for _ in range(rng.randint(1, 3))}
        after.edges |= new
        ids = {"edge_ids": list(new)} if run.has_ids else {}
        batch.append({"op": "insert"} | run.columns(list(new.values())) | ids)
    for name in edges:
        del after.edges[name]
    for vertex in vertices:
        after.delete_vertex(vertex)
    batch += [{"op": "delete", "edges": edges}] if edges else []
    batch += [{"op": "delete", "vertices": vertices}] if vertices else []
    if batch:
        rng.shuffle(batch)
        dry = sometimes_dry(run)
        accepted(run, "/edges", {"batch": batch}, after, **dry)
        if dry:
            run.n_vertices, run.n_edges = given


def insert_vertices(run: Run, after: Graph, stay: list[Name]) -> dict[str, Any]:
    new = [run.new_vertex() for _ in range(run.rng.randint(1, 2))]
    stay += new
    after.vertices |= dict.fromkeys(new)
    body: dict[str, Any] = {"op": "insert"} | ({"vertices": new} if run.has_names else {"count": len(new)})
    if run.graph.has_vertex_capacities and run.rng.random() < 0.5:
        capacities = [run.rng.choice([UNLIMITED, run.rng.randint(0, 9)]) for _ in new]
        after.vertices |= dict(zip(new, capacities, strict=True))
        body["capacity"] = run.puts(capacities)
    return body


def patch_vertices(run: Run) -> None:
    rng, after = run.rng, run.graph.copy()
    if not run.knows_capacities and rng.random() < 0.5:
        return
    vertices = rng.sample(list(after.vertices), rng.randint(1, 2))
    capacities = [rng.choice([UNLIMITED, rng.randint(0, 15)]) for _ in vertices]
    for vertex, capacity in zip(vertices, capacities, strict=True):
        if capacity < UNLIMITED or after.vertices[vertex] is not None:
            after.vertices[vertex] = capacity
            run.knows_capacities = True
    accepted(run, "/vertices", {"vertices": vertices, "set": run.puts(capacities)}, after)


def patch_costs(run: Run) -> None:
    names = run.some_edges(2)
    if run.costs and names:
        after, costs = run.graph.copy(), [run.rng.randint(0, 7) for _ in names]
        for name, cost in zip(names, costs, strict=True):
            after.edges[name] = replace(after.edges[name], cost=cost)
        accepted(run, "/costs", {"edges": names, "set": costs}, after)


def patch_lower(run: Run) -> None:
    names = [name for name in run.some_edges(2) if not run.graph.edges[name].undirected]
    if run.lowers and names:
        after, least = run.graph.copy(), [run.rng.randint(0, 3) for _ in names]
        for name, units in zip(names, least, strict=True):
            after.edges[name] = replace(after.edges[name], lower=units)
        accepted(run, "/lower", {"edges": names, "set": run.puts(least)}, after)


def restore(run: Run) -> None:
    """Back to an earlier version; vertices that came since stay, without edges and without limits."""
    version = run.rng.choice(list(run.history))
    after, now = run.history[version].copy(), run.graph.vertices
    for vertex, capacity in now.items():
        if run.known_since[vertex] > version:
            after.vertices[vertex] = None if capacity is None else UNLIMITED
    accepted(run, ":restore", {"version": version}, after, method="POST")


def put_export(run: Run) -> None:
    """The export of the graph in its place: all is as it was, but that nothing was ever deleted."""
    are_numbered = not (run.has_names and run.has_ids)
    if are_numbered and (run.n_vertices, run.n_edges) != (len(run.graph.vertices), len(run.graph.edges)):
        return  # the numbers of deleted ones are names then
    kind = run.rng.choice(list(FILES))
    path = f"/v1/graphs/{run.name}"
    file = run.http.get(f"{path}/export", params={"format": kind})
    put = run.http.put(path, content=file.content, headers={"Content-Type": FILES[kind]})
    run.said.append(("export and PUT", kind, file.status_code, put.status_code, put.text[:800]))
    run.check((file.status_code, put.status_code) == (200, 200), "an export as it was put")
    run.history, run.known_since, run.asked = {}, {}, {}
    arrived(run, put.json(), run.graph)
    read_pages(run)


def read_pages(run: Run) -> None:
    """Pages of edges and vertices say what the model says."""
    _, edges = run.send("GET", "/capacities")
    told = {
        name: Edge(
            tail,
            head,
            run.got(own),
            undirected,
            closed,
            int(edges["cost"][row]) if run.costs else 0,
            run.got(edges["lower"][row]) if "lower" in edges else 0,
        )
        for row, (name, tail, head, own, undirected, closed) in enumerate(
            zip(
                *(edges[column] for column in ("edge_ids", "tail", "head", "capacity", "undirected", "closed")),
                strict=True,
            )
        )
    }
    run.check(told == run.graph.edges, "pages of edges", told, run.graph.edges)
    _, vertices = run.send("GET", "/vertices", all="true")
    capacities = dict(zip(vertices["vertices"], map(run.got, vertices["capacity"]), strict=True))
    wanted = {vertex: UNLIMITED if own is None else own for vertex, own in run.graph.vertices.items()}
    run.check(capacities == wanted, "pages of vertices", capacities, wanted)


UPDATES: Final[tuple[Callable[[Run], None], ...]] = (
    *[patch_capacities] * 6,
    *[patch_structure] * 3,
    *(patch_vertices, patch_costs, patch_lower, restore, put_export, read_pages),
)
