"""Attacks by the way of sending: heads that take long to look at, floods, half-open connections, heads behind bodies,
pages of other origins, readers that never read."""

import json
import resource
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Final

from tests.attacks.house import Attack, House
from tests.contract.test_costly_requests import FLOODS, REQUESTS, answer, request
from tests.contract.test_http_connections import FLOOD, many
from tests.contract.test_origins import CROSS_SITE, VISIT
from tests.contract.test_pipelining import FOLLOWERS, GRAPH, Answers, patch
from tests.contract.test_slow_readers import READERS, asking

PATHS: Final = {
    "64 KiB of /a://a://": request(b"/" + 16_000 * b"a://"),
    "60,000 a": request(b"/" + 60_000 * b"a"),
}
TIMES: Final = 3
HALVES: Final = {"silent": b"", "half a head": b"GET /livez HTTP/1.1\r\nHost: loc"}
OPEN_S: Final = 3.0
PAGES: Final = ({"Origin": "http://evil.example"}, CROSS_SITE, VISIT, {"Sec-Fetch-Site": "same-site"})
N_EDGES: Final = 100_000
READ_S: Final = 5.0


def run(house: House) -> None:
    for name, content in (PATHS | REQUESTS).items():
        costly(house, name, content)
    for name, content in FLOODS.items():
        flood(house, name, content)
    for name, content in HALVES.items():
        half_open(house, name, content)
    pipelined(house)
    cross_site(house)
    never_reading(house)


def costly(house: House, name: str, content: bytes) -> None:
    with house.attack(f"head: {name}") as attack:
        took_s = 0.0
        for _ in range(TIMES):
            began = time.perf_counter()
            _count(attack, answer(attack.address, content))
            took_s = max(took_s, time.perf_counter() - began)
        attack.row["refused_ms"] = round(1e3 * took_s, 1)


def _count(attack: Attack, content: bytes) -> None:
    status = int(content[9:12])
    attack.count(status, str(status))


def flood(house: House, name: str, content: bytes) -> None:
    def send(_: int) -> None:
        with suppress(OSError), socket.create_connection(house.address, timeout=60) as connection:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 20):
                pass

    with house.attack(f"10 floods: {name}"), ThreadPoolExecutor(10) as pool:
        list(pool.map(send, range(10)))


def half_open(house: House, name: str, content: bytes) -> None:
    with house.attack(f"{FLOOD} connections: {name}") as attack, many(attack.address, FLOOD, content) as connections:
        time.sleep(OPEN_S)
        attack.row["connections"] = len(connections)
        attack.send("GET", "/v1/graphs/city")


def pipelined(house: House) -> None:
    """Each PATCH is answered for itself, with its version, whatever stands behind it."""
    house.service.http.put("/v1/graphs/g", json=GRAPH).raise_for_status()
    version = house.service.http.get("/v1/graphs/g").json()["version"]
    for name, follower in FOLLOWERS.items():
        with house.attack(f"a {name} head behind a PATCH of 900 kB") as attack:
            for _ in range(TIMES):
                with socket.create_connection(attack.address, timeout=60) as connection:
                    connection.sendall(patch(5, padding=900_000) + follower)
                    first = Answers(connection).next()
                assert first is not None
                attack.count(first[0], str(first[0]))
                version += 1
                assert json.loads(first[1])["version"] == version, "the answer is not that of the PATCH"


def cross_site(house: House) -> None:
    """Nothing is done for a page from elsewhere."""
    before = house.service.http.get("/v1/graphs").json()
    with house.attack("POST and DELETE by pages of other origins") as attack:
        for page in PAGES:
            for method, path in (("POST", "snapshots"), ("POST", "max-flow"), ("DELETE", "")):
                found = attack.send(method, f"/v1/graphs/city/{path}".rstrip("/"), headers=page)
                assert found.code == "forbidden", found.said
    assert house.service.http.get("/v1/graphs").json() == before


def never_reading(house: House) -> None:
    """Many ask for a long answer and take none of it; one who reads gets it."""
    http = house.service.http
    columns = {"tail": [0] * N_EDGES, "head": [1] * N_EDGES, "capacity": [123_456_789] * N_EDGES}
    ids = {"edge_ids": [f"{number:060}" for number in range(N_EDGES)]}
    http.put("/v1/graphs/long", json=columns | ids).raise_for_status()
    whole = {"sources": [0], "sinks": [1], "fields": ["flow"]}
    asked = http.post("/v1/graphs/long/max-flow", json=whole, headers={"Prefer": "respond-async"})
    job = asked.headers["location"]
    http.get(job, headers={"Prefer": "wait=15"}).raise_for_status()
    with house.attack(f"{READERS} readers that never read") as attack, ExitStack() as stack:
        for _ in range(READERS):
            stack.enter_context(asking(attack.address, job))
        time.sleep(READ_S)
        began = time.monotonic()
        while (found := attack.send("GET", job)).status == 429 and time.monotonic() < began + 60:
            time.sleep(0.2)
        assert found.status == 200
        attack.row |= {"answer_mib": round(len(found.content) / 2**20, 1)}
        attack.row["reader_waited_s"] = round(time.monotonic() - began, 2)
    http.delete("/v1/graphs/long").raise_for_status()


def check_files() -> None:
    """The attacker needs more files than its floods."""
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > FLOOD + 200
