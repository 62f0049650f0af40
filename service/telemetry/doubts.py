"""What an environment says twice and differently: told once when a process starts, since only one of them counts."""

import os

import structlog

from service.settings import OVERRULED, Settings, overruled_redis

log = structlog.get_logger("headrace.settings")


def warn_of_two_stores(settings: Settings) -> None:
    """Log which of two addresses of Redis counts; passwords are cut out of every line. Logging is configured."""
    other = overruled_redis(settings, os.environ)
    if other is not None:
        log.warning("two_redis_urls", hint=OVERRULED, headrace_redis_url=settings.redis_url, redis_url=other)
