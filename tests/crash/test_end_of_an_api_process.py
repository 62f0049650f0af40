"""What callers of an API process hear that is told to end, as when it is replaced by a later one."""

import json
import os
import signal
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serving import PATIENCE_S, Service, eventually, serving

pytestmark = pytest.mark.crash

EDGES = {"tail": [0, 0, 1, 2], "head": [1, 2, 3, 3], "capacity": [3, 2.5, 4, 2], "source": 0, "sink": 3}


def connected(service: Service, head: str) -> socket.socket:
    host, port = service.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    connection.sendall(f"{head} HTTP/1.1\r\nHost: localhost\r\n".encode())
    return connection


def in_a_thread(work: Any) -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    return thread, found


def test_nobody_is_left_without_a_word(tmp_path: Path) -> None:
    """Who waits for a worker gets a job, a feed ends so that its reader comes back, and a body that is not there yet is
    refused with a code: each of them was answered 500 or kept the process for ten seconds."""
    with serving(tmp_path) as service, ExitStack() as ends:
        assert service.http.put("/v1/graphs/city", json=EDGES).status_code == 201
        feed = ends.enter_context(connected(service, "GET /v1/graphs/city/events"))
        feed.sendall(b"\r\n")
        assert feed.recv(4096).startswith(b"HTTP/1.1 200 ")
        upload = ends.enter_context(connected(service, "PUT /v1/graphs/late"))
        upload.sendall(b'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"tail": [')
        children = service.children()
        os.kill(children["worker"], signal.SIGSTOP)
        change = {"edges": [0], "add": [1]}
        waiting, answers = in_a_thread(lambda: service.http.patch("/v1/graphs/city/capacities", json=change))
        time.sleep(0.5)
        began = time.monotonic()
        os.kill(children["api"], signal.SIGTERM)

        while feed.recv(4096):
            pass
        assert time.monotonic() - began < 4
        refused = b"".join(iter(lambda: upload.recv(4096), b""))
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert json.loads(refused.partition(b"\r\n\r\n")[2])["code"] == "worker_unavailable"
        waiting.join()
        os.kill(children["worker"], signal.SIGCONT)
        answer: httpx.Response = answers[0]
        assert answer.status_code == 202
        eventually(lambda: service.children().get("api", children["api"]) != children["api"])
        service.wait_ready()
        eventually(lambda: service.http.get(answer.headers["Location"]).json()["status"] == "succeeded")
        assert service.http.get("/v1/graphs/city").json()["version"] == 2
