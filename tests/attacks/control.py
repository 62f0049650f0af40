"""A server that does nothing but answer: what its probes take is the machine's doing, not the service's.

``python -m tests.attacks.control FD`` accepts on the descriptor until its input ends.
"""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@contextmanager
def control() -> Iterator[str]:
    """Its URL."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        command = [sys.executable, "-m", "tests.attacks.control", str(listener.fileno())]
        with subprocess.Popen(command, pass_fds=[listener.fileno()], stdin=subprocess.PIPE):
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


def main() -> None:
    listener = socket.socket(fileno=int(sys.argv[1]))
    threading.Thread(target=_end_with_input, daemon=True).start()
    while True:
        try:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(ANSWER)
        except OSError:
            continue


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
