"""Where bodies are parsed: in processes of their own, so that neither the memory of the API process nor its interpreter
lock is at stake. What is short, and of a kind that can take next to nothing, is parsed at once.

One process that waits is kept ready at all times, more are started while those there are busy. One of them takes short
work alone, which thus never waits for a large graph. A process that grew, or was stopped in its work, is replaced.
"""

import asyncio
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from types import TracebackType
from typing import Final, Self

import anyio.to_thread
import structlog
from anyio import CancelScope, CapacityLimiter

from gpu_engine.child import environment
from service.api.bodies.receive import Body
from service.api.bodies.spool import Spool
from service.api.bodies.tasks import JOB_LENGTH, JSON, ArgsTask, Job, Task
from service.errors import RETRY_AFTER_S, ServiceError
from service.protocol import Arguments
from service.settings import Settings

HERE_BYTES: Final = 4096
"""The event loop itself reads bodies of at most this length: a thousand empty operations take it some milliseconds."""

PROCESSES: Final = 3
LONG: Final = PROCESSES - 1
"""How many processes may read bodies at the same time that take `LONG_BYTES` of memory or more."""

LONG_BYTES: Final = 64 << 20

SLACK_BYTES: Final = 64 << 20
"""A process may take this much more memory than was estimated for its body, and is replaced if it keeps more than
this."""

READ_S: Final = 300.0
ENDED_S: Final = 0.005
"""The time between two checks whether a killed process has ended."""

ANSWER_BYTES: Final = 1 << 20
THREADS: Final = 2
"""How many threads of the API process decode, count and hash long bodies."""

