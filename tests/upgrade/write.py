"""`python -m tests.upgrade.write URL FILE`: fills a service of any release, and writes down what it says of each graph.

Over plain HTTP, with what the first release could do, and what came since (`richer`). Then stop the service with
SIGKILL, as an upgrade may, and pack its data directory: CONTRIBUTING.md says how.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

import httpx

from tests.upgrade import richer

WHOLE = {"fields": ["value", "cut"]}


def city(seed: int) -> dict[str, Any]:
    """Streets with names and one decimal, some of them doubled, one without a limit."""
    rng = random.Random(seed)
    names = [f"v{i}" for i in range(30)]
    rows = [rng.sample(names, 2) for _ in range(120)]
    capacity: list[Any] = [rng.randrange(200) / 10 for _ in rows]
    capacity[7] = "inf"
    tail, head = zip(*rows, strict=True)
    ids = [f"e{i}" for i in range(len(rows))]
    columns: dict[str, Any] = {"tail": tail, "head": head, "capacity": capacity, "edge_ids": ids}
    return columns | {"source": "v0", "sink": "v1", "undirected": [i % 5 == 0 for i in range(len(rows))]}


def numbers(seed: int, n_vertices: int = 50, n_edges: int = 300) -> dict[str, Any]:
    """A network by numbers, with capacities beyond 32 bits."""
    rng = random.Random(seed)
    rows = [rng.sample(range(n_vertices), 2) for _ in range(n_edges)]
    tail, head = zip(*rows, strict=True)
    capacity = [rng.randrange(1 << 40) for _ in rows]
    return {"n_vertices": n_vertices, "tail": tail, "head": head, "capacity": capacity, "source": 0, "sink": 1}


def shift(seed: int) -> dict[str, Any]:
    """Who can do what, each once."""
    rng = random.Random(seed)
    rows = sorted({(rng.randrange(20), 20 + rng.randrange(20)) for _ in range(70)})
    tail, head = zip(*rows, strict=True)
    return {"n_vertices": 40, "tail": tail, "head": head, "capacity": [1] * len(rows)}


def answers(http: httpx.Client, name: str, matching: bool) -> dict[str, Any]:
    """What must be the same after an upgrade: version, capacities, and values with their certificates."""
    page = http.get(f"/v1/graphs/{name}/capacities", params={"limit": 100_000}).raise_for_status().json()
    said = {member: page[member] for member in ("version", "edge_ids", "tail", "head", "capacity", "closed")}
    question = ("matching", {}) if matching else ("max-flow", WHOLE)
    found = http.post(f"/v1/graphs/{name}/{question[0]}", json=question[1]).raise_for_status().json()
    assert found["certificate"]["valid"], found
    said["value"] = found["size"] if matching else found["value"]
    return said


def fill(http: httpx.Client) -> dict[str, Any]:
    """Load, change, snapshot, repeat; what was said at each version of each graph."""
    said: dict[str, Any] = {}
    graphs = {"city": city(1), "numbers": numbers(2), "shift": shift(3), "replaced": numbers(4)}
    for name, columns in graphs.items():
        http.put(f"/v1/graphs/{name}", json=columns).raise_for_status()
    http.put("/v1/graphs/replaced", json=city(5)).raise_for_status()
    http.put("/v1/graphs/gone", json=city(6)).raise_for_status()
    http.delete("/v1/graphs/gone").raise_for_status()
    for name in graphs:
        rng, matching = random.Random(name), name == "shift"
        versions = said[name] = [answers(http, name, matching)]
        ids = versions[0]["edge_ids"]
        for step in range(12):
            edges = rng.sample(ids, 4)
            change: dict[str, Any] = {"set": [rng.randrange(1, 30) for _ in edges]}
            if matching or step % 4 == 3:
                change = {"op": rng.choice(["close", "reopen"])}
            headers = {"Idempotency-Key": f"{name}-{step}"}
            http.patch(
                f"/v1/graphs/{name}/capacities", json={"edges": edges, **change}, headers=headers
            ).raise_for_status()
            versions.append(answers(http, name, matching))
            if step == 5:
                http.post(f"/v1/graphs/{name}/snapshots").raise_for_status()
    last = {"edges": [said["numbers"][0]["edge_ids"][0]], "set": [5]}
    again = http.patch("/v1/graphs/numbers/capacities", json=last, headers={"Idempotency-Key": "last"})
    said["numbers"].append(answers(http, "numbers", False))
    return {
        "graphs": said,
        "last": {"body": last, "key": "last", "version": again.raise_for_status().json()["version"]},
    }


if __name__ == "__main__":
    with httpx.Client(base_url=sys.argv[1], timeout=60, trust_env=False) as client:
        said = fill(client) | {"richer": richer.fill(client)}
        Path(sys.argv[2]).write_text(json.dumps(said, separators=(",", ":")) + "\n")
