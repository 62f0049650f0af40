"""What the service says about itself, and the id of each request."""

import re
import socket

import pytest

from tests.contract.fakes import Api


@pytest.mark.parametrize(
    ("asked", "kept"), [("abc-1", True), ("x" * 129, False), ("a b", False), ("caf\u00e9".encode(), False)]
)
def test_request_ids(api: Api, asked: str | bytes, kept: bool) -> None:
    response = api.http.get("/livez", headers=[("X-Request-Id", asked)])
    assert (response.headers["x-request-id"] == asked) is kept
    assert re.fullmatch(r"[\x21-\x7e]{1,128}", response.headers["x-request-id"])


def test_service(api: Api) -> None:
    assert api.http.get("/livez").json() == {"status": "live"}
    assert api.http.get("/readyz").json() == {"status": "ready"}
    status = api.http.get("/status").json()
    assert status["version"]
    assert status["redis"]["fsync"] == "everysec"
    assert status["workers"][0]["name"] == "cpu-0"
    assert status["graphs"][0]["name"] == "city"
    assert status["last_update"] == "2026-01-31T12:00:00Z"
    assert status["limits"]["max_patch_rows"] == 100


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/health"])
def test_probes_may_be_asked_by_head(api: Api, path: str) -> None:
    """Many monitors and load balancers ask so. The connection is good for what follows: there was no body."""
    asked, whole = api.http.head(path), api.http.get(path)
    assert (asked.status_code, asked.content, whole.status_code) == (200, b"", 200)
    assert asked.headers["content-length"] == whole.headers["content-length"]
    api.fakes.dispatcher.known_workers = []
    assert api.http.head(path).status_code == api.http.get(path).status_code == (200 if path == "/livez" else 503)
    with socket.create_connection(api.address) as connection:
        connection.sendall(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        said = b"".join(iter(lambda: connection.recv(65536), b""))
    assert said.endswith(b"\r\n\r\n")


def test_metrics(api: Api) -> None:
    api.http.get("/v1/graphs/city")
    api.http.get("/v1/graphs/whatever")
    api.http.request("INVENTED", "/v1/invented")
    api.http.request("PROPFIND", "/v1/graphs")
    response = api.http.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    sample = re.compile(r'[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [0-9.e+-]+')
    for line in response.text.splitlines():
        assert line.startswith("# ") or sample.fullmatch(line), line
    assert 'route="/v1/graphs/{name}",status="404"' in response.text
    assert "INVENTED" not in response.text
    assert "PROPFIND" not in response.text
    assert re.search(r'method="other",route="/v1/graphs",status="40[0-9]"', response.text)
    assert "whatever" not in response.text
    assert 'headrace_worker_ready{worker="cpu-0"} 1' in response.text
