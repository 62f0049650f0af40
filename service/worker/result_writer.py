"""Answers in the form that was asked for, stored piece by piece as they are written."""

from collections.abc import Iterable, Iterator, Mapping

from gpu_engine.control import Control
from gpu_engine.errors import Cancelled
from service.protocol import MEDIA_TYPES, Encoding, Envelope
from service.store.jobs.record import Result
from service.worker import file_writer, json_writer
from service.worker.running.results import Results


def written(
    results: Results,
    answer: Mapping[str, object],
    envelope: Envelope,
    control: Control | None = None,
    encoding: Encoding = "json",
) -> Result:
    """The answer as JSON, stored as it is written. Raises `Cancelled`, unless there is no ``control``."""
    pieces = json_writer.pieces(answer, strings=encoding == "strings")
    said = envelope.model_copy(update={"media_type": MEDIA_TYPES[encoding]})
    return results.keep(unless_cancelled(pieces, control or Control()), said)


def written_as(
    encoding: Encoding,
    decimals: int,
    results: Results,
    answer: Mapping[str, object],
    envelope: Envelope,
    control: Control | None = None,
) -> Result:
    """`written` in another form as well; ``decimals`` are those that amounts in columns are units of."""
    if encoding == "npz" or encoding == "arrow":
        pieces = file_writer.pieces(encoding, answer, decimals)
        said = envelope.model_copy(update={"media_type": MEDIA_TYPES[encoding]})
        return results.keep(unless_cancelled(pieces, control or Control()), said)
    return written(results, answer, envelope, control, encoding)


def unless_cancelled(pieces: Iterable[bytes], control: Control) -> Iterator[bytes]:
    """Pass the pieces on. Raises `Cancelled`."""
    for piece in pieces:
        if control.cancelled:
            raise Cancelled("cancelled while its answer was written")
        yield piece