PLAIN: Final = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Environment variables that keep libraries from taking more memory than they need, so that a memory limit works."""

log = structlog.get_logger("headrace.api")


class Parsers:
    """The parser processes of one API process; in one event loop."""

    def __init__(self) -> None:
        self.threads = CapacityLimiter(THREADS)
        self._all: set[Parser] = set()
        self._idle: list[Parser] = []
        self._slots = asyncio.Semaphore(PROCESSES)
        self._long = asyncio.Semaphore(LONG)

    async def __aenter__(self) -> Self:
        self._keep_ready()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for parser in list(self._all):
            await self._end(parser)

    async def args(self, body: Body, task: ArgsTask) -> Arguments:
        """The arguments of a command; a long body is replaced by them. Raises what the task does, and as `convert`."""
        if task.may_be_read_here and body.n_bytes <= HERE_BYTES:
            return task.read(body.view())
        await self.convert(body, task)
        return body

    async def convert(self, body: Body, task: Task) -> None:
        """Replace a body by what `task` makes of it.

        Raises what the task does; too_large or rate_limited if there is not the memory it may take, before it is
        taken; worker_unavailable if its process was stopped.
        """
        needed = await self._needed_bytes(body, task)
        body.hold.take(needed)
        async with self._parser(long=needed >= LONG_BYTES) as parser:
            out = Spool()
            try:
                await parser.read(Job(task, needed + SLACK_BYTES), body.spool(), out)
            except BaseException:
                out.close()
                raise
        body.replace(out)

    async def _needed_bytes(self, body: Body, task: Task) -> int:
        if body.is_short:
            return task.needed_bytes(body.view())
        return await anyio.to_thread.run_sync(task.needed_bytes, body.view(), limiter=self.threads)

    @asynccontextmanager
    async def _parser(self, *, long: bool) -> AsyncIterator["Parser"]:
        """A process to work with, as soon as there is one for such work."""
        async with self._long if long else nullcontext(), self._slots:
            parser = await self._take()
            try:
                yield parser
            finally:
                if parser.may_stay:
                    self._idle.append(parser)
                else:
                    await self._end(parser)
                    self._keep_ready()

    async def _take(self) -> "Parser":
        while self._idle:
            parser = self._idle.pop()
            if parser.is_alive:
                break
            await self._end(parser)
        else:
            parser = self._start()
        self._keep_ready()
        return parser

    def _keep_ready(self) -> None:
        if not self._idle and len(self._all) < PROCESSES:
            try:
                self._idle.append(self._start())
            except ServiceError as error:  # a request that needs a process now is told by a try of its own
                log.warning("no_parser_kept_ready", error=str(error))

    def _start(self) -> "Parser":
        parser = Parser()
        self._all.add(parser)
        return parser

    async def _end(self, parser: "Parser") -> None:
        self._all.discard(parser)
        with CancelScope(shield=True):
            await parser.end()


class Parser:
    """One process, started at once, ready a moment later."""

    def __init__(self) -> None:
        """Raises worker_unavailable where the machine starts no more processes."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            command = [sys.executable, "-m", "service.api.bodies.parser", str(theirs.fileno()), str(os.getpid())]
            try:
                self._process = subprocess.Popen(
                    command, env=environment() | PLAIN, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
                )
            except OSError as error:
                ours.close()
                detail = f"no process can be started that would read the body: {error.strerror}"
                raise ServiceError("worker_unavailable", detail, retry_after_s=RETRY_AFTER_S) from error
        self._connection = ours
        self._is_idle = True
        self._grown_bytes = 0

    @property
    def is_alive(self) -> bool:
        """Whether the process lives: it may have been killed while it waited."""
        try:
            ended = self._connection.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:  # nothing to read, as it should be
            ended = False
        except OSError:
            ended = True
        return not ended and self._process.poll() is None

    @property
    def may_stay(self) -> bool:
        """Whether the process is done with its work, and has given nearly all memory back."""
        return self._is_idle and self._grown_bytes < SLACK_BYTES

    async def read(self, job: Job, body: Spool, out: Spool) -> None:
        """Raises the refusal of the body; too_large if it took too long, else by how the process ended."""
        self._is_idle = False
        content = pickle.dumps(job)
        descriptors = [body.fileno(), out.fileno()]
        try:
            async with asyncio.timeout(READ_S):
                socket.send_fds(self._connection, [JOB_LENGTH.pack(len(content)), content], descriptors)
                answer = json.loads(await self._line())
        except TimeoutError:
            raise ServiceError("too_large", f"reading the body took longer than {READ_S:g} s") from None
        except (OSError, ValueError):
            await self.end()
            raise _ended(self._process.returncode) from None
        self._is_idle, self._grown_bytes = True, answer["grown_bytes"]
        if "code" in answer:
            raise ServiceError(answer["code"], answer["detail"], **answer["where"])

    async def end(self) -> None:
        """Kill the process and wait until it has ended."""
        self._process.kill()
        self._connection.close()
        while self._process.poll() is None:  # not in a thread: the machine may have none left
            await asyncio.sleep(ENDED_S)

    async def _line(self) -> bytes:
        """The line that the process answers with. Raises ConnectionError if it ends, or sends more than an answer
        is."""
        loop, line = asyncio.get_running_loop(), b""
        while not line.endswith(b"\n"):
            piece = await loop.sock_recv(self._connection, ANSWER_BYTES)
            line += piece
            if not piece or len(line) > ANSWER_BYTES:
                raise ConnectionError
        return line


def _ended(status: int) -> ServiceError:
    """The refusal of a body whose process ended while it read it."""
    log.warning("parser_ended", status=status)
    if status == -signal.SIGABRT:  # as C++ ends without memory
        return ServiceError("too_large", "reading the body took more memory than its size allows")
    if status in (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE):
        return ServiceError("invalid_body", "the body cannot be read: the process that tried broke down over it")
    detail = "the process that read the body was stopped; send it again"  # by somebody, or for want of memory
    return ServiceError("worker_unavailable", detail, retry_after_s=1)


def advice_of(media_type: str, settings: Settings, smaller: str) -> str:
    """What to say to a body over `limit_of`: the setting that bounds it, and what is `smaller`, if anything is."""
    of_json = media_type == JSON and settings.max_json_bytes < settings.max_body_bytes
    setting = "HEADRACE_MAX_JSON_BYTES" if of_json else "HEADRACE_MAX_BODY_BYTES"
    is_small = media_type in ("application/x-npz", "application/vnd.apache.arrow.stream")
    return f"; {setting} bounds it" + ("" if is_small else f", and {smaller}")


def limit_of(media_type: str, settings: Settings) -> int:
    """Bytes a body of this kind may have."""
    return min(settings.max_body_bytes, settings.max_json_bytes) if media_type == JSON else settings.max_body_bytes
