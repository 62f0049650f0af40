"""Between the service and Redis: connections that are slow, break, or break just before the answer."""

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

CHUNK_BYTES = 1 << 16
START_S = 10.0


class Proxy:
    """Forwards unix socket `path` to unix socket `upstream`, in an event loop of its own thread."""

    def __init__(self, path: Path, upstream: Path) -> None:
        self._path, self._upstream = path, upstream
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.delay_s = 0.0
        """For every piece of data, in either direction."""
        self._cut_answers = 0
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()
        if not self._ready.wait(START_S):
            raise RuntimeError("the proxy does not start")

    def drop_all(self) -> None:
        """Break every connection now."""
        self._loop.call_soon_threadsafe(self._abort_all)

    def cut_answers(self, count: int) -> None:
        """Break `count` connections when Redis has answered them: it did what was asked, and nobody hears of it."""
        self._loop.call_soon_threadsafe(setattr, self, "_cut_answers", count)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_unix_server(self._connect, str(self._path))
        self._ready.set()
        await self._stop.wait()
        server.close()
        self._abort_all()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _abort_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_unix_connection(str(self._upstream))
        except OSError:
            writer.transport.abort()
            return
        both = {writer, far_writer}
        self._writers |= both
        self._start(self._pump(reader, far_writer, both, answers=False))
        self._start(self._pump(far_reader, writer, both, answers=True))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, both: set[asyncio.StreamWriter], answers: bool
    ) -> None:
        try:
            while data := await reader.read(CHUNK_BYTES):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                if answers and self._cut_answers > 0:
                    self._cut_answers -= 1
                    return
                writer.write(data)
                await writer.drain()
        except OSError:
            return
        finally:
            for end in both:
                end.transport.abort()
            self._writers -= both
