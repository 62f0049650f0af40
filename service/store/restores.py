"""How often a graph was read of late before anybody has asked for it, by whichever worker.

One that takes its worker down each time, as for want of memory, would do so at each start, and what else that worker
has would be served in between at most.
"""

from typing import Any, Final

import redis

from service.store.keys import Keys

MOST: Final = 10
LATELY_S: Final = 300
"""Tries are forgotten when for so long there was none."""


class Restores:
    """Counts them. Methods raise RedisError."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys

    def is_one_too_many(self, name: str) -> bool:
        """Count one more try, which is about to begin; whether there were so many that it should not."""
        key = self._keys.restores(name)
        with self._redis.pipeline() as pipe:
            pipe.incr(key)
            pipe.expire(key, LATELY_S)
            tries, _ = pipe.execute()
        return int(tries) > MOST
