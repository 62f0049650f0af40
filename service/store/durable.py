"""What stands between a commit and its answer: Redis has handed the commit to the kernel, in a file that keeps it.

Under ``appendfsync everysec`` Redis holds back writes, already acknowledged, while an earlier fsync is running; a
kill -9 in that moment loses them. An empty buffer means that the kernel has them, if it is the buffer of the process
that acknowledged them: one that was started since has an empty buffer as well, and may have come back without them. So
whoever commits asks beforehand which run of the server there is, and the answer must come from that one.

A file that was begun by a rewrite is not opened for appending (Redis from 7 on, Valkey). When its disk is full, Redis
takes back what it wrote of a command, goes on behind that when there is room, and from then on takes the file to be
shorter than it is. The next time the disk is full it cuts off so many bytes that were acknowledged, and what is left
cannot be read. Seen with Valkey 9.1. So whoever finds that writes were refused has Redis write another file, and
nothing is acknowledged before that is done. A try that fails, as for want of room, fills the disk while it lasts, and
leaves one more file of commands: so the next one waits for a while.
"""

import asyncio
import time
from collections.abc import Generator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

import redis
import redis.asyncio
import structlog

from service.store.connection import Unwritten
from service.store.keys import Keys
from service.store.watched import Read, watched


class File(Enum):
    """The append-only file that acknowledged writes are in."""

    SOUND = "sound"
    SUSPECT = "suspect"
    BEGUN = "begun"
    """Redis is writing another file just now; what was acknowledged is safe when that is done."""


PAUSE_S: Final = 0.0005
REWRITE_PAUSE_S: Final = 0.01
AGAIN_MS: Final = 15_000
"""Between two tries of all processes together to have another file written, once one has failed."""

KNOWN_TTL_S: Final = 24 * 3600
TIMEOUT_S: Final = 10.0

Question: TypeAlias = tuple[Any, ...]
"""Name of a client's method and its arguments; or "sleep" and seconds; or "ask" and commands that only read, which are
asked in one round trip."""

TOLD: Final[Read] = ("INFO", "persistence", "server", "errorstats")
TOLD_BEFORE_7: Final[Read] = ("INFO",)
"""Redis before 7 names one section at a time."""

Questions: TypeAlias = Generator[Question, Any, Any]

log = structlog.get_logger(__name__)


class Restarted(redis.ConnectionError):
    """Redis was started since the commit began: what it acknowledged before may be gone, and must be looked for."""


class Written:
    """Waits until commits have left the server process, for a blocking client. Safe from any thread.

    Servers without append-only file, or that hide INFO, are taken as they are.
    """

    def __init__(self, client: redis.Redis, keys: Keys, timeout_s: float = TIMEOUT_S) -> None:
        self._client: Any = client
        self._server = _Server(keys, timeout_s)

    def run(self) -> str:
        """Which run of the server there is, to be asked before a commit. Cost: one round trip, the first time.

        The answer may be that of a run that is over; then `wait` raises, and the commit is looked for again.
        """
        return self._server.run or str(self._carry(self._server.ask_run()))

    def wait(self, run: str) -> None:
        """Return once all that this run of the server has acknowledged has left its process.

        Raises Restarted if another run answers, and TimeoutError. Cost: one round trip.
        """
        self._carry(self._server.wait(run))

    def _ask(self, *reads: Read) -> list[Any]:
        with self._client.pipeline() as pipe:
            return watched(pipe, (), *reads)

    def _carry(self, questions: Questions) -> Any:
        question = _next(questions, None)
        while not isinstance(question, _End):
            name, *arguments = question
            answer: Any = None
            try:
                if name == "sleep":
                    time.sleep(*arguments)
                elif name == "ask":
                    answer = self._ask(*arguments)
                else:
                    answer = getattr(self._client, name)(*arguments)
            except redis.ResponseError as error:
                answer = error
            question = _next(questions, answer)
        return question.value


class AsyncWritten:
    """`Written` in an event loop."""

    def __init__(self, client: redis.asyncio.Redis, keys: Keys, timeout_s: float = TIMEOUT_S) -> None:
        self._client: Any = client
        self._server = _Server(keys, timeout_s)

    async def run(self) -> str:
        return self._server.run or str(await self._carry(self._server.ask_run()))

    async def wait(self, run: str) -> None:
        await self._carry(self._server.wait(run))

    async def settled(self, *reads: Read) -> list[Any]:
        """The answers to `reads`, once all that they tell of has left the server's process.

        They are asked on one connection just before the look at the server, so it is one run of it that says both.
        Raises TimeoutError. Cost: one round trip.
        """
        answers: list[Any] = await self._carry(self._server.wait(None, reads))
        return answers

    async def _ask(self, *reads: Read) -> list[Any]:
        async with self._client.pipeline(transaction=False) as pipe:
            for read in reads:
                pipe.execute_command(*read)
            return list(await pipe.execute())

    async def _carry(self, questions: Questions) -> Any:
        question = _next(questions, None)
        while not isinstance(question, _End):
            name, *arguments = question
            answer: Any = None
            try:
                if name == "sleep":
                    await asyncio.sleep(*arguments)
                elif name == "ask":
                    answer = await self._ask(*arguments)
                else:
                    answer = await getattr(self._client, name)(*arguments)
            except redis.ResponseError as error:
                answer = error
            question = _next(questions, answer)
        return question.value


