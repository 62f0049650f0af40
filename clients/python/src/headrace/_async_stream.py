"""What comes one after the other in an answer that lasts, as an asynchronous iterator that can be closed."""

from types import TracebackType
from typing import Generic, Self, TypeVar

from headrace._async_reading import AsyncReading, AsyncSource

T = TypeVar("T")


class AsyncStream(Generic[T]):
    """What a source has: an asynchronous iterator, and a context manager that closes it."""

    def __init__(self, source: AsyncSource[T]) -> None:
        self._reading = AsyncReading(source)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if (found := await self._reading.next()) is None:
            raise StopAsyncIteration
        return found

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection and the iteration, for who waits in it as well."""
        await self._reading.close()
