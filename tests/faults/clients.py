"""Clients that load, change, ask, snapshot, delete and load again, each through a replica picked by chance."""

import random
import time
import uuid
from typing import Any, Final

import httpx

from tests.faults.history import BATCH_UNIT, LOAD_UNIT, SOURCE, Edges, History, Op

CLIENTS: Final = 4
QUESTIONS: Final = 14
MOMENT_S: Final = 0.012
"""Longest pause between two questions of one client."""

PATIENCE_S: Final = 40.0
"""A question that can be repeated and is not answered within this time counts as hanging."""

RETRY_S: Final = 0.03
REQUEST_S: Final = 20.0

KINDS: Final = {
    "patch": 30,
    "patch unkeyed": 8,
    "patch if-match": 9,
    "max-flow": 24,
    "max-flow min-version": 9,
    "capacities": 8,
    "snapshot": 5,
    "put": 3,
    "put unkeyed": 1,
    "delete": 2,
    "delete unkeyed": 1,
}
"""What is asked, and how often."""


class Client:
    """One thread's worth of questions."""

    def __init__(self, history: History, urls: list[str], number: int, graphs: list[str]) -> None:
        self._history, self._urls, self._number, self._graphs = history, urls, number, graphs
        self._rng = random.Random(f"{history.seed} client {number}")
        self._http = httpx.Client(trust_env=False, timeout=REQUEST_S)
        self._sizes: dict[str, int] = {}
        self._versions: dict[str, int] = {}

    def run(self, questions: int = QUESTIONS) -> None:
        for _ in range(questions):
            time.sleep(self._rng.uniform(0, MOMENT_S))
            kind = self._rng.choices(list(KINDS), list(KINDS.values()))[0]
            self.ask(kind, self._rng.choice(self._graphs))

    def close(self) -> None:
        self._http.close()

    def ask(self, kind: str, graph: str) -> Op:
        name, _, how = kind.partition(" ")
        if name == "put":
            op = self._load(graph, keyed=how != "unkeyed")
        elif name == "patch":
            op = self._patch(graph, how)
        elif name == "delete":
            op = self._send(self._begin("delete", graph, keyed=how != "unkeyed"), "DELETE", "")
        elif name == "snapshot":
            op = self._send(self._begin("snapshot", graph, keyed=True), "POST", "/snapshots")
        else:
            op = self._read(name, graph, with_version=how == "min-version")
        if op.acknowledged and isinstance(op.body, dict) and "version" in op.body:
            self._versions[graph] = op.body["version"]
        if op.code == "unknown_graph" and self._rng.random() < 0.7:
            return self._load(graph, keyed=True)
        return op

    def _begin(self, kind: str, graph: str, *, keyed: bool, **fields: Any) -> Op:
        key = uuid.UUID(int=self._rng.getrandbits(128)).hex if keyed else None
        return self._history.begin(client=self._number, kind=kind, graph=graph, key=key, **fields)

    def _load(self, graph: str, *, keyed: bool) -> Op:
        number = self._history.number()
        edges = random_edges(self._rng, number)
        op = self._begin("put", graph, keyed=keyed, number=number, edges=edges)
        return self._send(op, "PUT", "", edges.body())

    def _patch(self, graph: str, how: str) -> Op:
        number = self._history.number()
        batch = random_batch(self._rng, number)
        if_match = self._versions.get(graph) if how == "if-match" else None
        op = self._begin("patch", graph, keyed=how != "unkeyed", number=number, batch=batch, if_match=if_match)
        return self._send(op, "PATCH", "/capacities", {"batch": batch})

    def _read(self, kind: str, graph: str, *, with_version: bool) -> Op:
        """Asked again, as a new question, until there is an answer."""
        deadline = time.monotonic() + PATIENCE_S
        version = self._versions.get(graph) if with_version else None
        while True:
            op = self._begin(kind, graph, keyed=False, min_version=version)
            if kind == "capacities":
                self._send(op, "GET", "/capacities")
            else:
                body = {"fields": ["value", "cut"]} | ({} if version is None else {"min_version": version})
                self._send(op, "POST", "/max-flow", body)
            if not op.unknown or time.monotonic() > deadline:
                return op
            time.sleep(RETRY_S)

    def _send(self, op: Op, method: str, path: str, body: object = None) -> Op:
        """With a key: until there is an answer. Without: once."""
        deadline = time.monotonic() + PATIENCE_S
        headers = {} if op.key is None else {"Idempotency-Key": op.key}
        if op.if_match is not None:
            headers["If-Match"] = f'"{op.if_match}"'
        while True:
            op.tries += 1
            op.status, op.body = None, None
            url = f"{self._rng.choice(self._urls)}/v1/graphs/{op.graph}{path}"
            try:
                answer = self._http.request(method, url, json=body, headers=headers)
                op.body = answer.json() if answer.content else None
                op.status = answer.status_code
            except httpx.TransportError:
                pass
            done = not op.unknown and op.status != 429
            if done or op.key is None or time.monotonic() > deadline:
                op.answered_at = time.monotonic()
                return op
            time.sleep(RETRY_S)


def random_edges(rng: random.Random, number: int) -> Edges:
    """Five to eight vertices, about three edges for each, and the two marks."""
    n = rng.randint(5, 8)
    pairs = [(SOURCE, n - 1), (SOURCE, n - 1), *((v, v + 1) for v in range(n - 1))]
    pairs += [(a, b) for a, b in ((rng.randrange(n), rng.randrange(n)) for _ in range(2 * n)) if a != b]
    capacity = [number * LOAD_UNIT, 0, *(rng.randint(0, 40) for _ in pairs[2:])]
    return Edges(n, [a for a, _ in pairs], [b for _, b in pairs], capacity)


def random_batch(rng: random.Random, number: int) -> list[dict[str, Any]]:
    """The mark, and one to three operations on edges that every graph has."""
    batch: list[dict[str, Any]] = [{"edges": [1], "set": [number * BATCH_UNIT]}]
    for _ in range(rng.randint(1, 3)):
        edges = rng.sample(range(2, 6), rng.randint(1, 3))
        op = rng.choice(("set", "add", "add", "add", "close", "reopen"))
        if op in ("close", "reopen"):
            batch.append({"edges": edges, "op": op})
        else:
            batch.append({"edges": edges, op: [rng.randint(0, 9) for _ in edges]})
    return batch
