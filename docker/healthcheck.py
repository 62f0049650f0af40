"""Whether this container works, as its exit status: ``healthcheck.py api [PORT]``, ``worker NAME``, ``workers START``
for all whose names start so, or ``store``.

``lives NAME`` asks whether a worker is to be started again: as ``worker``, but not while the store is away, or takes no
writes, for which no worker is to blame.
"""

import os
import ssl
import sys
from typing import Any
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

TIMEOUT_S = 3.0
PORT = 8080
"""Where the image's command has the API listen; another command is checked with its own."""


def api_is_ready(port: int = PORT) -> bool:
    """The API answers, over TLS if it was given a certificate, and it sees Redis and a ready worker."""
    scheme = "https" if os.environ.get("HEADRACE_TLS_CERT") else "http"
    own = HTTPSHandler(context=ssl._create_unverified_context())  # our own socket; the certificate names others
    opener = build_opener(ProxyHandler({}), own)
    with opener.open(f"{scheme}://127.0.0.1:{port}/readyz", timeout=TIMEOUT_S) as answer:
        return bool(answer.status == 200)


def main(words: list[str]) -> int:
    try:
        match words:
            case ["api"]:
                works = api_is_ready()
            case ["api", port] if port.isdecimal():
                works = api_is_ready(int(port))
            case ["worker" | "workers" | "lives", name]:
                works = ask_store(words[0], name)
            case ["store"]:
                works = ask_store("store")
            case _:
                print(__doc__, file=sys.stderr)
                return 2
        return 0 if works else 1
    except OSError as error:
        print(error, file=sys.stderr)
        return 1


def ask_store(question: str, name: str = "") -> bool:
    """What the store knows. While it reads its file it says that instead, and counts as away."""
    import redis  # a third of a second, which the check of the API does without
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    from service.settings import Settings
    from service.store.keys import Keys
    from service.store.watched import needs_writes

    settings = Settings()
    keys = Keys(settings.redis_prefix)
    client: Any = redis.Redis.from_url(settings.redis_location, socket_timeout=TIMEOUT_S, retry=Retry(NoBackoff(), 0))
    try:
        match question:
            case "store":
                return bool(client.ping())
            case "workers":
                names = [found.decode() for found in client.hkeys(keys.workers)]
                ours = [keys.lease(found) for found in names if found.startswith(name)]
                return bool(ours) and client.exists(*ours) == len(ours)
            case _:  # a worker renews its lease, which it does from within the process: no lease, no life
                has_lease = bool(client.exists(keys.lease(name)))
                if question == "lives" and not has_lease:
                    client.execute_command(*needs_writes(keys))
                return has_lease
    except redis.RedisError as error:
        print(error, file=sys.stderr)
        return question == "lives"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
