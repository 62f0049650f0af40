"""The asynchronous I/O: carries out the steps of `_exchange` with `httpx.AsyncClient` and `asyncio.sleep`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial
from typing import TypeVar

import httpx

from headrace import _exchange as exchange
from headrace import _records as records
from headrace._calls import Call
from headrace._cancelling import given_up_whole
from headrace._connecting import Verify, opened, translated, trusted
from headrace._errors import TransportError
from headrace._exchange import Deadline, Outcome, Pause, Retries, Retry, Send, Step, Steps
from headrace._files import rewind
from headrace._metered import Metered
from headrace._mistakes import silence
from headrace._pools import Pools

T = TypeVar("T")


class AsyncCaller:
    """What `AsyncClient`, `AsyncGraph` and `AsyncJob` share: connections, of each event loop its own, and how calls are
    repeated."""

    def __init__(
        self,
        base_url: str | None,
        timeout_s: float,
        verify: Verify,
        retry: Retry,
        headers: Mapping[str, str] | None,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        self.retries = Retries(retry)
        self._timeout_s = silence(timeout_s)
        self.url = url = exchange.full_url(base_url)
        http = partial(
            httpx.AsyncClient,
            base_url=url,
            headers=headers,
            transport=transport,
            verify=trusted(verify, url),
            trust_env=exchange.through_proxy(url),
            limits=exchange.CONNECTIONS,
        )
        self._pools = Pools(partial(opened, http), asyncio.get_running_loop, lambda loop: loop.is_closed())
        lasting = partial(http, limits=exchange.UNBOUNDED)
        self._streams = Pools(partial(opened, lasting), asyncio.get_running_loop, lambda loop: loop.is_closed())

    async def close(self) -> None:
        for pools in (self._pools, self._streams):
            if (http := pools.end()) is not None:
                await http.aclose()

    async def ask(self, call: Call[T]) -> T:
        return await self.drive(exchange.ask(call, self.retries))

    async def command(self, call: Call[T], timeout_s: float | None, on_sent: Callable[[int], None] | None = None) -> T:
        return await self.drive(exchange.command(call, self.retries, Deadline.after(timeout_s)), on_sent)

    async def download(self, call: Call[int], timeout_s: float | None) -> int:
        return await self.drive(exchange.download(call, self.retries, Deadline.after(timeout_s)))

    async def submit(
        self, call: Call[T], deadline: Deadline | None = None, on_sent: Callable[[int], None] | None = None
    ) -> records.JobInfo:
        return await self.drive(exchange.submit(call, self.retries, deadline), on_sent)

    async def drive(self, steps: Steps[T], on_sent: Callable[[int], None] | None = None) -> T:
        """Carry out the steps, one after the other."""
        outcome: Outcome = None
        try:
            while True:
                outcome = await self._perform(steps.send(outcome), on_sent)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _perform(self, step: Step, on_sent: Callable[[int], None] | None) -> Outcome:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return await given_up_whole(self._sent(step, on_sent))
        except TransportError as error:
            return error

    async def _sent(self, step: Send, on_sent: Callable[[int], None] | None) -> httpx.Response:
        http = self._pools.own()
        with translated():
            request = exchange.request_of(http, step, _content(step, on_sent), self._timeout_s)
            response = await http.send(request, stream=True)
            async with aclosing(response):
                into = step.into if response.is_success else None
                response.stream = Metered(response, self._timeout_s, to_memory=into is None)
                if into is not None:
                    rewind(into)
                    async for piece in response.aiter_bytes():
                        into.write(piece)
                else:
                    await response.aread()
                return response

    @asynccontextmanager
    async def streamed(
        self, path: str, deadline: Deadline, headers: Mapping[str, str], hold_s: float = 0
    ) -> AsyncIterator[httpx.Response]:
        """An answer below 400, to be read as it comes. `hold_s`: how much longer than usual it may take."""
        timeout_s = min(self._timeout_s, max(deadline.remaining_s, exchange.SHORT_HOLD_S)) + hold_s
        http = self._streams.own()
        request = http.build_request("GET", path, headers=headers, timeout=timeout_s)
        with translated():
            async with AsyncExitStack() as stack:

                async def opened() -> httpx.Response:
                    response = await http.send(request, stream=True)
                    stack.push_async_callback(lambda: given_up_whole(response.aclose()))
                    return response

                response = await given_up_whole(opened())
                if not response.is_success:
                    await response.aread()
                    raise exchange.error_of(response)
                self.retries.was_answered = True
                yield response


def _content(step: Send, on_sent: Callable[[int], None] | None) -> bytes | AsyncIterator[bytes] | None:
    body = step.body
    if body is None:
        return None
    if isinstance(body.data, bytes) and on_sent is None:
        return body.data
    return _each(body.chunks(on_sent or (lambda _: None)))


async def _each(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
