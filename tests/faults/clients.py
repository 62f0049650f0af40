"""Clients that load, change, ask, watch, export, copy, restore, cancel, delete, each through a replica by chance.

A request that fails is sent again to the other replica. What has been answered under a key is often asked again at
the other one, and must be answered the same.
"""

import copy
import random
import time
import uuid
from collections import defaultdict
from typing import Any, Final

import httpx

from tests.faults.circulations import BOUND_EDGES
from tests.faults.exports import READERS, read_export
from tests.faults.growth import Growth, random_change
from tests.faults.history import LOAD_UNIT, PAGE_ROWS, History, Look, Op, Shape
from tests.faults.limits import random_limits
from tests.faults.parts import BODY as PARTITION
from tests.faults.questions import (
    COPIES,
    KINDS,
    LIMITS_S,
    WATCHES,
    earlier_version,
    even_vertices,
    fitting,
    random_batch,
    random_bounds,
    random_edges,
    random_prices,
)
from tests.faults.scenarios import BODY as SCENARIOS
from tests.faults.structure import doomed

CLIENTS: Final = 4
QUESTIONS: Final = 14
MOMENT_S: Final = 0.012
"""Longest pause between two questions of one client, and between a command and its cancel."""

PATIENCE_S: Final = 40.0
"""A question that can be repeated and is not answered within this time counts as hanging."""

RETRY_S: Final = 0.03
REQUEST_S: Final = 20.0
AGAIN: Final = 0.5
"""How often an answer under a key is asked for again."""

PATCHES: Final = {
    "patch": ("/capacities", random_batch),
    "costs": ("/costs", random_prices),
    "lower": ("/lower", random_bounds),
}
"""The end of the path of a batch of edges, and what draws one."""

OWN_BOUNDS: Final = 0.6
"""How often a circulation of a graph that has lower bounds goes by these."""

REVIVED: Final = 0.4
"""How often who has deleted vertices has them back at once, by a restore of the version before."""

IGNORED: Final = "one for all questions"
"""A key that is sent with questions of any body: it stands for nothing, and each is answered as if it were not sent."""

JOB_WAIT_S: Final = 1
AS_JOBS: Final = ("job", "cancelled")
TERMINAL: Final = ("succeeded", "failed", "cancelled")
BUSY: Final = (429, 507)
"""Refused for now, and not done."""


