"""Whether this container works, as its exit status: ``healthcheck.py api`` or ``healthcheck.py worker NAME``."""

import ssl
import sys
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

import redis

from service.settings import Settings
from service.store.keys import Keys

TIMEOUT_S = 3.0
PORT = 8080


def api_is_ready() -> bool:
    """The API answers, and it sees Redis and a ready worker."""
    scheme = "http" if Settings().tls_cert is None else "https"
    own = HTTPSHandler(context=ssl._create_unverified_context())  # our own socket; the certificate names others
    opener = build_opener(ProxyHandler({}), own)
    with opener.open(f"{scheme}://127.0.0.1:{PORT}/readyz", timeout=TIMEOUT_S) as answer:
        return bool(answer.status == 200)


def worker_is_alive(name: str) -> bool:
    """The worker renews its lease, which it does from within the process: no lease, no life."""
    settings = Settings()
    client = redis.Redis.from_url(settings.redis_location, socket_timeout=TIMEOUT_S)
    return bool(client.exists(Keys(settings.redis_prefix).lease(name)))


def main(words: list[str]) -> int:
    match words:
        case ["api"]:
            check = api_is_ready
        case ["worker", name]:

            def check() -> bool:
                return worker_is_alive(name)

        case _:
            print(__doc__, file=sys.stderr)
            return 2
    try:
        return 0 if check() else 1
    except (OSError, redis.RedisError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
