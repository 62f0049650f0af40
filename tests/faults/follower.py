"""Followers: one thread that reads the change feed of each graph name, and comes back after its last event."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx

from tests.faults.history import History, Told

RETRY_S: Final = 0.05
SILENCE_S: Final = 40.0
"""Longer than a stream that nothing happens on says nothing."""

OLDEST: Final = "0"


class Followers:
    """Reads from the first event of each name on, until `stop`; what breaks is read on at the other process."""

    def __init__(self, history: History, urls: list[str]) -> None:
        self._history, self._urls = history, urls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="followers", daemon=True)
        self._thread.start()

    def stop(self, patience_s: float) -> None:
        """Once all has been read that there was to be read at this time, or after so long."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline and not self._has_all():
            time.sleep(RETRY_S / 5)
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def _has_all(self) -> bool:
        told = self._history.told
        return all(any(each.id == last for each in told[name]) for name, last in self._history.followed_to.items())

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._task = self._loop.create_task(self._follow_all())
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    async def _follow_all(self) -> None:
        timeout = httpx.Timeout(SILENCE_S, connect=2.0)
        async with httpx.AsyncClient(verify=False, trust_env=False, timeout=timeout) as http:
            await asyncio.gather(*(self._follow(http, graph) for graph in self._history.shapes))

    async def _follow(self, http: httpx.AsyncClient, graph: str) -> None:
        last, place = OLDEST, 0
        while True:
            url = f"{self._urls[place % len(self._urls)]}/v1/graphs/{graph}/events"
            try:
                async with http.stream("GET", url, headers={"Last-Event-ID": last}) as answer:
                    if answer.status_code == 200:
                        async for fields in read_events(answer.aiter_lines()):
                            last = fields.get("id", last)
                            if "data" in fields:
                                self._note(graph, fields)
            except httpx.TransportError:
                pass
            place += 1
            await asyncio.sleep(RETRY_S)

    def _note(self, graph: str, fields: dict[str, str]) -> None:
        event = Told(fields.get("id", ""), fields.get("event", ""), fields["data"], time.monotonic())
        self._history.told[graph].append(event)


async def read_events(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, str]]:
    """The fields of each event that came to its end, by the rules of server-sent events; comments are left out."""
    fields: dict[str, Any] = {}
    async for line in lines:
        if not line:
            if fields:
                yield fields
            fields = {}
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data" and "data" in fields:
            value = f"{fields['data']}\n{value}"
        if name:
            fields[name] = value
