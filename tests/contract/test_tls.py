"""TLS to the API and to Redis, with certificates made for the occasion."""

import contextlib
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis
import uvicorn
from headrace import Client, ConnectionFailed, Retry

from service.api.http import tls
from service.api.http.server import config
from service.beginning import REFUSED
from service.host.redis_wait import await_redis
from service.host.refusal import CannotServe
from service.settings import Settings, SettingsError, read_settings
from service.store.api_keys import ApiKeys, Scope
from service.store.connection import connect
from service.store.keys import Keys
from tests.service_fixtures import StartWorker
from tests.serving import PATIENCE_S, eventually

HEALTHCHECK = Path(__file__).parents[2] / "docker" / "healthcheck.py"


@contextlib.contextmanager
def over_tls(certificate: tuple[Path, Path], redis_url: str) -> Iterator[httpx.Client]:
    """An API process's server in a thread, and a client that trusts it."""
    cert, key = certificate
    settings = Settings(redis_url=redis_url, redis_prefix="tls:", tls_cert=cert, tls_key=key)
    server = uvicorn.Server(config(settings))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        with httpx.Client(base_url=url, verify=ssl.create_default_context(cafile=cert), trust_env=False) as http:
            yield http
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def test_the_api_over_tls(certificate: tuple[Path, Path], redis_url: str) -> None:
    with over_tls(certificate, redis_url) as http:
        response = http.get("/livez")
        assert response.json() == {"status": "live"}
        assert "max-age" in response.headers["strict-transport-security"]
        with httpx.Client(base_url=http.base_url, trust_env=False) as stranger, pytest.raises(httpx.ConnectError):
            stranger.get("/livez")


def renewed(folder: Path) -> tuple[Path, Path]:
    """Another certificate and its key."""
    cert, key = folder / "new-cert.pem", folder / "new-key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key


