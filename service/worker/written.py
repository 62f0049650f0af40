"""Answers as JSON text, stored piece by piece as they are written."""

from collections.abc import Iterable, Iterator, Mapping

from gpu_engine.engine import Control
from gpu_engine.errors import Cancelled
from service.protocol import Envelope
from service.store.jobs.record import Result
from service.worker import json_writer
from service.worker.running.results import Results


def written(
    results: Results, answer: Mapping[str, object], envelope: Envelope, control: Control | None = None
) -> Result:
    """The answer, stored as it is written. Raises `Cancelled`, unless there is no ``control``."""
    return results.keep(unless_cancelled(json_writer.pieces(answer), control or Control()), envelope)


def unless_cancelled(pieces: Iterable[bytes], control: Control) -> Iterator[bytes]:
    """Pass the pieces on. Raises `Cancelled`."""
    for piece in pieces:
        if control.cancelled:
            raise Cancelled("cancelled while its answer was written")
        yield piece
