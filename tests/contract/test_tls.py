"""TLS to the API and to Redis, with certificates made for the occasion."""

import contextlib
import runpy
import socket
import ssl
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import httpx
import pytest
import redis
import uvicorn

from service.api.http.server import config
from service.settings import Settings
from service.store.connection import connect

HEALTHCHECK = Path(__file__).parents[2] / "docker" / "healthcheck.py"


def test_the_api_over_tls(certificate: tuple[Path, Path], redis_url: str) -> None:
    cert, key = certificate
    settings = Settings(redis_url=redis_url, redis_prefix="tls:", tls_cert=cert, tls_key=key)
    server = uvicorn.Server(config(settings))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        trusted = ssl.create_default_context(cafile=str(cert))
        with httpx.Client(base_url=url, verify=trusted, trust_env=False) as http:
            response = http.get("/livez")
            assert response.json() == {"status": "live"}
            assert "max-age" in response.headers["strict-transport-security"]
        with httpx.Client(base_url=url, trust_env=False) as stranger, pytest.raises(httpx.ConnectError):
            stranger.get("/livez")
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@pytest.mark.parametrize("encrypted", [True, False], ids=["tls", "plain"])
def test_the_container_asks_its_api_over_tls(
    certificate: tuple[Path, Path], redis_url: str, monkeypatch: pytest.MonkeyPatch, encrypted: bool
) -> None:
    """The certificate names the host that others know; a proxy of the environment is not for this."""
    files = {"HEADRACE_TLS_CERT": str(certificate[0]), "HEADRACE_TLS_KEY": str(certificate[1])} if encrypted else {}
    for name, value in ({"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"} | files).items():
        monkeypatch.setenv(name, value)
    server = uvicorn.Server(config(Settings(redis_url=redis_url, redis_prefix=f"tls-{uuid.uuid4().hex}:")))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            healthcheck = runpy.run_path(str(HEALTHCHECK))
            is_ready = healthcheck["api_is_ready"]
            is_ready.__globals__["PORT"] = listener.getsockname()[1]
            with pytest.raises(HTTPError) as refusal:  # no worker, so it is not ready, which only the API can say
                is_ready()
            with refusal.value as answer:
                assert answer.code == 503
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def tls_port(certificate: tuple[Path, Path], redis_url: str) -> Iterator[int]:
    """TLS in front of the Redis server, which may have been built without."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    socket_path = redis_url.partition("@")[2]
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_serve, args=(listener, context, socket_path), daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def _serve(listener: socket.socket, context: ssl.SSLContext, socket_path: str) -> None:
    """One question, one answer at a time: all that ping and get need."""
    while True:
        try:
            plain, _ = listener.accept()
        except OSError:
            return
        with (
            contextlib.suppress(OSError),
            plain,
            context.wrap_socket(plain, server_side=True) as outer,
            socket.socket(socket.AF_UNIX) as inner,
        ):
            inner.connect(socket_path)
            while question := outer.recv(65536):
                inner.sendall(question)
                outer.sendall(inner.recv(65536))


def test_redis_over_tls(certificate: tuple[Path, Path], tls_port: int) -> None:
    address = f"rediss://127.0.0.1:{tls_port}/0"
    with contextlib.closing(connect(Settings(redis_url=f"{address}?ssl_ca_certs={certificate[0]}"))) as client:
        assert client.ping()
    refused = pytest.raises(redis.ConnectionError, match="CERTIFICATE_VERIFY_FAILED")
    with contextlib.closing(connect(Settings(redis_url=address))) as stranger, refused:
        stranger.ping()
