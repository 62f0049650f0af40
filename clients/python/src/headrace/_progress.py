"""Progress bars, if rich is installed (`pip install "headrace[progress]"`); without it, none are shown."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def upload_bar(title: str, n_bytes: int) -> Iterator[Callable[[int], None]]:
    """A bar of bytes; gives a function to tell how many have gone out so far."""
    try:
        from rich import progress
    except ImportError:
        yield lambda _: None
        return
    columns = (
        "[progress.description]{task.description}",
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, transient=True) as bar:
        task = bar.add_task(title, total=n_bytes)
        yield lambda n_sent: bar.update(task, completed=n_sent)


@contextmanager
def solve_bar(title: str) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A spinner with the solver's counters, as its progress events bring them."""
    try:
        from rich import progress
    except ImportError:
        yield lambda _: None
        return
    columns = (
        progress.SpinnerColumn(),
        "[progress.description]{task.description}",
        progress.TimeElapsedColumn(),
        "{task.fields[counters]}",
    )
    with progress.Progress(*columns, transient=True) as bar:
        task = bar.add_task(title, total=None, counters="")
        yield lambda counters: bar.update(task, counters=_line(counters))


def _line(counters: Mapping[str, Any]) -> str:
    return "  ".join(f"{name} {value}" for name, value in counters.items())
