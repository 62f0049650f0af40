"""One API process for tests, `python -m service.api`, on a free port, without a supervisor and a worker."""

import os
import resource
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.serving import PATIENCE_S, eventually


@dataclass
class ApiProcess:
    process: "subprocess.Popen[bytes]"
    address: tuple[str, int]

    def resident_bytes(self) -> int:
        """Memory of the process as the machine sees it."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()

    def cpu_s(self) -> float:
        """Time of the processor that it has used."""
        after_name = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def answers(address: tuple[str, int]) -> bool:
    with socket.create_connection(address, timeout=PATIENCE_S) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return connection.recv(12) == b"HTTP/1.1 200"


@contextmanager
def api_process(
    redis_url: str,
    open_files: tuple[int, int] | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
    ready: Callable[[tuple[str, int]], bool] = answers,
) -> Iterator[ApiProcess]:
    """`open_files`: its limits as it starts, soft and hard. `ready` asks it whether it is there."""
    settings = {"HEADRACE_REDIS_URL": redis_url, "HEADRACE_REDIS_PREFIX": f"test-{uuid.uuid4().hex}:"}
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        process = subprocess.Popen(
            [sys.executable, "-m", "service.api", "--fd", str(listener.fileno())],
            pass_fds=[listener.fileno()],
            preexec_fn=lambda: open_files and resource.setrlimit(resource.RLIMIT_NOFILE, open_files),
            env=os.environ | settings | environment,
        )
        running = ApiProcess(process, listener.getsockname())
        try:
            eventually(lambda: ready(running.address))
            yield running
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
