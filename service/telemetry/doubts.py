"""What an environment says in vain: told once when a process starts."""

import os
from typing import Final

import structlog

from service.connections import redis_address
from service.settings import OVERRULED, Settings, overruled_redis

log = structlog.get_logger("headrace.settings")


PASSED_OVER: Final = "the service decides this by itself, whatever the address of Redis says"


def warn_of_redis_address(settings: Settings) -> None:
    """Log which of two addresses of Redis counts, and what in it does not; passwords are cut out of every line. Logging
    is configured."""
    other = overruled_redis(settings, os.environ)
    if other is not None:
        log.warning("two_redis_urls", hint=OVERRULED, headrace_redis_url=settings.redis_url, redis_url=other)
    if options := redis_address.passed_over(settings.redis_url or ""):
        log.warning("redis_options_passed_over", hint=PASSED_OVER, options=", ".join(options))
