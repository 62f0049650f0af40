"""Servers that answer, and cannot keep what the service writes."""

from typing import Any, Final

import redis
from redis.exceptions import NoPermissionError

from service.store.primary import understood

UNFIT: Final = {
    "cluster": "is a cluster: the keys of one change would lie on several servers. Name a server with replicas",
    "sentinel": "is a sentinel, which keeps no data: name the server that it watches",
}
"""Why a server in one of these modes cannot serve."""


class Unfit(redis.RedisError):
    """The server cannot serve, for the reason that `UNFIT` gives."""


def mode_of(client: Any) -> str | None:
    """`cluster`, `sentinel` or another mode of the server; None if its user may not ask. Raises RedisError."""
    try:
        found = client.info("server")
    except redis.ResponseError as error:
        if isinstance(understood(error), NoPermissionError):
            return None
        raise
    mode: str | None = found.get("redis_mode") or found.get("server_mode")  # the latter of Valkey
    return mode


def refuse_unfit(client: Any) -> None:
    """Raise `Unfit` for a server that cannot serve. One round trip."""
    mode = mode_of(client)
    if mode in UNFIT:
        raise Unfit(f"Redis {UNFIT[mode]}")
