"""The API process: uvicorn on a socket the supervisor has bound, ``python -m service.http_server --fd N``.

The socket is bound once, so a restart of this process never loses the port nor the connections that wait.
"""

import argparse
import logging
import socket

import uvicorn

from service import logs

GRACE_S = 10
"""How long open requests may finish after SIGTERM."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fd", type=int, required=True)
    descriptor = parser.parse_args().fd
    logs.configure("api")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    config = uvicorn.Config(
        "service.app:create_app",
        factory=True,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    with socket.socket(fileno=descriptor) as listener:  # knows its family, so connections get TCP_NODELAY
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
