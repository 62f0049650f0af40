"""Graphs with all that edges and vertices may have, changes of their structure, and what is kept beside graphs: filled
in by an earlier release, and looked for in this one."""

import random
from typing import Any, Final

import httpx

VERTICES: Final = [f"v{i}" for i in range(16)]
WATCH: Final = {"sources": ["v0", "v2"], "sinks": ["v1"], "supply": [40, "inf"]}
HOOK: Final = {"url": "https://headrace.invalid/hook", "graphs": ["crossings"], "types": ["value.changed"]}
QUESTIONS: Final[dict[str, tuple[str, dict[str, Any], str]]] = {
    "prices": ("min-cost-flow", {"lower": "ignore"}, "cost"),
    "crossings": ("min-cut", {"sources": ["v0", "v3"], "sinks": ["v1"], "demand": [70.5]}, "value"),
    "rivers": ("global-min-cut", {}, "value"),
}
"""What each graph is asked at last beside its flow, and which member of the answer is to be the same."""


def columns(seed: int) -> dict[str, Any]:
    """Streets with names and one decimal, one of them without a limit."""
    rng = random.Random(seed)
    rows = [rng.sample(VERTICES, 2) for _ in range(60)]
    tail, head = zip(*rows, strict=True)
    capacity: list[Any] = [rng.randrange(1, 300) / 10 for _ in rows]
    capacity[9] = "inf"
    ids = [f"e{i}" for i in range(len(rows))]
    return {"tail": tail, "head": head, "capacity": capacity, "edge_ids": ids, "source": "v0", "sink": "v1"}


def graphs() -> dict[str, dict[str, Any]]:
    rng = random.Random(7)
    prices = {"cost": [rng.randrange(90) / 100 for _ in range(60)], "lower": [0.1] + [0] * 59}
    places = {"vertex_labels": VERTICES, "x": [8 + i / 7 for i in range(16)], "y": [49 + i / 9 for i in range(16)]}
    limits = {"vertices": VERTICES[4:8], "vertex_capacity": [30, 20.5, "inf", 9]}
    return {
        "prices": columns(1) | prices,
        "crossings": columns(2) | places | limits,
        "rivers": columns(3) | {"undirected": True, "closed": [i % 6 == 0 for i in range(60)]},
    }


def changes(name: str) -> list[tuple[str, dict[str, Any]]]:
    """Routes and bodies of updates, one version each."""
    inserted: dict[str, Any] = {"op": "insert", "edge_ids": ["n1", "n2"], "tail": ["v0", "w"], "head": ["w", "v1"]}
    place = {"x": [8.5], "y": [49.5], "capacity": [6.5]} if name == "crossings" else {}
    vertex = {"op": "insert", "vertices": ["w"]} | place
    more = {"cost": [0.5, 0.25], "lower": [0, 0.5]} if name == "prices" else {"undirected": name == "rivers"}
    edges = inserted | {"capacity": [7, 8.5]} | more
    own: dict[str, tuple[str, dict[str, Any]]] = {
        "prices": ("costs", {"edges": ["e4", "e5"], "set": [0.75, 1.5]}),
        "crossings": ("vertices", {"vertices": ["v5", "v12"], "set": [11.5, 13]}),
        "rivers": ("capacities", {"edges": ["e0", "e6"], "op": "reopen"}),
    }
    lower = [("lower", {"edges": ["e7"], "set": [0.2]})] if name == "prices" else []
    return [
        ("capacities", {"edges": ["e1", "e2", "e3"], "set": [4.5, 6, "inf"]}),
        own[name],
        ("edges", {"batch": [vertex, edges]}),
        ("edges", {"batch": [{"op": "delete", "edges": ["e8"]}, {"op": "delete", "vertices": ["v15"]}]}),
        *lower,
        ("capacities", {"batch": [{"edges": ["n1"], "add": [0.5]}, {"edges": ["e10"], "op": "close"}]}),
    ]


def look(http: httpx.Client, name: str) -> dict[str, Any]:
    """What is said of the edges and vertices, with the value of the flow."""
    page = http.get(f"/v1/graphs/{name}/capacities", params={"limit": 100_000}).raise_for_status().json()
    vertices = http.get(f"/v1/graphs/{name}/vertices", params={"all": True}).raise_for_status().json()
    flow = http.post(f"/v1/graphs/{name}/max-flow", json={"fields": ["value", "cut"]}).raise_for_status().json()
    assert flow["certificate"]["valid"], flow
    return {"page": page, "vertices": vertices, "value": flow["value"]}


def asked(http: httpx.Client, name: str) -> Any:
    route, body, member = QUESTIONS[name]
    return http.post(f"/v1/graphs/{name}/{route}", json=body).raise_for_status().json()[member]


def fill(http: httpx.Client) -> dict[str, Any]:
    """Load, watch and change; what was said of each version, and of what is beside the graphs."""
    said: dict[str, Any] = {"graphs": {}, "answers": {}}
    for name, body in graphs().items():
        http.put(f"/v1/graphs/{name}", json=body).raise_for_status()
        if name == "crossings":
            http.put(f"/v1/graphs/{name}/watches/main", json=WATCH | {"on": ["value"]}).raise_for_status()
            http.put("/v1/webhooks/hook", json=HOOK).raise_for_status()
        said["graphs"][name] = [look(http, name)]
        for step, (route, change) in enumerate(changes(name)):
            http.patch(f"/v1/graphs/{name}/{route}", json=change).raise_for_status()
            if step == 3:  # behind the changes of structure
                http.post(f"/v1/graphs/{name}/snapshots").raise_for_status()
            said["graphs"][name].append(look(http, name))
        said["answers"][name] = asked(http, name)
    said["watches"] = http.get("/v1/graphs/crossings/watches").raise_for_status().json()
    said["webhooks"] = http.get("/v1/webhooks").raise_for_status().json()
    return said


def check(http: httpx.Client, said: dict[str, Any]) -> None:
    """Each graph as it was said to be, at each version, and what is beside them."""
    for name, versions in said["graphs"].items():
        found = look(http, name)
        assert found == versions[-1], name
        assert asked(http, name) == said["answers"][name], name
        for version in versions:
            number = version["page"]["version"]
            file = http.get(f"/v1/graphs/{name}/export", params={"format": "npz", "version": number}).raise_for_status()
            headers = {"Content-Type": "application/x-npz"}
            http.put("/v1/graphs/past", content=file.content, headers=headers).raise_for_status()
            past = look(http, "past")
            assert past["value"] == version["value"], (name, number)
            for member in ("edge_ids", "tail", "head", "capacity", "closed", "cost", "lower"):
                assert past["page"].get(member) == version["page"].get(member), (name, number, member)
            http.delete("/v1/graphs/past").raise_for_status()
    assert http.get("/v1/graphs/crossings/watches").raise_for_status().json() == said["watches"]
    told = http.get("/v1/webhooks").raise_for_status().json()["webhooks"]
    for hook, before in zip(told, said["webhooks"]["webhooks"], strict=True):
        assert {member: hook[member] for member in HOOK} == {member: before[member] for member in HOOK}
