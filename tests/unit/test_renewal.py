"""A lease is renewed by a look and a write: what is heard of a Redis that goes away between the two."""

import socket
import threading
from contextlib import suppress
from typing import Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.worker.membership.heartbeat import Task, renew

LOADS: Final = b"-LOADING Valkey is loading the dataset in memory\r\n"


def _answer(listener: socket.socket) -> None:
    with suppress(OSError):  # the test is over
        while True:
            connection, _ = listener.accept()
            with connection:
                while asked := connection.recv(4096):
                    connection.sendall(LOADS if b"GET" in asked else b"+OK\r\n")


def test_a_redis_that_begins_to_load_between_the_two_is_no_fault_of_the_worker() -> None:
    """The library says so as a conflict, which would be told as a fault, with a traceback at each beat."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_answer, args=(listener,), daemon=True).start()
        client = redis.Redis(port=listener.getsockname()[1], protocol=2, retry=Retry(NoBackoff(), 0))
        with client:
            assert renew(client, Task("", "lease", "token", 5.0, 1)), "whose it is, the next beat sees"
