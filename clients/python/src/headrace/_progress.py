"""Progress bars, if rich is installed; without it none are shown, and a warning says so."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def upload_bar(title: str, n_bytes: int) -> Iterator[Callable[[int], None]]:
    """A bar of bytes; gives a function to tell how many have gone out so far."""
    try:
        from rich import progress
    except ImportError:
        _warn()
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
def job_bar(title: str) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A spinner with how far a job is, as its progress events bring it: its phase, or a solver's counters."""
    try:
        from rich import progress
    except ImportError:
        _warn()
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


def _line(progress: Mapping[str, Any]) -> str:
    if "phase" in progress:
        fraction = progress.get("fraction")
        return str(progress["phase"]) if fraction is None else f"{progress['phase']} {float(fraction):.0%}"
    return "  ".join(f"{name} {value}" for name, value in progress.items())


def _warn() -> None:
    """Once for each place that asks, as warnings are."""
    warnings.warn(
        'progress=True shows nothing, as rich is not installed: pip install "headrace[progress]"', stacklevel=6
    )
