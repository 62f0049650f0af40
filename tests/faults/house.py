"""The whole service in processes of its own: Redis, a proxy before it, workers and API processes, kept alive."""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import redis

from service.host import redis_server
from service.settings import Settings
from service.store.keys import Keys
from tests.faults.proxy import Proxy

Process = subprocess.Popen[bytes]

LEASE_S = 0.6
POLL_S = 0.02
JOB_TTL_S = 120
"""Longer than anybody asks for a result; then those of large graphs make room."""

LONG_FILE_BYTES = 32 << 20
PATIENCE_S = 180.0
"""Includes the first compilation of the solvers on a machine that has not cached them."""
MARK = "bench:history"
WORKERS = ("w0", "w1")
APIS = ("api0", "api1")


class House:
    """Starts everything; whatever ends is started again at once unless it is `hold`."""

    def __init__(self, folder: Path, beside: Path | None = None, **settings: object) -> None:
        """`settings` of the service's processes, beside those of the bench. `beside`: a checkout of another release, of
        which half of the workers and API processes are that start, or start again."""
        self.folder = folder
        self._checkouts = [None] if beside is None else [None, beside.resolve()]
        self._draw = random.Random(f"{beside} beside")
        self._more = settings
        self.settings = Settings(data_dir=folder, redis_url=None)
        self.keys = Keys(self.settings.redis_prefix)
        self.log = (folder / "service.log").open("ab")
        self._listeners = {name: _listen() for name in APIS}
        self.urls = [f"http://127.0.0.1:{sock.getsockname()[1]}" for sock in self._listeners.values()]
        self._starts: dict[str, Callable[[], Process]] = {"redis": self._start_redis}
        self._starts |= {name: partial(self._python, "service.worker", "--name", name) for name in WORKERS}
        self._starts |= {name: partial(self._start_api, name) for name in APIS}
        self._held: set[str] = set()
        self._sent: set[int] = set()
        """Processes that were told to end."""
        self.deaths: list[str] = []
        """Those that ended by themselves, which none may."""
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self.processes = {"redis": self._starts["redis"]()}
        redis_server.wait_until_ready(self.settings, self.processes["redis"])
        # As the server's own administrator: the service's user may not change its configuration.
        self.redis = redis.Redis.from_url(self.settings.redis_location.replace("headrace@", ""))
        self.proxy = Proxy(folder / "proxy.sock", self.settings.redis_socket)
        self.processes |= {name: start() for name, start in self._starts.items() if name != "redis"}
        self._keeper = threading.Thread(target=self._keep, name="keeper", daemon=True)
        self._keeper.start()
        self._mark = b""
        """The present history begins behind it."""
        self._history_file = self.append_only_file
        self._log_start = 0
        self._unproven: dict[tuple[str, int], int] = {}
        """What each worker process had counted before the present history."""

    def begin_history(self) -> None:
        """From behind a mark of our own: the size of a file that is being written may end within a command."""
        self.deaths.clear()
        self._log_start = (self.folder / "service.log").stat().st_size
        self._unproven = self._count_unproven()
        if self.append_only_file.stat().st_size > LONG_FILE_BYTES:
            self._begin_file()
        self._history_file = self.append_only_file
        self._mark = uuid.uuid4().hex.encode()
        self.redis.set(MARK, self._mark)
        deadline = time.monotonic() + PATIENCE_S
        while self._mark + b"\r\n" not in self.append_only_file.read_bytes():
            if time.monotonic() > deadline:
                raise RuntimeError("what Redis was told is not in its append-only file")
            time.sleep(POLL_S / 4)

    def _begin_file(self) -> None:
        """Between histories: Redis would take the longer to start, the more it has to read.

        Started again, it opens the new file for appending. In one that is not, a full disk takes back what was not
        acknowledged in the middle, and puts it into a dump that we do not read (`service.store.durable`).
        """
        server: Any = self.redis
        server.bgrewriteaof()
        deadline = time.monotonic() + PATIENCE_S
        while (info := server.info("persistence"))["aof_rewrite_in_progress"] or info["aof_rewrite_scheduled"]:
            if time.monotonic() > deadline:
                raise RuntimeError("Redis does not come to the end of writing its file anew")
            time.sleep(POLL_S)
        with self.down("redis", signal.SIGTERM):
            pass
        self.wait_redis()

    @property
    def history_start(self) -> int:
        """Byte of the append-only file at which the present history begins; a start of Redis may move it."""
        end = self._mark + b"\r\n"
        return self._history_file.read_bytes().index(end) + len(end)

    def read_history(self) -> bytes:
        """What the append-only file has of the present history. Raises ValueError if Redis has begun another file."""
        if self.append_only_file != self._history_file:
            raise ValueError(f"Redis has gone from {self._history_file.name} to {self.append_only_file.name}")
        return self._history_file.read_bytes()[self.history_start :]

    def certificate_failures(self) -> int:
        """Answers of this history that could not be proven: by the log, which has those of killed workers as well, and
        by what the workers count."""
        logged = self._read_log().count(b"certificate_failed")
        counted = [count - self._unproven.get(key, 0) for key, count in self._count_unproven().items()]
        return max(logged, sum(counted))

    def moves(self) -> int:
        """Graphs that have gone to the other worker in this history: moved, drained, or handed over as one left."""
        return self._read_log().count(b'"event": "moved"')

    def _read_log(self) -> bytes:
        """What the service has logged in this history."""
        with (self.folder / "service.log").open("rb") as file:
            file.seek(self._log_start)
            return file.read()

    def _count_unproven(self) -> dict[tuple[str, int], int]:
        return {
            (worker["name"], worker["pid"]): worker["counters"].get("certificate_failures", 0)
            for worker in self._workers()
        }

    def _environment(self) -> dict[str, str]:
        names = {
            "REDIS_URL": f"unix://{self.folder / 'proxy.sock'}",
            "DATA_DIR": str(self.folder),
            "LEASE_S": str(LEASE_S),
            "SNAPSHOT_EVERY_UPDATES": "5",
            "JOB_TTL_S": str(JOB_TTL_S),
        }
        names |= {name.upper(): str(value) for name, value in self._more.items()}
        return os.environ | {f"HEADRACE_{name}": value for name, value in names.items()}

    def _python(self, module: str, *arguments: str, descriptors: tuple[int, ...] = ()) -> Process:
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.Popen(
            command,
            env=self._environment(),
            cwd=self._draw.choice(self._checkouts),  # where Python looks for modules first
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )

    def _start_redis(self) -> Process:
        """Python ignores SIGXFSZ, and here so does Redis: a limit on its files is a disk that is full.

        It would begin a new file once this one is long, also as it starts; a history is read from the one it began in.
        """
        return redis_server.start(self.settings, "--auto-aof-rewrite-percentage", "0", restore_signals=False)

    def _start_api(self, name: str) -> Process:
        descriptor = self._listeners[name].fileno()
        return self._python("service.api", "--fd", str(descriptor), descriptors=(descriptor,))

    def _keep(self) -> None:
        while not self._stop.wait(POLL_S):
            with self._lock:
                for name, process in self.processes.items():
                    if name not in self._held and process.poll() is not None:
                        if process.pid not in self._sent:
                            self.deaths.append(f"died: {name} with status {process.returncode}")
                        self.processes[name] = self._starts[name]()

    def send(self, name: str, number: int) -> None:
        with self._lock, suppress(ProcessLookupError):
            if self.processes[name].poll() is None:
                if number in (signal.SIGKILL, signal.SIGTERM):
                    self._sent.add(self.processes[name].pid)
                os.kill(self.processes[name].pid, number)

    def kill(self, name: str) -> None:
        self.send(name, signal.SIGKILL)

    @contextmanager
    def down(self, name: str, number: int = signal.SIGKILL) -> Iterator[None]:
        """Ended, and not started again before the block is over."""
        with self._lock:
            self._held.add(name)
        try:
            self.send(name, number)
            self.processes[name].wait(PATIENCE_S)
            yield
        finally:
            with self._lock:
                self._held.discard(name)
                self.processes[name] = self._starts[name]()

    @property
    def append_only_file(self) -> Path:
        """The one file, or the newest increment of a server that keeps several."""
        data = self.folder / "redis"
        files = [*data.glob("appendonly.aof"), *data.glob("appendonlydir/*.incr.aof")]
        return max(files, key=lambda path: (path.stat().st_ctime, path))

    def wait_redis(self) -> None:
        redis_server.wait_until_ready(self.settings, self.processes["redis"])

    def ready_workers(self) -> list[str]:
        return [worker["name"] for worker in self._workers() if worker["alive"] and worker["ready"]]

    def _workers(self) -> list[dict[str, Any]]:
        """As /status has them; none if nobody answers."""
        with httpx.Client(verify=False, trust_env=False, timeout=5) as http:
            for url in self.urls:
                with suppress(httpx.HTTPError, KeyError):
                    workers: list[dict[str, Any]] = http.get(f"{url}/status").json()["workers"]
                    return workers
        return []

    def wait_ready(self, workers: int = 1) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while len(self.ready_workers()) < workers:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the service is not ready; see {self.folder / 'service.log'}")
            time.sleep(POLL_S)

    def close(self) -> None:
        self._stop.set()
        self._keeper.join()
        for name in (*APIS, *WORKERS, "redis"):
            process = self.processes[name]
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.redis.close()
        self.proxy.close()
        for listener in self._listeners.values():
            listener.close()
        self.log.close()


def _listen() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    listener.set_inheritable(True)
    return listener