class Client:
    """One thread's worth of questions."""

    def __init__(self, history: History, urls: list[str], number: int) -> None:
        self._history, self._urls, self._number = history, urls, number
        self._graphs = list(history.shapes)[: len(history.shapes) // 2]
        self._rng = random.Random(f"{history.seed} client {number}")
        self._http = httpx.Client(verify=False, trust_env=False, timeout=REQUEST_S)
        self._versions: dict[str, int] = {}
        self._growth: dict[str, Growth] = defaultdict(Growth)

    def run(self, questions: int = QUESTIONS) -> None:
        for _ in range(questions):
            time.sleep(self._rng.uniform(0, MOMENT_S))
            kind = self._rng.choices(list(KINDS), list(KINDS.values()))[0]
            graph = self._rng.choice(self._graphs)
            if self._rng.random() < COPIES:
                graph = self._history.twins[graph]
            op = self.ask(fitting(kind, self._history.shapes[graph]), graph)
            if op.kind == "edges" and op.acknowledged and doomed(op.batch or []) and self._rng.random() < REVIVED:
                self._restore(graph, "", op.body["version"] - 1)

    def close(self) -> None:
        self._http.close()

    def ask(self, kind: str, graph: str) -> Op:
        name, _, how = kind.partition(" ")
        keyed = how != "unkeyed"
        if name == "put":
            op = self._load(graph, how)
        elif name in ("patch", "costs", "lower"):
            op = self._patch(name, graph, how)
        elif name == "vertices":
            batch = random_limits(self._rng, self._history.shapes[graph])
            named = {"number": self._history.number(), "batch": batch, "skips": self._history.shapes[graph].is_pruned}
            op = self._change(name, graph, how, "/vertices", **named)
        elif name == "edges":
            op = self._restructure(graph, how)
        elif name in ("watch", "unwatch"):
            op = self._watch(name, graph)
        elif name == "restore":
            op = self._restore(graph, how)
        elif name == "copy":
            op = self._copy(graph, self._history.twins[graph], how)
        elif name == "delete":
            op = self._send(self._begin("delete", graph, keyed=keyed), "DELETE", "", how=how)
        elif name == "snapshot":
            op = self._send(self._begin("snapshot", graph, keyed=True), "POST", "/snapshots", how=how)
        else:
            op = self._read(name, graph, how)
        if op.acknowledged and isinstance(op.body, dict) and "version" in op.body:
            self._versions[graph] = op.body["version"]
        if op.code == "unknown_graph" and self._rng.random() < 0.7:
            return self._make(op.source or graph)
        return op

    def _make(self, graph: str) -> Op:
        """Load the graph that is not there, or copy it from its twin."""
        if self._rng.random() < 0.5 and not self._history.shapes[graph].is_pruned:
            return self._copy(self._history.twins[graph], graph, "")
        return self._load(graph, "")

    def _begin(self, kind: str, graph: str, *, keyed: bool, **fields: Any) -> Op:
        key = uuid.UUID(int=self._rng.getrandbits(128)).hex if keyed else None
        return self._history.begin(client=self._number, kind=kind, graph=graph, key=key, **fields)

    def _load(self, graph: str, how: str) -> Op:
        number = self._history.number()
        edges = random_edges(self._rng, number, self._history.shapes[graph])
        op = self._begin("put", graph, keyed=how != "unkeyed", number=number, edges=edges)
        self._growth.pop(graph, None)
        return self._send(op, "PUT", "", edges.body(), how)

    def _patch(self, kind: str, graph: str, how: str) -> Op:
        number, (path, draw) = self._history.number(), PATCHES[kind]
        inserted = self._growth[graph].inserted
        batch = draw(self._rng, number, self._history.shapes[graph], inserted)
        return self._change(kind, graph, how, path, number=number, batch=batch, skips=bool(inserted))

    def _restructure(self, graph: str, how: str) -> Op:
        """Where edges turn out to have ids, or none, the next question goes by that."""
        number, growth = self._history.number(), self._growth[graph]
        batch, skips = random_change(self._rng, number, self._history.shapes[graph], growth)
        op = self._change("edges", graph, how, "/edges", number=number, batch=batch, skips=skips)
        if op.acknowledged:
            growth.told(op.body, batch)
        elif op.code == "invalid_body":
            growth.has_ids = not growth.has_ids
        elif op.code == "unknown_vertex":
            growth.n_vertices = 0
        return op

    def _change(self, kind: str, graph: str, how: str, path: str, **fields: Any) -> Op:
        """A batch that is sent as a PATCH."""
        if_match = self._versions.get(graph) if how == "if-match" else None
        op = self._begin(kind, graph, keyed=how != "unkeyed", if_match=if_match, **fields)
        body = {"batch": op.batch, "on_missing": "skip" if op.skips else "error"}
        return self._send(op, "PATCH", path, body, how)

    def _watch(self, kind: str, graph: str) -> Op:
        """Asked again, as a new question, until there is an answer."""
        deadline, watch = time.monotonic() + PATIENCE_S, self._rng.choice(WATCHES)
        sees_cuts = watch != "value" and not self._history.shapes[graph].is_limited
        on = None if kind == "unwatch" else ["value", "cut"] if sees_cuts else ["value"]
        method, body = ("DELETE", None) if on is None else ("PUT", {"on": on})
        while True:
            op = self._begin(kind, graph, keyed=False, watch=watch, on=on)
            self._send(op, method, f"/watches/{watch}", body)
            if not (op.unknown or op.status in BUSY) or time.monotonic() > deadline:
                return op
            time.sleep(RETRY_S)

    def _restore(self, graph: str, how: str, target: int | None = None) -> Op:
        known = self._versions.get(graph, 1)
        if_match = known if how == "if-match" else None
        number, target = self._history.number(), target or earlier_version(self._rng, known)
        op = self._begin("restore", graph, keyed=how != "unkeyed", number=number, target=target, if_match=if_match)
        return self._send(op, "POST", ":restore", {"version": target}, how)

    def _copy(self, source: str, graph: str, how: str) -> Op:
        op = self._begin("copy", graph, keyed=how != "unkeyed", number=self._history.number(), source=source)
        self._growth[graph] = copy.deepcopy(self._growth[source])
        self._growth[graph].has_ids |= bool(self._growth[source].gone)
        return self._send(op, "POST", ":copy", {"to": graph}, how)

    def _read(self, kind: str, graph: str, how: str) -> Op:
        """Asked again, as a new question, until there is an answer."""
        deadline = time.monotonic() + PATIENCE_S
        version = self._versions.get(graph) if how == "min-version" else None
        limit_s = self._rng.choice(LIMITS_S) if how == "limited" else None
        form = how if kind == "export" else None
        value = self._rng.randint(0, LOAD_UNIT) if kind == "min-cost-flow" and self._rng.random() < 0.5 else None
        own = self._history.shapes[graph].is_bounded and self._rng.random() < OWN_BOUNDS
        lower = None if kind != "circulation" or own else [self._rng.randint(0, 25) for _ in BOUND_EDGES]
        asked: dict[str, Any] = {"min_version": version, "limit_s": limit_s, "format": form, "value": value}
        while True:
            op = self._begin(kind, graph, keyed=False, lower=lower, **asked)
            if kind == "capacities":
                self._send(op, "GET", f"/capacities?limit={PAGE_ROWS}")
            elif kind == "export":
                self._send(op, "GET", f"/export?format={form}")
            else:
                self._send(op, "POST", f"/{kind}", question(op, self._history.shapes[op.graph]), how)
            if not op.unknown or time.monotonic() > deadline:
                return op
            time.sleep(RETRY_S)

    def _send(self, op: Op, method: str, path: str, body: object = None, how: str = "") -> Op:
        """With a key: until there is an answer. Without: once. As a job, it is followed to its end."""
        deadline = time.monotonic() + PATIENCE_S
        headers = {"X-Request-Id": op.request}
        if op.key is not None:
            headers["Idempotency-Key"] = op.key
        elif how == "keyed":
            headers["Idempotency-Key"] = IGNORED
        if op.if_match is not None:
            headers["If-Match"] = f'"{op.if_match}"'
        request = (method, f"/v1/graphs/{op.source or op.graph}{path}", body, headers)
        as_job = (method, request[1], body, headers | {"Prefer": "respond-async"})
        place = self._rng.randrange(len(self._urls))
        while True:
            op.tries += 1
            op.status, op.body = self._request(place, *(as_job if how in AS_JOBS else request))
            if op.status == 202 and how in AS_JOBS:
                self._follow(op, request, how == "cancelled", deadline)
            done = not op.unknown and op.status not in BUSY
            if done or op.key is None or time.monotonic() > deadline:
                op.answered_at = time.monotonic()
                break
            time.sleep(RETRY_S)
            place += 1
        if op.key is not None and self._is_kept(op) and self._rng.random() < AGAIN:
            self._ask_again(op, place + 1, *request)
        return op

    def _is_kept(self, op: Op) -> bool:
        """A refusal may have come before the key was noted; these come from a job."""
        return op.acknowledged or op.code in ("cancelled", "timeout")

    def _request(
        self, place: int, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int | None, Any]:
        url = self._urls[place % len(self._urls)]
        try:
            answer = self._http.request(method, url + path, json=body, headers=headers)
            is_file = answer.headers.get("content-type", "").partition(";")[0] in READERS
            content: Any = answer.json() if answer.content and not is_file else None
        except httpx.TransportError:
            return None, None
        if is_file:
            content = read_export(answer.headers, answer.content)
        self._history.answered(answer.status_code)
        return answer.status_code, content

    def _ask_again(self, op: Op, place: int, *request: Any) -> None:
        if self._look(op.again, place, *request) is None:
            op.unanswered.append(time.monotonic())

    def _look(self, looks: list[Look], place: int, *request: Any) -> Look | None:
        status, body = self._request(place, *request)
        if status is None:
            return None
        looks.append(Look(status, body, time.monotonic()))
        return looks[-1]

    def _follow(self, op: Op, request: tuple[Any, ...], cancel: bool, deadline: float) -> None:
        """From the 202 to the job's end; its result becomes the question's answer, as if that had been waited for."""
        job, place = op.body["id"], self._rng.randrange(len(self._urls))
        path = f"/v1/jobs/{job}"
        op.jobs.append(job)
        op.status, op.body = None, None
        if cancel:
            self._cancel(op, place, path, deadline)
        elif op.key is not None and self._rng.random() < AGAIN / 2:
            self._ask_again(op, place + 1, *request)  # while it may still run
        while time.monotonic() < deadline:
            status, body = self._request(place, "GET", path, None, {"Prefer": f"wait={JOB_WAIT_S}"})
            place += 1
            if status == 404:
                op.views.append(Look(404, body, time.monotonic()))
                return
            if status == 200 and body["status"] in TERMINAL:
                op.views = [Look(200, body, time.monotonic())]
                op.status, op.body = outcome(body)
                op.body = None if op.kind == "delete" and op.acknowledged else op.body
                self._look(op.views, place, "GET", path)
                return
            if status != 200:
                time.sleep(RETRY_S)

    def _cancel(self, op: Op, place: int, path: str, deadline: float) -> None:
        time.sleep(self._rng.choice((0.0, 0.0, self._rng.uniform(0, MOMENT_S))))
        while time.monotonic() < deadline:
            place += 1
            status, body = self._request(place, "DELETE", path)
            if status in (200, 404):
                if status == 200:
                    op.cancels.append(Look(status, body, time.monotonic()))
                return
            time.sleep(RETRY_S)


def question(op: Op, shape: Shape) -> dict[str, Any]:
    """The body of what is asked of a graph of this shape."""
    body: dict[str, Any] = {"min_version": op.min_version, "time_limit_s": op.limit_s, "value": op.value}
    body = {name: value for name, value in body.items() if value is not None}
    if op.kind == "max-flow":
        return body | {"fields": ["value", "cut"]}
    if op.kind == "what-if":
        return body | SCENARIOS
    if op.kind == "min-cost-flow":
        return body | {"fields": ["flow", "dual", "paths"], "lower": "ignore"}
    if op.kind == "partition":
        return body | PARTITION
    if op.kind == "circulation":
        bounds = {} if op.lower is None else {"edges": BOUND_EDGES, "lower": op.lower}
        return body | bounds | {"fields": ["flow"]}
    if shape.kind == "two-sided":
        body["left"] = even_vertices(shape)
    return body


def outcome(job: dict[str, Any]) -> tuple[int, Any]:
    """Status and body that who waits for the job would have been answered with."""
    if job["status"] == "succeeded":
        return 200, job["result"]
    return job["error"]["status"], job["error"]
