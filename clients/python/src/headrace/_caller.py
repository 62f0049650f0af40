"""The synchronous I/O: carries out the steps of `_exchange` with `httpx.Client` and `time.sleep`."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import TypeVar

import httpx

from headrace import _exchange as exchange
from headrace import _records as records
from headrace._calls import Call
from headrace._connecting import Verify, opened, translated, trusted
from headrace._errors import HeadraceError, TransportError
from headrace._exchange import Deadline, Outcome, Pause, Retries, Retry, Send, Step, Steps
from headrace._files import rewind
from headrace._metered import Metered
from headrace._mistakes import silence
from headrace._pools import Pools

T = TypeVar("T")


class Caller:
    """What `Client`, `Graph` and `Job` share: connections, of each process its own, and how calls are repeated.

    Connections that an exception has interrupted, as a signal or a time limit raises one anywhere, are not asked on
    again: one in ten is lost in httpcore then, neither free nor closed, and a client has a hundred of them.
    """

    def __init__(
        self,
        base_url: str | None,
        timeout_s: float,
        verify: Verify,
        retry: Retry,
        headers: Mapping[str, str] | None,
        transport: httpx.BaseTransport | None,
    ) -> None:
        self.retries = Retries(retry)
        self._timeout_s = silence(timeout_s)
        self.url = url = exchange.full_url(base_url)
        http = partial(
            httpx.Client,
            base_url=url,
            headers=headers,
            transport=transport,
            verify=trusted(verify, url),
            trust_env=exchange.through_proxy(url),
            limits=exchange.CONNECTIONS,
        )
        self._pools = Pools(partial(opened, http), os.getpid, lambda process: process != os.getpid())
        lasting = partial(http, limits=exchange.UNBOUNDED)
        self._streams = Pools(partial(opened, lasting), os.getpid, lambda process: process != os.getpid())
        self._pools.own()

    def close(self) -> None:
        for pools in (self._pools, self._streams):
            if (http := pools.end()) is not None:
                http.close()

    def ask(self, call: Call[T]) -> T:
        return self.drive(exchange.ask(call, self.retries))

    def command(self, call: Call[T], timeout_s: float | None, on_sent: Callable[[int], None] | None = None) -> T:
        return self.drive(exchange.command(call, self.retries, Deadline.after(timeout_s)), on_sent)

    def download(self, call: Call[int], timeout_s: float | None) -> int:
        return self.drive(exchange.download(call, self.retries, Deadline.after(timeout_s)))

    def submit(
        self, call: Call[T], deadline: Deadline | None = None, on_sent: Callable[[int], None] | None = None
    ) -> records.JobInfo:
        return self.drive(exchange.submit(call, self.retries, deadline), on_sent)

    def drive(self, steps: Steps[T], on_sent: Callable[[int], None] | None = None) -> T:
        """Carry out the steps, one after the other."""
        outcome: Outcome = None
        try:
            while True:
                outcome = self._perform(steps.send(outcome), on_sent)
        except StopIteration as end:
            result: T = end.value
            return result

    def _perform(self, step: Step, on_sent: Callable[[int], None] | None) -> Outcome:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        http = self._pools.own()
        try:
            with translated():
                request = exchange.request_of(http, step, _content(step, on_sent), self._timeout_s)
                response = http.send(request, stream=True)
                with closing(response):
                    into = step.into if response.is_success else None
                    response.stream = Metered(response, self._timeout_s, to_memory=into is None)
                    if into is not None:
                        rewind(into)
                        for piece in response.iter_bytes():
                            into.write(piece)
                    else:
                        response.read()
                    return response
        except TransportError as error:
            return error
        except BaseException:
            self._pools.forget(http)
            raise

    @contextmanager
    def streamed(
        self, path: str, deadline: Deadline, headers: Mapping[str, str], hold_s: float = 0
    ) -> Iterator[httpx.Response]:
        """An answer below 400, to be read as it comes. `hold_s`: how much longer than usual it may take."""
        timeout_s = min(self._timeout_s, max(deadline.remaining_s, exchange.SHORT_HOLD_S)) + hold_s
        http = self._streams.own()
        try:
            with translated(), http.stream("GET", path, headers=headers, timeout=timeout_s) as response:
                if not response.is_success:
                    response.read()
                    raise exchange.error_of(response)
                self.retries.was_answered = True
                yield response
        except (HeadraceError, GeneratorExit):  # who reads no further has interrupted nothing
            raise
        except BaseException:
            self._streams.forget(http)
            raise


def _content(step: Send, on_sent: Callable[[int], None] | None) -> bytes | Iterator[bytes] | None:
    body = step.body
    if body is None:
        return None
    if isinstance(body.data, bytes) and on_sent is None:
        return body.data
    return body.chunks(on_sent or (lambda _: None))
