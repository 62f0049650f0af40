"""How long a start waits for a Redis that somebody else runs."""

import threading
import time
from contextlib import closing
from typing import Final

import redis

from service.host.refusal import CannotServe
from service.settings import Settings
from service.telemetry.redaction import redacted

PAUSE_S: Final = 0.25
ANSWER_S: Final = 2.0
"""Time for one connection, and for its answer."""


def await_redis(settings: Settings, stop: threading.Event) -> None:
    """Return once the Redis of these settings answers, is not to be waited for, or `stop` is set. Raises `CannotServe`
    when `redis_wait_s` are over; a server that reads its files says so, and has not answered yet."""
    if settings.redis_wait_s is None:
        return
    ends_at = time.monotonic() + settings.redis_wait_s
    limits = {"socket_timeout": ANSWER_S, "socket_connect_timeout": ANSWER_S}
    with closing(redis.Redis.from_url(settings.redis_location, protocol=2, **limits)) as client:
        while not stop.is_set():
            try:
                client.ping()
                return
            except redis.RedisError as error:
                if time.monotonic() >= ends_at:
                    waited = f"for {settings.redis_wait_s:g} s (HEADRACE_REDIS_WAIT_S)"
                    where = redacted(settings.redis_location)
                    raise CannotServe(f"the Redis at {where} has not answered {waited}: {error}") from None
                stop.wait(PAUSE_S)
