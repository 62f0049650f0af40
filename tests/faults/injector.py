"""The faults, each a few lines; which ones, when and on whom is drawn from the seed."""

import json
import os
import random
import resource
import signal
import time
from collections.abc import Callable
from typing import Any, Final

from tests.faults.history import Cut, History
from tests.faults.house import APIS, LEASE_S, WORKERS, House
from tests.faults.mover import Mover

PAUSE_S: Final = 2.4 * LEASE_S
"""Long enough for another worker to take the graphs over, and to believe in it."""

OUTAGE_S: Final = 0.4
"""Well within what an API process sits out."""

FAR_S: Final = 1.0
"""How long Redis stays far after the last fault."""

Fault = Callable[["Injector"], None]


class Injector:
    """Does one fault after the other to a house."""

    def __init__(self, house: House, history: History, rng: random.Random, graphs: list[str]) -> None:
        self.house, self.history, self.rng, self.graphs = house, history, rng, graphs
        self.mover: Mover | None = None

    def run(self, names: list[str], after_questions: list[int]) -> None:
        """Each fault once so many questions have been asked since the one before."""
        for name, count in zip(names, after_questions, strict=True):
            for _ in range(count):
                if not self.history.started.acquire(timeout=2.0):
                    break
            time.sleep(self.rng.uniform(0, 0.004))
            self.history.faults.append(name)
            self.history.began.append(time.monotonic())
            FAULTS[name](self)
        if self.house.proxy.delay_s:  # for a while at least, however little was to come
            time.sleep(FAR_S)
            self.house.proxy.delay_s = 0.0

    def stop_moving(self) -> None:
        if self.mover is not None:
            self.mover.stop()

    def kill_worker(self) -> None:
        self.house.kill(self.rng.choice(WORKERS))

    def kill_api(self) -> None:
        self.house.kill(self.rng.choice(APIS))

    def kill_redis(self) -> None:
        with self.house.down("redis"):
            pass
        self.house.wait_redis()

    def restart_redis(self) -> None:
        """In order, and away for a while."""
        with self.house.down("redis", signal.SIGTERM):
            time.sleep(self.rng.uniform(0, OUTAGE_S))
        self.house.wait_redis()

    def kill_redis_and_worker(self) -> None:
        with self.house.down("redis"):
            self.kill_worker()
        self.house.wait_redis()

    def pause_worker(self) -> None:
        """Stopped for longer than its lease; both workers then believe that they own the graphs."""
        self.house.wait_ready(len(WORKERS))
        self._pause(self.rng.choice(WORKERS), PAUSE_S)

    def pause_api(self) -> None:
        self._pause(self.rng.choice(APIS), OUTAGE_S)

    def pause_redis(self) -> None:
        self._pause("redis", OUTAGE_S)

    def _pause(self, name: str, seconds: float) -> None:
        self.house.send(name, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            self.house.send(name, signal.SIGCONT)

    def fill_memory(self) -> None:
        """`maxmemory` reached: Redis refuses whatever needs more."""
        self.house.redis.config_set("maxmemory", "1mb")
        time.sleep(self.rng.uniform(0.1, OUTAGE_S))
        self.house.redis.config_set("maxmemory", "0")

    def fill_disk(self) -> None:
        """The append-only file cannot grow: Redis refuses writes from the first that it cannot append."""
        pid = self.house.processes["redis"].pid
        room = self.house.append_only_file.stat().st_size + self.rng.randint(0, 2000)
        unlimited = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (room, unlimited[1]))
        time.sleep(self.rng.uniform(0.1, OUTAGE_S))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)

    def drop_connections(self) -> None:
        for _ in range(self.rng.randint(1, 4)):
            self.house.proxy.drop_all()
            time.sleep(self.rng.uniform(0, 0.02))

    def cut_answers(self) -> None:
        self.house.proxy.cut_answers(self.rng.randint(1, 8))
        time.sleep(0.05)

    def slow_connections(self) -> None:
        before = self.house.proxy.delay_s
        self.house.proxy.delay_s = self.rng.uniform(0.002, 0.03)
        time.sleep(OUTAGE_S)
        self.house.proxy.delay_s = before

    def far_redis(self) -> None:
        """Redis is as far as another region, each way, through all the faults that come after this one."""
        self.house.proxy.delay_s = self.rng.uniform(0.005, 0.04)

    def move_graphs(self) -> None:
        """Graphs go to and fro between the workers, and one of these is drained now and then, from now on."""
        if self.mover is None:
            self.mover = Mover(self.house, self.graphs, self.rng.randrange(1 << 30))
        time.sleep(OUTAGE_S)

    def stop_worker(self) -> None:
        """In order: it hands its graphs to the other one, and has them back some time later."""
        self.house.send(self.rng.choice(WORKERS), signal.SIGTERM)

    def corrupt_snapshot(self) -> None:
        """A bit of the newest snapshot turns, and the worker has to restore from what is left."""
        for graph in self.graphs:
            self._corrupt(graph)
        self.house.kill(self.rng.choice(WORKERS))

    def _corrupt(self, graph: str) -> None:
        client: Any = self.house.redis
        graph_id = client.hget(self.house.keys.names, graph)
        listed = json.loads((graph_id and client.get(self.house.keys.snapshots(graph_id.decode()))) or b"[]")
        if not listed:
            return
        blob = self.house.keys.blob(listed[0]["blob"])
        chunk = bytearray(client.hget(blob, "0") or b"")
        if chunk:
            chunk[self.rng.randrange(len(chunk))] ^= 1 << self.rng.randrange(8)
            client.hset(blob, "0", bytes(chunk))

    def tear_log(self) -> None:
        """A write that was under way when the power went: half a command at the end of the append-only file."""
        with self.house.down("redis"), self.house.append_only_file.open("ab") as file:
            file.write(b"*3\r\n$3\r\nSET\r\n$9\r\nnever-was\r\n$100\r\nhalf"[: self.rng.randint(5, 40)])
        self.house.wait_redis()

    def cut_log(self) -> None:
        """Bytes that were acknowledged are gone, as after a power loss: an end may be missing, nothing else."""
        cut = Cut(time.monotonic())
        self.history.cuts.append(cut)
        with self.house.down("redis"):
            path = self.house.append_only_file
            size = path.stat().st_size
            os.truncate(path, max(self.house.history_start, size - self.rng.randint(1, 20_000)))
        self.house.wait_redis()
        cut.ended_at = time.monotonic()


FAULTS: Final[dict[str, Fault]] = {
    name: getattr(Injector, name)
    for name in (
        "kill_worker",
        "kill_api",
        "kill_redis",
        "restart_redis",
        "kill_redis_and_worker",
        "pause_worker",
        "pause_api",
        "pause_redis",
        "fill_memory",
        "fill_disk",
        "drop_connections",
        "cut_answers",
        "slow_connections",
        "far_redis",
        "corrupt_snapshot",
        "tear_log",
        "cut_log",
        "move_graphs",
        "stop_worker",
    )
}
WEIGHTS: Final = {
    "pause_worker": 3,
    "cut_answers": 3,
    "drop_connections": 2,
    "far_redis": 2,
    "corrupt_snapshot": 2,
    "move_graphs": 6,
}


def draw(rng: random.Random) -> tuple[list[str], list[int]]:
    """One to three faults, and how many questions lie before each."""
    names = list(FAULTS)
    count = rng.choice((1, 1, 2, 2, 3))
    chosen = rng.choices(names, [WEIGHTS.get(name, 1) for name in names], k=count)
    return chosen, [rng.randint(2, 18) for _ in chosen]