def test_a_certificate_that_is_renewed_is_shown_from_then_on(
    certificate: tuple[Path, Path], redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are replaced one after the other, while the process runs for longer than it is valid."""
    monkeypatch.setattr(tls, "LOOK_S", 0.0)
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.symlink_to(certificate[0])
    key.symlink_to(certificate[1])

    def shown(http: httpx.Client) -> str:
        port = http.base_url.port
        assert port is not None
        return ssl.get_server_certificate(("127.0.0.1", port), timeout=10).strip()

    with over_tls((cert, key), redis_url) as http:
        assert http.get("/livez").status_code == 200
        assert shown(http) == certificate[0].read_text().strip()
        new_cert, new_key = renewed(tmp_path)
        for path, target in ((cert, new_cert), (key, new_key)):
            assert shown(http) == certificate[0].read_text().strip()
            (tmp_path / "link").symlink_to(target)
            (tmp_path / "link").replace(path)
        good = new_cert.read_text()
        assert shown(http) == good.strip()
        new_cert.write_text("no certificate")
        assert shown(http) == good.strip()
        assert http.get("/livez").status_code == 200  # on the connection from before


def test_the_client_over_tls(certificate: tuple[Path, Path], redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told of the certificate by option or environment; and what it says to who mixes up http and https, or trusts
    nobody who has signed it."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    once = Retry(attempts=1)

    def refused(url: str) -> str:
        with Client(url, retry=once) as client, pytest.raises(ConnectionFailed) as error:
            client.graphs()
        return str(error.value)

    with over_tls(certificate, redis_url) as http:
        url = str(http.base_url).rstrip("/")
        assert "verify=, or SSL_CERT_FILE of the environment, names certificates" in refused(url)
        assert refused(url.replace("https", "http")).endswith("Does it speak https?")
        with Client(url, verify=certificate[0], retry=once) as client:
            assert client.graphs() == ()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        with Client(url, retry=once) as client:
            assert client.graphs() == ()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = threading.Thread(target=_answer_plainly, args=(listener,))
        answering.start()
        assert "does it speak http, without the s?" in refused(f"https://127.0.0.1:{listener.getsockname()[1]}")
        answering.join()


def _answer_plainly(listener: socket.socket) -> None:
    """As a server of plain http answers to a greeting of TLS."""
    connection, _ = listener.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_a_session_over_tls(certificate: tuple[Path, Path], redis_url: str) -> None:
    """Its cookie is one that nobody can plant: the same session under the name of plain HTTP is none."""
    client = connect(Settings(redis_url=redis_url))
    table = ApiKeys(client, Keys("tls:"))
    try:
        _, token = table.create("dispatch", Scope.READ)
        with over_tls(certificate, redis_url) as http:
            own = {"Origin": f"https://{http.base_url.netloc.decode()}", "Sec-Fetch-Site": "same-origin"}
            sent = http.post("/login", data={"key": token}, headers=own)
            assert sent.status_code == 303, sent.text
            cookie, *attributes = sent.headers["set-cookie"].split("; ")
            name, _, session = cookie.partition("=")
            assert name == "__Host-headrace"
            assert {"secure", "httponly", "samesite=strict", "path=/"} <= {word.lower() for word in attributes}
            http.cookies.clear()
            for shown, status in ((cookie, 200), (f"headrace={session}", 401), (f"a=1; {cookie}; b=2", 200)):
                assert http.get("/v1/graphs", headers={"Cookie": shown}).status_code == status
    finally:
        table.forget()
        client.close()


@pytest.mark.parametrize("encrypted", [True, False], ids=["tls", "plain"])
def test_the_container_asks_its_api_over_tls(
    certificate: tuple[Path, Path], redis_url: str, start_worker: StartWorker, encrypted: bool
) -> None:
    """The API process and the health check are the programs of the image, in one environment, as in a container. The
    certificate names the host that others know, and a proxy of the environment is not for this."""
    proxies = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    files = {"HEADRACE_TLS_CERT": str(certificate[0]), "HEADRACE_TLS_KEY": str(certificate[1])} if encrypted else {}
    prefix = f"tls-{encrypted}:"
    store = {"HEADRACE_REDIS_URL": redis_url, "HEADRACE_REDIS_PREFIX": prefix}
    environment = os.environ | proxies | files | store
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, descriptor = listener.getsockname()[1], listener.fileno()
        command = [sys.executable, "-m", "service.api", "--fd", str(descriptor)]
        process = subprocess.Popen(command, env=environment, pass_fds=[descriptor])
    try:
        ready = f"{'https' if encrypted else 'http'}://127.0.0.1:{port}/readyz"

        def answers(status: int) -> bool:
            return httpx.get(ready, verify=False, trust_env=False, timeout=PATIENCE_S).status_code == status

        # Only the API itself can say, once it has started, that no worker is ready.
        eventually(lambda: answers(503))
        asked = health(["api", str(port)], environment)
        assert (asked.returncode, "503" in asked.stderr) == (1, True)
        start_worker("cpu-0", redis_url=redis_url, redis_prefix=prefix)
        eventually(lambda: answers(200))
        assert health(["api", str(port)], environment).returncode == 0
        assert health(["worker", "cpu-0"], environment).returncode == 0
        assert health(["worker", "cpu-1"], environment).returncode == 1
        if encrypted:
            plain = {name: value for name, value in environment.items() if name not in files}
            assert health(["api", str(port)], plain).returncode == 1, "nothing answers plain HTTP"
    finally:
        process.terminate()
        process.wait(60)
    assert health(["api", str(port)], environment).returncode == 1, "nobody listens any more"


def health(words: list[str], environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """The program of the image; it ends within its own time, and with one line if there is something to say."""
    command = [sys.executable, str(HEALTHCHECK), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("words", [[], ["api", "eighty"], ["worker"], ["redis"]])
def test_a_health_check_of_nothing_says_how_it_is_used(words: list[str]) -> None:
    done = health(words, dict(os.environ))
    assert done.returncode == 2
    assert re.search(r"healthcheck\.py api", done.stderr)


@pytest.mark.parametrize("content", [None, "no certificate"], ids=["absent", "malformed"])
def test_a_certificate_that_cannot_be_used_is_one_line(tmp_path: Path, content: str | None) -> None:
    """Whoever mounts the wrong folder into the container reads in its log what is wrong."""
    cert = tmp_path / "cert.pem"
    if content is not None:
        cert.write_text(content)
    environment = os.environ | {"HEADRACE_TLS_CERT": str(cert)}
    command = [sys.executable, "-m", "service.api", "--port", "0"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (REFUSED, 1)
    assert done.stderr.startswith("headrace: HEADRACE_TLS_CERT or HEADRACE_TLS_KEY cannot be used: ")


@pytest.fixture
def encrypted(certificate: tuple[Path, Path], tmp_path: Path) -> Path:
    """The key of the certificate under a pass phrase, as it is delivered by some."""
    key = tmp_path / "encrypted.pem"
    command = ["openssl", "pkey", "-in", str(certificate[1]), "-aes256", "-passout", "pass:secret", "-out", str(key)]
    subprocess.run(command, check=True, capture_output=True)
    return key


@pytest.mark.parametrize("process", [["service.api"], ["service.cli", "serve"]], ids=["api", "serve"])
def test_nobody_is_asked_for_the_pass_phrase_of_a_key(
    certificate: tuple[Path, Path], encrypted: Path, process: list[str], tmp_path: Path
) -> None:
    """It was asked for on the terminal, by one process after the other, and typing it in was of no use."""
    environment = {"HEADRACE_TLS_CERT": str(certificate[0]), "HEADRACE_TLS_KEY": str(encrypted)}
    environment |= {"HEADRACE_DATA_DIR": str(tmp_path / "data")}
    command = [sys.executable, "-m", *process, "--port", "0"]
    done = subprocess.run(
        command, env=os.environ | environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    assert done.stderr == (
        "headrace: HEADRACE_TLS_CERT or HEADRACE_TLS_KEY cannot be used: the private key is encrypted, and there is "
        "nobody to ask for its pass phrase: decrypt it\n"
    )
    assert done.returncode == (REFUSED if process == ["service.api"] else 1)


def test_the_key_for_redis_is_opened_by_its_pass_phrase_alone(
    certificate: tuple[Path, Path], encrypted: Path, tls_port: int, tmp_path: Path
) -> None:
    url = f"rediss://127.0.0.1:{tls_port}?ssl_ca_certs={certificate[0]}&ssl_certfile={certificate[0]}"
    both = tmp_path / "both.pem"
    both.write_bytes(certificate[0].read_bytes() + encrypted.read_bytes())
    for address in (
        f"{url}&ssl_keyfile={encrypted}",
        url.replace(f"ssl_certfile={certificate[0]}", f"ssl_certfile={both}"),
    ):
        with pytest.raises(SettingsError, match="a private key that is encrypted, without its 'ssl_password'"):
            read_settings(redis_url=address)
    with contextlib.closing(
        connect(read_settings(redis_url=f"{url}&ssl_keyfile={encrypted}&ssl_password=secret"))
    ) as client:
        assert client.ping()


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


def test_a_redis_whose_certificate_is_not_taken_is_not_waited_for(
    certificate: tuple[Path, Path], tls_port: int, tmp_path: Path
) -> None:
    """All processes were started, and waited for ever."""
    url = f"rediss://127.0.0.1:{tls_port}/0"
    never = threading.Event()
    with pytest.raises(CannotServe, match=rf"^the Redis at {url} refuses: .*CERTIFICATE_VERIFY_FAILED"):
        await_redis(Settings(data_dir=tmp_path, redis_url=url, redis_wait_s=60), never)
    await_redis(Settings(data_dir=tmp_path, redis_url=f"{url}?ssl_ca_certs={certificate[0]}", redis_wait_s=0), never)
