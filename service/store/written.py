"""What stands between a commit and its answer: Redis has handed the commit to the kernel, in a file that keeps it.

Under ``appendfsync everysec`` Redis holds back writes, already acknowledged, while an earlier fsync is running; a
kill -9 in that moment would lose them. An empty buffer means that the kernel has them.

A file that was begun by a rewrite is not opened for appending (Redis from 7 on, Valkey). When its disk is full, Redis
takes back what it wrote of a command, goes on behind that when there is room, and from then on takes the file to be
shorter than it is. The next time the disk is full it cuts off so many bytes that were acknowledged, and what is left
cannot be read. Seen with Valkey 9.1. So whoever finds that writes were refused has Redis write another file, and
nothing is acknowledged before that is done.
"""

import asyncio
import time
from collections.abc import Generator
from enum import Enum
from typing import Any, Final, TypeAlias

import redis
import redis.asyncio
import structlog

from service.store.keys import Keys


class File(Enum):
    """The append-only file that acknowledged writes are in."""

    SOUND = "sound"
    SUSPECT = "suspect"
    BEGUN = "begun"
    """Redis is writing another file just now; what was acknowledged is safe when that is done."""


PAUSE_S: Final = 0.0005
REWRITE_PAUSE_S: Final = 0.01
KNOWN_TTL_S: Final = 24 * 3600

Question: TypeAlias = tuple[Any, ...]
"""Name of a client's method and its arguments; or "sleep" and seconds; or "refusals" and a key, see `_refusals`."""

Questions: TypeAlias = Generator[Question, Any, None]

log = structlog.get_logger(__name__)


def wait_written(client: redis.Redis, keys: Keys, timeout_s: float = 10.0) -> None:
    """Return once all that was acknowledged on this connection has left the server process.

    Servers without append-only file, or that hide INFO, are taken as they are. Raises TimeoutError. Cost: one round
    trip, two if the file was rewritten since the server started.
    """
    questions = _questions(keys, timeout_s)
    question = _next(questions, None)
    while question is not None:
        name, *arguments = question
        answer: Any = None
        try:
            if name == "sleep":
                time.sleep(*arguments)
            elif name == "refusals":
                with client.pipeline(transaction=False) as pipe:
                    answer = _refusals(pipe, *arguments).execute()
            else:
                answer = getattr(client, name)(*arguments)
        except redis.ResponseError as error:
            answer = error
        question = _next(questions, answer)


async def wait_written_async(client: redis.asyncio.Redis, keys: Keys, timeout_s: float = 10.0) -> None:
    """`wait_written` in an event loop."""
    questions = _questions(keys, timeout_s)
    question = _next(questions, None)
    while question is not None:
        name, *arguments = question
        answer: Any = None
        try:
            if name == "sleep":
                await asyncio.sleep(*arguments)
            elif name == "refusals":
                async with client.pipeline(transaction=False) as pipe:
                    answer = await _refusals(pipe, *arguments).execute()
            else:
                answer = await getattr(client, name)(*arguments)
        except redis.ResponseError as error:
            answer = error
        question = _next(questions, answer)


def _refusals(pipe: Any, key: str) -> Any:
    """Which run of the server this is, how many writes it has refused, and what is known of that."""
    return pipe.info("errorstats", "server").get(key)


def _next(questions: Questions, answer: Any) -> Question | None:
    """The next question after this answer, which may be an error; None: there is none."""
    try:
        return questions.throw(answer) if isinstance(answer, redis.ResponseError) else questions.send(answer)
    except StopIteration:
        return None


def _questions(keys: Keys, timeout_s: float) -> Questions:
    """What is asked of Redis one after the other, whoever carries it there and back."""
    deadline, has_failed = time.monotonic() + timeout_s, False
    while time.monotonic() < deadline:
        try:
            info = yield "info", "persistence"
        except redis.exceptions.NoPermissionError:
            return
        has_failed |= info.get("aof_last_write_status", "ok") != "ok"
        if info.get("aof_buffer_length"):
            yield "sleep", PAUSE_S
            continue
        if not info.get("aof_rewrites"):
            return  # the file was opened when the server started, for appending
        file = yield from _look_at_file(keys, info, has_failed)
        if file is File.SOUND:
            return
        has_failed &= file is not File.BEGUN
        yield "sleep", REWRITE_PAUSE_S
    raise redis.TimeoutError(f"Redis has not written its append-only file for {timeout_s} s")


def _look_at_file(keys: Keys, persistence: dict[str, Any], has_failed: bool) -> Generator[Question, Any, File]:
    """Begin another file if writes were refused, unless one was begun since.

    What all processes know of it stands under one key: how many writes had been refused, by which run of the server,
    and the number of the rewrite that was begun then, or that it has ended well.
    """
    try:
        server, known = yield "refusals", keys.rewritten
        refused = f"{server.get('run_id')} {server.get('errorstat_MISCONF', {}).get('count', 0)}"
        known = (known or b"").decode()
        is_first = refused.endswith(" 0") and not known.startswith(refused)  # nobody has seen it fail
        if not has_failed and (is_first or known == f"{refused} ended"):
            return File.SOUND
        if persistence["aof_rewrite_in_progress"] or persistence["aof_rewrite_scheduled"]:
            return File.SUSPECT
        n_rewrites = persistence["aof_rewrites"]
        if not has_failed and known == f"{refused} {n_rewrites}" and persistence["aof_last_bgrewrite_status"] == "ok":
            yield "set", keys.rewritten, f"{refused} ended", KNOWN_TTL_S
            return File.SOUND
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
