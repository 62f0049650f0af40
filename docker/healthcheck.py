"""Whether this container works, as its exit status: ``healthcheck.py api [PORT]``, ``worker NAME``, ``workers START``
for all whose names start so, or ``store``.

``lives NAME`` asks whether a worker is to be started again: as ``worker``, but not while the store is away, for which
no worker is to blame.
"""

import ssl
import sys
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.settings import Settings
from service.store.keys import Keys

TIMEOUT_S = 3.0
PORT = 8080
"""Where the image's command has the API listen; another command is checked with its own."""


def api_is_ready(port: int = PORT) -> bool:
    """The API answers, over TLS if it was given a certificate, and it sees Redis and a ready worker."""
    scheme = "http" if Settings().tls_cert is None else "https"
    own = HTTPSHandler(context=ssl._create_unverified_context())  # our own socket; the certificate names others
    opener = build_opener(ProxyHandler({}), own)
    with opener.open(f"{scheme}://127.0.0.1:{port}/readyz", timeout=TIMEOUT_S) as answer:
        return bool(answer.status == 200)


def worker_is_alive(name: str) -> bool:
    """The worker renews its lease, which it does from within the process: no lease, no life."""
    settings = Settings()
    client = redis.Redis.from_url(settings.redis_location, socket_timeout=TIMEOUT_S)
    return bool(client.exists(Keys(settings.redis_prefix).lease(name)))


def worker_lives(name: str) -> bool:
    """No store says that the worker has no lease."""
    try:
        return worker_is_alive(name)
    except redis.RedisError as error:
        print(error, file=sys.stderr)
        return True


def store_answers() -> bool:
    """The store answers; while it reads its file, it says that instead."""
    client = redis.Redis.from_url(Settings().redis_location, socket_timeout=TIMEOUT_S, retry=Retry(NoBackoff(), 0))
    return bool(client.ping())


def workers_are_alive(start: str) -> bool:
    """Each worker whose name starts so renews its lease, and there is one at least."""
    settings = Settings()
    client = redis.Redis.from_url(settings.redis_location, socket_timeout=TIMEOUT_S)
    names = [name.decode() for name in client.hkeys(Keys(settings.redis_prefix).workers)]
    ours = [name for name in names if name.startswith(start)]
    return bool(ours) and all(worker_is_alive(name) for name in ours)


def main(words: list[str]) -> int:
    try:
        match words:
            case ["api"]:
                works = api_is_ready()
            case ["api", port] if port.isdecimal():
                works = api_is_ready(int(port))
            case ["worker", name]:
                works = worker_is_alive(name)
            case ["workers", start]:
                works = workers_are_alive(start)
            case ["lives", name]:
                works = worker_lives(name)
            case ["store"]:
                works = store_answers()
            case _:
                print(__doc__, file=sys.stderr)
                return 2
        return 0 if works else 1
    except (OSError, redis.RedisError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
