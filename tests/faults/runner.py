"""One history: clients and faults side by side, then the end awaited, then the check."""

import random
import threading
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import redis

from tests.faults.aof import read_committed
from tests.faults.checker import Verdict, check
from tests.faults.clients import CLIENTS, PATIENCE_S, Client
from tests.faults.follower import Followers
from tests.faults.history import History
from tests.faults.house import WORKERS, House
from tests.faults.injector import Injector, draw
from tests.faults.questions import draw_shapes

KINDS: Final = ("lost", "doubled", "wrong", "refused", "hung", "died")
JOIN_S: Final = 120.0


@dataclass
class Outcome:
    history: History
    verdict: Verdict
    seconds: float
    outages: list[tuple[str, float]]
    """Each fault with how long it was until questions were answered again."""

    def forget_questions(self) -> None:
        """A run of a thousand histories holds gigabytes else."""
        self.history.ops.clear()
        self.history.shapes.clear()
        self.history.told.clear()


def run_history(house: House, seed: int, faults: list[str] | None = None) -> Outcome:
    """Run and judge the history of `seed`; `faults` in place of those drawn from it. The house is used again."""
    began = time.monotonic()
    rng = random.Random(f"{seed} faults")
    names, after = draw(rng)
    if faults is not None:
        names, after = faults, (after * len(faults))[: len(faults)]
    house.wait_ready()
    house.begin_history()
    history = History(seed)
    # Names of their own: a history repeated at once has the same keys, and would be given its last answers.
    shapes = draw_shapes(random.Random(f"{seed} shapes"), seed)
    loaded = {f"s{seed}-{time.monotonic_ns()}-{i}": shape for i, shape in enumerate(shapes)}
    history.shapes = loaded | {f"{graph}-copy": shape for graph, shape in loaded.items()}
    for graph in loaded:
        history.twins |= {graph: f"{graph}-copy", f"{graph}-copy": graph}
    clients = [Client(history, house.urls, number) for number in range(CLIENTS)]
    followers = Followers(history, house.urls)
    for graph in loaded:
        clients[0].ask("put", graph)
        clients[0].ask("watch", graph)
    injector = Injector(house, history, rng, list(history.shapes))
    work: list[tuple[Any, tuple[Any, ...]]] = [(client.run, ()) for client in clients]
    try:
        errors = _side_by_side([*work, (injector.run, (names, after))])
    finally:
        injector.stop_moving()
    _settle(house)
    last = Client(history, house.urls, -1)
    for graph, shape in history.shapes.items():
        last.ask("max-flow", graph)
        last.ask("capacities", graph)
        if shape.kind != "any":
            last.ask("matching", graph)
        if shape.is_priced and not shape.is_large and not shape.is_limited:
            last.ask("min-cost-flow", graph)
    for client in (*clients, last):
        client.close()
    _settle_feeds(house, history)
    followers.stop(PATIENCE_S)
    history.certificate_failures = house.certificate_failures()
    verdict = _judge(house, history)
    verdict.counts["moves"] = house.moves()
    verdict.faults += errors + house.deaths
    return Outcome(history, verdict, time.monotonic() - began, list(history.outages()))


def _judge(house: House, history: History) -> Verdict:
    try:
        return check(history, read_committed(house.read_history(), house.keys.prefix))
    except ValueError as error:
        return Verdict([f"wrong: the append-only file: {error}"])


def _side_by_side(work: list[tuple[Any, tuple[Any, ...]]]) -> list[str]:
    errors: list[str] = []

    def guarded(run: Any, arguments: tuple[Any, ...]) -> None:
        try:
            run(*arguments)
        except Exception as error:
            errors.append(f"hung: {run.__qualname__}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=guarded, args=piece, daemon=True) for piece in work]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + JOIN_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return errors + [f"hung: {thread.name}" for thread in threads if thread.is_alive()]


def _settle(house: House) -> None:
    """Until no worker has a command left, so that what was unknown is decided."""
    deadline = time.monotonic() + PATIENCE_S
    client: Any = house.redis
    while time.monotonic() < deadline:
        with suppress(redis.ConnectionError):  # it may still be reading its file
            if not any(client.xlen(house.keys.commands(worker)) for worker in WORKERS):
                return
        time.sleep(0.02)
    raise RuntimeError("commands were never done")


def _settle_feeds(house: House, history: History) -> None:
    """Until all watches have been told of the version that there is; then note how far each feed goes."""
    client: Any = house.redis
    keys, deadline = house.keys, time.monotonic() + PATIENCE_S
    for graph in history.shapes:
        while time.monotonic() < deadline and not _is_told(house, graph):
            time.sleep(0.02)
        for _, fields in client.xrevrange(keys.feed(graph), count=1):
            history.followed_to[graph] = fields[b"id"].decode()


def _is_told(house: House, graph: str) -> bool:
    """Whether the watches have seen the graph's version, if there are watches and a graph."""
    client: Any = house.redis
    graph_id = client.hget(house.keys.names, graph)
    if graph_id is None or not client.exists(house.keys.watches(graph)):
        return True
    version = client.hget(house.keys.graph(graph_id.decode()), "version")
    told = client.hget(house.keys.told(graph), "at")
    return told is not None and told.rpartition(b"-")[2] == version


def total(outcomes: list[Outcome]) -> dict[str, Counter[str]]:
    """Counts over histories, by what they count."""
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts += outcome.verdict.counts
    faults = Counter(name for outcome in outcomes for name in outcome.history.faults)
    verdicts = Counter(text.partition(":")[0] for outcome in outcomes for text in outcome.verdict.faults)
    return {"counts": counts, "faults": faults, "verdicts": verdicts}


def summary(outcomes: list[Outcome]) -> dict[str, Any]:
    """One row of results: verdicts, counts, and how long each kind of fault was felt."""
    counts = total(outcomes)
    felt: dict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        for name, seconds in outcome.outages:
            felt[name].append(seconds)
    return {
        "histories": len(outcomes),
        "failed": sum(bool(outcome.verdict.faults) for outcome in outcomes),
        "verdicts": {kind: counts["verdicts"][kind] for kind in KINDS},
        "counts": dict(sorted(counts["counts"].items())),
        "faults": dict(sorted(counts["faults"].items())),
        "to_next_answer_s": {
            name: {"median": round(median(times), 3), "max": round(max(times), 3)}
            for name, times in sorted(felt.items())
        },
    }


def save_failure(outcome: Outcome, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"seed-{outcome.history.seed}.jsonl"
    outcome.history.save(path)
    return path
