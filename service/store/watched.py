"""WATCH some keys and read what a commit depends on, in one round trip; MULTI and EXEC are the other one.

The client library sends each of these commands by itself and waits for its answer. With ten of them before a
commit, and 40 ms to Redis, others had most of a second to change what was watched.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import redis

from service.store.connection import is_of_wrong_type
from service.store.keys import Keys

Read: TypeAlias = tuple[str, ...]
"""A command that only reads, such as ("HGET", key, field)."""


def needs_writes(keys: Keys) -> Read:
    """A command that changes nothing, and is refused where no worker can renew its lease, as the memory or the disk is
    full or the user may not: then all workers seem to be away."""
    return "SET", keys.nothing, "", "XX", "PX", "1"


def watched(pipe: Any, keys: Sequence[str], *reads: Read, of_any_kind: bool = False) -> list[Any]:
    """The answers to `reads`. `pipe` watches `keys` from before they were read; go on with its `multi`.

    With `of_any_kind`, a key that holds something of another kind than is read is one without anything in it.

    `pipe` is a pipeline that has sent nothing yet, or that is watching already: then `keys` may be empty. Raises
    RedisError; then nothing is written, and the pipeline's end lets go of the connection.
    """
    if pipe.connection is None:
        pipe.connection = pipe.connection_pool.get_connection()
    connection, commands = pipe.connection, _commands(keys, reads)
    connection.send_packed_command(connection.pack_commands(commands))
    answers: list[Any] = []
    for command in commands:
        try:
            answers.append(pipe.parse_response(connection, command[0]))
        except redis.ResponseError as error:  # the other answers are read all the same: they are on their way
            answers.append(None if of_any_kind and is_of_wrong_type(error) else error)
    return _good(answers, len(reads))


async def watched_async(pipe: Any, keys: Sequence[str], *reads: Read) -> list[Any]:
    """`watched` for API processes."""
    if pipe.connection is None:
        pipe.connection = await pipe.connection_pool.get_connection()
    connection, commands = pipe.connection, _commands(keys, reads)
    await connection.send_packed_command(connection.pack_commands(commands))
    answers: list[Any] = []
    for command in commands:
        try:
            answers.append(await pipe.parse_response(connection, command[0]))
        except redis.ResponseError as error:
            answers.append(error)
    return _good(answers, len(reads))


def _commands(keys: Sequence[str], reads: Sequence[Read]) -> list[Read]:
    return [*([("WATCH", *keys)] if keys else []), *reads]


def _good(answers: list[Any], count: int) -> list[Any]:
    """The last `count`, which are those of the reads."""
    for answer in answers:
        if isinstance(answer, redis.ResponseError):
            raise answer
    return answers[len(answers) - count :]
