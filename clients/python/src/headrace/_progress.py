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
    with _shown(progress.Progress, *columns) as bar:
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
    with _shown(progress.Progress, *columns) as bar:
        task = bar.add_task(title, total=None, counters="")
        yield lambda counters: bar.update(task, counters=_line(counters))


def _shown(kind: Callable[..., Any], *columns: object) -> Any:
    """A display on standard error, which programs do not read; none where nobody would see it move."""
    from rich.console import Console

    console = Console(stderr=True)
    return kind(*columns, transient=True, console=console, disable=not (console.is_terminal or console.is_jupyter))


def _line(progress: Mapping[str, Any]) -> str:
    if "phase" in progress:
        fraction = progress.get("fraction")
        return str(progress["phase"]) if fraction is None else f"{progress['phase']} {float(fraction):.0%}"
    return "  ".join(f"{name} {value}" for name, value in progress.items())


def _warn() -> None:
    """Always from this line, so that Python shows it once."""
    warnings.warn('progress=True shows nothing, as rich is not there: pip install "headrace[progress]"', stacklevel=1)
