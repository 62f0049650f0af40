"""What an Idempotency-Key stands for: the first job that was enqueued under it, and the digest of that job's body."""

from contextlib import suppress
from typing import Any, Self

from pydantic import BaseModel

from service.protocol import Command
from service.store.keys import Keys
from service.store.unreadable import Unreadable, reading


class Known(BaseModel):
    """What lies under the key."""

    job: str
    digest: str | None

    @classmethod
    def read(cls, value: bytes, key: str) -> Self:
        """Raises `Unreadable`; `key` is where it lies."""
        with reading("the Idempotency-Key", key):
            return cls.model_validate_json(value)


def stands_for(value: bytes | None, key: str, job_id: str) -> bool:
    """Whether this job is the one that a key stands for."""
    with suppress(Unreadable):
        return value is not None and Known.read(value, key).job == job_id
    return False


def key_name(keys: Keys, graph: str, key: str | None) -> str:
    """The name in Redis of an Idempotency-Key that was used on a graph; for no key, a name that nobody writes."""
    return keys.idempotency(graph, key or "")


def claim(pipe: Any, keys: Keys, command: Command, ttl_s: int) -> None:
    """The command's key, if it has one, stands for it from now on."""
    if command.idempotency_key is not None:
        known = Known(job=command.id, digest=command.body_digest)
        pipe.set(key_name(keys, command.graph, command.idempotency_key), known.model_dump_json(), ex=ttl_s)
