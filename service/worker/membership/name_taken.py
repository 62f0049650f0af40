"""What becomes of a worker whose name another process has taken: it waits, without graphs, until the name is free.

``python -m service.worker.membership.name_taken NAME``, in the place of the worker's own process. It ends with
`NAME_TAKEN` when the name is free, and whoever keeps the worker alive starts it again. If it began again at once, two
that were given one name by mistake, as by two services on one Redis, would take it from each other for ever.
"""

import os
import signal
import sys
import time
from typing import Any, NoReturn

import redis
import structlog

from service.settings import read_settings
from service.store.connection import connect
from service.store.keys import Keys
from service.telemetry import logs
from service.worker.membership.heartbeat import BEATS_PER_LEASE, NAME_TAKEN

log = structlog.get_logger(__name__)


def wait_instead(name: str) -> NoReturn:
    """Become a process that only waits. What this one holds is given back to the system."""
    os.execv(sys.executable, [sys.executable, "-m", __name__, name])


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGINT):  # the first process of a container ends by no signal of itself
        signal.signal(number, lambda *_: sys.exit(0))
    name, settings = sys.argv[1], read_settings()
    logs.configure(name)
    log.warning("name_awaited", worker=name)
    client: Any = connect(settings)
    lease = Keys(settings.redis_prefix).lease(name)
    while True:
        try:
            if not client.exists(lease):
                return NAME_TAKEN
        except redis.RedisError:
            pass  # the other one may be there still
        time.sleep(settings.lease_s / BEATS_PER_LEASE)


if __name__ == "__main__":
    sys.exit(main())
