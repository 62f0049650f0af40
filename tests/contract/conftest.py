"""The application under a real uvicorn on a free port, with a fake backend behind it; and a whole service."""

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from headrace import Client

from service.api.app import create_app
from service.settings import Settings
from tests.contract.fakes import MAX_BODY_BYTES, Api, Fakes
from tests.serving import Service
from tests.shared_services import OFTEN_SAVED, Services

ROOT = Path(__file__).parents[2]


@pytest.fixture
def beside_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples alone, in which the programs of a page run: what they write stays there."""
    (tmp_path / "examples").mkdir()
    for example in (ROOT / "examples").iterdir():
        (tmp_path / "examples" / example.name).symlink_to(example)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def settings() -> Settings:
    return Settings(max_body_bytes=MAX_BODY_BYTES, max_patch_rows=100, default_wait_s=5, max_wait_s=60)


@pytest.fixture(scope="session")
def server(settings: Settings) -> Iterator[Api]:
    with running(settings) as api:
        yield api


@contextmanager
def running(settings: Settings) -> Iterator[Api]:
    """A server of its own."""
    fakes = Fakes()
    config = uvicorn.Config(create_app(settings, open_backend=fakes.open), log_config=None, access_log=False)
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        with httpx.Client(base_url=f"http://127.0.0.1:{address[1]}", verify=False, trust_env=False, timeout=20) as http:
            yield Api(fakes, http, address)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@pytest.fixture
def api(server: Api) -> Api:
    """The server with everything forgotten that earlier tests did to its fakes."""
    server.fakes.reset()
    return server


@pytest.fixture(scope="module")
def http(services: Services) -> Iterator[httpx.Client]:
    """A service with the default settings and no graphs but those of the module."""
    with services.lent() as service:
        yield service.http


@pytest.fixture(scope="module")
def service(services: Services) -> Iterator[Service]:
    """A service that saves graphs often and takes few rows, with no graphs but those of the module."""
    with services.lent(OFTEN_SAVED) as running:
        yield running


@pytest.fixture
def sdk(service_url: str) -> Iterator[Client]:
    """The Python client of the service that `service_url` starts."""
    with Client(service_url) as client:
        yield client


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key
