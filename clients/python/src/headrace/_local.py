"""A private service for a script or a notebook, which ends with it."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from headrace._client import Client
from headrace._errors import HeadraceError
from headrace._exchange import Retry

SERVER: Final = "headrace-server"
PROBE_S: Final = 0.1
"""Each question costs the service time in which it compiles."""
ASK_EVERY_S: Final = 1.0
"""How often a service that is not ready is asked how far it is."""
STOP_S: Final = 60.0
LOG_BYTES: Final = 4000
"""Of the end of its log, in the error of a service that cannot start."""

Tell: TypeAlias = Callable[[int, int, float], None]
"""Gets how many kernels are compiled, of how many, in how many seconds."""


class CannotStart(HeadraceError, RuntimeError):
    """A private service is not installed, ended, or was not ready in time; the end of its log is in the text."""


class Local(Client):
    """The client of a private service, as `local` makes it. `close`, the end of its `with` block and the end of this
    process, however it ends, stop the service."""

    url: str
    """Where it listens, for other clients and for a browser (`/console`)."""

    def __init__(self, url: str, stop: Callable[[], None]) -> None:
        super().__init__(url, api_key="")
        self.url = url
        self._stop = weakref.finalize(self, stop)

    def close(self) -> None:
        """Close all connections and stop the service; its answers that were acknowledged are in its data folder."""
        super().close()
        self._stop()


def local(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    settings: Mapping[str, str] = MappingProxyType({}),
    on_compiling: Tell | None = None,
    timeout_s: float = 600.0,
) -> Local:
    """Start a service of one's own on a free port of this machine, and give its client once it is ready.

    ```python
    import headrace

    with headrace.local() as hr:
        print(hr.put_graph("g", tail=[0, 1], head=[1, 2], capacity=[3, 2]).max_flow(0, 2).value)
    ```

    Args:
        data_dir: where its graphs are kept for the next time; without it in a temporary folder, and for this once.
        settings: of the service, as `{"HEADRACE_ENGINE": "cpu"}`. Those in the environment are not for it.
        on_compiling: told now and then how many kernels are compiled; the first start on a machine compiles all of
            them, for a minute or two. Without it that is said on stderr.
        timeout_s: how long the start may take.

    Needs the package `headrace-server[embedded]` in the same Python. Raises `CannotStart`. Cost: 2 to 4 s.
    """
    try:
        metadata.version(SERVER)
    except metadata.PackageNotFoundError:
        how = "in a clone of the repository, pip install '.[embedded]'"
        raise CannotStart(f"a private service needs {SERVER} in the same Python: {how}") from None
    temporary = tempfile.TemporaryDirectory(prefix="headrace-") if data_dir is None else None
    folder = Path(temporary.name if temporary is not None else os.fspath(data_dir or ""))
    log, port = folder / "serve.log", _free_port()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        process = _started(folder, log, port, settings)
    except OSError as error:
        raise CannotStart(f"no data can be kept in {folder}: {error.strerror}") from None
    stop = partial(_stop, process, temporary, os.getpid())
    try:
        url = f"http://127.0.0.1:{port}"
        _await_ready(url, process, log, timeout_s, on_compiling or _Said())
    except BaseException:
        stop()
        raise
    return Local(url, stop)


def _started(folder: Path, log: Path, port: int, settings: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """It ends when its standard input does, which only this process can write to: so it never outlives it."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("HEADRACE_", "REDIS_URL"))}
    command = [sys.executable, "-P", "-m", "service.cli", "serve", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--data-dir", str(folder.absolute()), "--stop-on-eof"]
    one_caller = {"HEADRACE_API_PROCESSES": "1"}
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            env=others | one_caller | dict(settings),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the script, which then ends the service
        )


def _await_ready(url: str, process: "subprocess.Popen[bytes]", log: Path, timeout_s: float, tell: Tell) -> None:
    ends_at, ask_at = time.monotonic() + timeout_s, time.monotonic() + ASK_EVERY_S
    with Client(url, api_key="", retry=Retry(attempts=1)) as client:
        while not client.ready():
            if process.poll() is not None:
                raise CannotStart(f"the service ended with exit status {process.returncode}:\n{_end_of(log)}")
            if time.monotonic() > ends_at:
                raise CannotStart(f"the service was not ready within {timeout_s:.0f} s:\n{_end_of(log)}")
            if time.monotonic() >= ask_at:
                ask_at = time.monotonic() + ASK_EVERY_S
                with suppress(HeadraceError):  # it is about to start
                    for compiling in filter(None, (worker.get("compiling") for worker in client.status().workers)):
                        tell(compiling["done"], compiling["of"], float(compiling["seconds"]))
            time.sleep(PROBE_S)


class _Said:
    """Says once that kernels are compiled."""

    def __init__(self) -> None:
        self._is_said = False

    def __call__(self, done: int, of: int, seconds: float) -> None:
        if not self._is_said:
            self._is_said = True
            print("headrace: compiling kernels, once on this machine: a minute or two", file=sys.stderr)


def _stop(process: "subprocess.Popen[bytes]", temporary: "tempfile.TemporaryDirectory[str] | None", owner: int) -> None:
    if os.getpid() != owner:  # a fork of the process that has it
        return
    if process.stdin is not None:
        process.stdin.close()
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if temporary is not None:
        temporary.cleanup()


def _end_of(log: Path) -> str:
    return log.read_bytes()[-LOG_BYTES:].decode(errors="replace").strip()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
