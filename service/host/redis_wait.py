"""What a start wants of a Redis that somebody else runs: that it answers in time, and is one that can serve."""

import ssl
import threading
import time
from contextlib import closing
from typing import Final

import redis
import structlog
from redis.exceptions import AuthenticationError, NoPermissionError

from service.host.refusal import CannotServe
from service.settings import Settings
from service.store.connection import is_away
from service.store.fitness import UNFIT, mode_of
from service.store.keys import Keys
from service.store.room import warn_of_eviction
from service.telemetry.redaction import redacted

PAUSE_S: Final = 0.25
ANSWER_S: Final = 2.0
"""Time for one connection, and for its answer."""

FORGETS: Final = (
    "Redis keeps no append-only file: changes since its last dump are lost when it stops. "
    "Run CONFIG SET appendonly yes."
)
"""A hint in the log."""

log = structlog.get_logger(__name__)


def await_redis(settings: Settings, stop: threading.Event) -> None:
    """Return once the Redis of these settings answers, is not to be waited for, or `stop` is set.

    Raises `CannotServe` if its answer says that waiting is in vain, and when `redis_wait_s` are over; a server that
    reads its files says so, and has not answered yet. Without `redis_wait_s` it is asked once.
    """
    if settings.redis_url is None:
        return
    where = f"the Redis at {redacted(settings.redis_location)}"
    ends_at = time.monotonic() + (settings.redis_wait_s or 0.0)
    limits = {"socket_timeout": ANSWER_S, "socket_connect_timeout": ANSWER_S}
    with closing(redis.Redis.from_url(settings.redis_location, protocol=2, **limits)) as client:
        while not stop.is_set():
            try:
                mode = mode_of(client)
                if mode in UNFIT:
                    raise CannotServe(f"{where} {UNFIT[mode]}")
                client.unlink(Keys(settings.redis_prefix).nothing)
                if mode is not None:
                    warn_of_eviction(client.info("memory"))
                    if not client.info("persistence").get("aof_enabled", 1):
                        log.warning("redis_not_durable", hint=FORGETS)
                return
            except NoPermissionError as error:
                keys = f"{settings.redis_prefix}* (HEADRACE_REDIS_PREFIX)"
                line = "docs/security.md has the line of a user that may"
                raise CannotServe(f"{where} does not let its user write keys {keys}: {error}; {line}") from None
            except redis.RedisError as error:
                if isinstance(error, AuthenticationError) or not is_away(error) or _is_refused_tls(error):
                    raise CannotServe(f"{where} refuses: {error}") from None
                if settings.redis_wait_s is None:
                    return
                if time.monotonic() >= ends_at:
                    waited = f"for {settings.redis_wait_s:g} s (HEADRACE_REDIS_WAIT_S)"
                    raise CannotServe(f"{where} has not answered {waited}: {error}") from None
                stop.wait(PAUSE_S)


def _is_refused_tls(error: BaseException | None) -> bool:
    """Whether one side does not take the other's certificate or version, which no waiting changes. A server that ends
    while it is asked closes its connections, and has refused nothing."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError | ssl.SSLSyscallError)
        error = error.__context__
    return False