class _End(NamedTuple):
    """There are no more questions; what they have come to."""

    value: Any


def _next(questions: Questions, answer: Any) -> Question | _End:
    """The next question after this answer, which may be an error."""
    try:
        return questions.throw(answer) if isinstance(answer, redis.ResponseError) else questions.send(answer)
    except StopIteration as end:
        return _End(end.value)


class _Told(NamedTuple):
    """What the server says of itself, and what processes know of its file."""

    info: Mapping[str, Any] | None
    known: bytes | None
    answers: list[Any]
    """The answers to the commands that were sent before it."""


class _Server:
    """What is asked of Redis one after the other, whoever carries it there and back."""

    def __init__(self, keys: Keys, timeout_s: float) -> None:
        self._keys = keys
        self._timeout_s = timeout_s
        self.run: str | None = None
        """The run of the server that answered last; "-" for one that hides INFO."""

    def ask_run(self) -> Questions:
        told = yield from self._ask()
        return self._heard(told.info)

    def wait(self, run: str | None, reads: Sequence[Read] = ()) -> Questions:
        """The answers to `reads`, asked with the last look. None: whichever run of the server answers."""
        deadline, has_failed = time.monotonic() + self._timeout_s, False
        while time.monotonic() < deadline:
            told = yield from self._ask(reads)
            info = told.info
            if self._heard(info) != run and run is not None:
                raise Restarted("Redis was started again, and may have come back without what it acknowledged before")
            if info is None:
                return told.answers
            has_failed |= info.get("aof_last_write_status", "ok") != "ok"
            if info.get("aof_buffer_length"):
                yield "sleep", PAUSE_S
                continue
            if not info.get("aof_rewrites"):
                return told.answers  # the file was opened when the server started, for appending
            file = yield from _look_at_file(self._keys, info, told.known, has_failed)
            if file is File.SOUND:
                return told.answers
            has_failed &= file is not File.BEGUN
            yield "sleep", REWRITE_PAUSE_S
        raise Unwritten(f"Redis has not written its append-only file for {self._timeout_s} s")

    def _ask(self, reads: Sequence[Read] = ()) -> Generator[Question, Any, _Told]:
        """What the server says of itself, if it does, and what is known of its file, both after it has answered
        `reads`."""
        known = "GET", self._keys.rewritten
        try:
            *answers, info, found = yield "ask", *reads, TOLD, known
        except redis.exceptions.NoPermissionError:
            return _Told(None, None, (yield "ask", *reads) if reads else [])
        except redis.ResponseError:
            *answers, info, found = yield "ask", *reads, TOLD_BEFORE_7, known
        return _Told(info, found, answers)

    def _heard(self, info: Mapping[str, Any] | None) -> str:
        self.run = "-" if info is None else str(info.get("run_id", "-"))
        return self.run


def _look_at_file(
    keys: Keys, info: Mapping[str, Any], found: bytes | None, has_failed: bool
) -> Generator[Question, Any, File]:
    """Begin another file if writes were refused, unless one was begun since.

    What all processes know of it stands under one key: how many writes had been refused, by which run of the server,
    and the number of the rewrite that was begun then, or that it has ended well.
    """
    try:
        refused = f"{info.get('run_id')} {info.get('errorstat_MISCONF', {}).get('count', 0)}"
        known = (found or b"").decode()
        is_first = refused.endswith(" 0") and not known.startswith(refused)  # nobody has seen it fail
        if not has_failed and (is_first or known == f"{refused} ended"):
            return File.SOUND
        if info["aof_rewrite_in_progress"] or info["aof_rewrite_scheduled"]:
            return File.SUSPECT
        n_rewrites = info["aof_rewrites"]
        if not has_failed and known == f"{refused} {n_rewrites}" and info["aof_last_bgrewrite_status"] == "ok":
            yield "set", keys.rewritten, f"{refused} ended", KNOWN_TTL_S
            return File.SOUND
        if info["aof_last_bgrewrite_status"] != "ok":  # as where the disk has no room for it
            is_full = info.get("aof_last_write_status", "ok") != "ok"
            if is_full or not (yield "set", keys.rewrite_tried, "", None, AGAIN_MS, True):
                return File.SUSPECT
        try:
            yield ("bgrewriteaof",)
        except redis.exceptions.NoPermissionError as error:  # said once: nothing can be done here
            log.warning("file_not_begun_anew", error=str(error))
            yield "set", keys.rewritten, f"{refused} ended", KNOWN_TTL_S
            return File.SOUND
        log.warning("file_begun_anew", refused=refused)
        yield "set", keys.rewritten, f"{refused} {n_rewrites + 1}", KNOWN_TTL_S
        return File.BEGUN
    except redis.ResponseError as error:  # another process was faster, or the disk is still full
        log.info("file_not_begun_yet", error=str(error))
        return File.SUSPECT
