# Made by scripts/synchronous_client.py from _async_stream.py: change that one.
"""What comes one after the other in an answer that lasts, as an iterator that can be closed."""

from types import TracebackType
from typing import Generic, Self, TypeVar

from headrace._reading import Reading, Source

T = TypeVar("T")


class Stream(Generic[T]):
    """What a source has: an iterator, and a context manager that closes it."""

    def __init__(self, source: Source[T]) -> None:
        self._reading = Reading(source)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        if (found := self._reading.next()) is None:
            raise StopIteration
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection and the iteration, for who waits in it as well."""
        self._reading.close()
