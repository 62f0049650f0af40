"""The first start says how far it is with compiling: to whoever listens, in the log, and to people."""

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog
from headrace import _local

from gpu_engine import kernel_directory
from gpu_engine.kernels.cache import PACKAGE, VARIABLE, n_kernels
from gpu_engine.kernels.compiling import Compiling
from service.cli import meter
from service.cli.meter import ERASE_LINE, WIDTH, Meter
from service.queue.models import CompilingReport
from service.worker import starting
from service.worker.starting import TELL_EVERY_S, Start

ONE_KERNEL = """
import numpy as np
from gpu_engine.kernels.compiling import told
from gpu_engine.networks.links import swap_capacity

heard = []
with told(heard.append):
    for dtype in (np.int64, np.int32):
        rows, column = np.zeros(1, dtype), np.ones(3, np.int64)
        swap_capacity(rows, column[:1], column, np.zeros(1, np.int64), np.zeros(1, np.bool_), 1 << 62)
print([(now.done, now.of, now.seconds >= 0) for now in heard])
"""


def test_each_kernel_is_told_once(tmp_path: Path) -> None:
    """However many types it is compiled for, one that it calls as well; what is read from the cache is not."""
    environment = {VARIABLE: str(tmp_path), "PATH": "", "PYTHONPATH": ":".join(sys.path)}
    for heard in ([(1, n_kernels(), True), (2, n_kernels(), True)], []):
        done = subprocess.run([sys.executable, "-c", ONE_KERNEL], env=environment, capture_output=True, text=True)
        assert done.stdout.strip() == str(heard), done.stderr


def test_all_kernels_are_counted() -> None:
    decorated = [path for path in PACKAGE.rglob("*.py") for line in path.read_text().splitlines() if "@njit(" in line]
    assert n_kernels() == len([path for path in decorated if path.parent.name != "kernels"]) > 50


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal() -> None:
    """In one place, gone at the end; also where more is done than was known of."""
    screen = Terminal()
    with Meter(screen) as shown:
        for done in (0, 48, 96, 100):
            shown.show(done, 96, "kernels compiled", 12.4)
    lines = screen.getvalue().split(ERASE_LINE)
    assert lines[1] == f"[{WIDTH * '.'}] 0 of 96 kernels compiled, 12 s"
    assert lines[2].startswith(f"[{WIDTH // 2 * '#'}{WIDTH // 2 * '.'}] 48 of 96")
    assert lines[3][: WIDTH + 2] == lines[4][: WIDTH + 2] == f"[{WIDTH * '#'}]"
    assert lines[5] == ""
    assert "\n" not in screen.getvalue()


def test_plain_lines_elsewhere() -> None:
    """A file gets a line now and then."""
    file = io.StringIO()
    with Meter(file) as shown:
        for second in range(31):
            shown.show(second, 96, "kernels", second)
    assert file.getvalue().splitlines() == [f"{n} of 96 kernels, {n} s" for n in (0, 10, 20, 30)]
    assert meter.PLAIN_EVERY_S == 10
    nothing = Terminal()
    with Meter(nothing):
        pass
    assert nothing.getvalue() == ""


@pytest.mark.parametrize("cached", [False, True], ids=["nothing cached", "all cached"])
def test_a_worker_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch, cached: bool) -> None:
    """While it compiles, to `/status`, and in the log every few seconds; a start from the cache says nothing."""
    start, seen = Start("w0"), []

    def compile_some(open_engine: Any, choice: str, tell: Callable[[Compiling], None]) -> str:
        for done in () if cached else range(1, 61):
            tell(Compiling("kernel", done, 95, 0.25 * done))
            seen.append(start.progress)
        return f"{choice} (ready)"

    monkeypatch.setattr(starting, "compile_kernels", compile_some)
    with structlog.testing.capture_logs() as log:
        assert start.progress is None
        assert start.compile(lambda *_: None, "auto") == "auto (ready)"  # type: ignore[arg-type]  # never opened here
        assert start.progress is None
    log = [line for line in log if line["event"] != "request"]  # of a server of another test
    if cached:
        assert log == []
        return
    latest = seen[-1]
    assert latest is not None
    assert latest == CompilingReport(done=60, of=95, seconds=latest.seconds)
    first, *middle, last = log
    assert (first["event"], first["kept_in"]) == ("compiling", str(kernel_directory()))
    assert [line["done"] for line in middle] == [21, 41]
    assert middle[1]["seconds"] - middle[0]["seconds"] == pytest.approx(TELL_EVERY_S, abs=0.2)
    assert (last["event"], last["kernels"]) == ("compiled", 60)


def test_who_starts_a_service_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """From `/status`, as soon as the service answers."""
    answers: list[Any] = [_local.HeadraceError("it starts"), [{}]]
    answers.append([{"compiling": {"done": 3, "of": 95, "seconds": 2}}])
    heard: list[tuple[int, int, float]] = []

    class Client:
        def __init__(self, url: str, **_: Any) -> None: ...

        def __enter__(self) -> "Client":
            return self

        def __exit__(self, *_: object) -> None: ...

        def ready(self) -> bool:
            return not answers

        def status(self) -> Any:
            workers = answers.pop(0)
            if isinstance(workers, Exception):
                raise workers
            return type("Status", (), {"workers": workers})

    monkeypatch.setattr(_local, "Client", Client)
    monkeypatch.setattr(_local, "ASK_EVERY_S", 0)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with process:
        _local._await_ready("http://127.0.0.1:1", process, Path("log"), 60, lambda *now: heard.append(now))
        process.kill()
    assert heard == [(3, 95, 2.0)]


def test_warm_up_says_where_the_kernels_are() -> None:
    done = subprocess.run([sys.executable, "-m", "service.cli", "warm-up"], capture_output=True, text=True, timeout=280)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.endswith(f"they are kept in {kernel_directory()}")
    assert "compiled, in" in last or "all kernels were there, in" in last
