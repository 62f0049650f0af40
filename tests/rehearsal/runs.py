"""The rehearsals: each starts one deployment whole, and ends it."""

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.collector import Collector, collecting
from tests.rehearsal import compose, manifests
from tests.rehearsal.contract import Caller, Contract, eventually
from tests.rehearsal.house import House, Running, free_subnet, opened
from tests.rehearsal.plan import Container
from tests.rehearsal.telemetry import check_prometheus, check_with_promtool

Say = Callable[[str], None]
TLS_FILES: Final = "fullchain.pem", "privkey.pem"
OTLP_PORT: Final = 4318
SERVER, CONSUMER = 2, 5
"""Kinds of spans: of the API, and of a worker."""


@contextmanager
def calling(urls: list[str], key: str | None = None) -> Iterator[Contract]:
    caller = Caller(urls, key)
    try:
        yield Contract(caller)
    finally:
        caller.close()


def doors(house: House, scheme: str = "http") -> list[str]:
    """Where callers come in: by the proxy, or where this machine has none at each API process."""
    through = house.of("front") or house.of("api") or house.of("headrace")
    return [f"{scheme}://{one.address}:8080" for one in through]


def compose_plain(folder: Path, say: Say, profiles: frozenset[str] = frozenset({"cpu", "observability"})) -> None:
    """As in the README's first lines, with observability; each container is killed once."""
    containers = list(compose.containers(compose.read({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://otel:4318"}), profiles))
    ours = [found for found in containers if found.names[0] not in ("otel", "grafana")]
    has_collector = len(containers) > len(ours)
    with (
        collecting((f"{free_subnet(OTLP_PORT)}.2", OTLP_PORT)) as collector,
        opened(folder, ours, {"otel": str(collector.server_address[0])}) as house,
    ):
        _tell(house, say)
        with calling(doors(house)) as contract:
            contract.load()
            contract.patch(1.5)
            for one in _one_of_each(house):
                contract.keep_through_the_end_of(house, one)
                say(f"{one.container.name} was killed and started again: nothing is lost")
            contract.add_webhook()  # so that its figures are there
        if has_collector:
            eventually(lambda: _kinds(collector) >= {SERVER, CONSUMER}, "spans of API and workers arrive")
            say(f"{len(collector.spans)} spans have come to where the collector listens")
        if house.of("prometheus"):
            n = check_prometheus(house, len(house.of("api")))
            say(f"Prometheus has evaluated {n} rules and queries of the dashboard on the live service")


def compose_secured(folder: Path, say: Say, certificate: tuple[Path, Path]) -> None:
    """TLS, keys and a file `.env`, with Prometheus as it is set up for them."""
    served = folder / "certificates"
    served.mkdir()
    for source, name in zip(certificate, TLS_FILES, strict=True):
        shutil.copy(source, served / name)
    key_file = folder / "metrics-key"
    key_file.write_text("none yet\n")
    env_file = folder / "env"
    lines = {
        "HEADRACE_REQUIRE_KEYS": "true",
        "HEADRACE_TLS_DIR": str(served),
        "HEADRACE_TLS_CERT": f"/etc/headrace/{TLS_FILES[0]}",
        "HEADRACE_TLS_KEY": f"/etc/headrace/{TLS_FILES[1]}",
        "HEADRACE_PROMETHEUS_CONFIG": "prometheus-tls.yml",
        "HEADRACE_METRICS_KEY_FILE": str(key_file),
        "HEADRACE_API_PROCESSES": "1",
    }
    env_file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    containers = list(compose.containers(compose.read({}, env_file), {"cpu", "observability"}))
    ours = [found for found in containers if found.names[0] not in ("otel", "grafana")]
    with opened(folder / "house", ours) as house:
        _tell(house, say)
        api = house.of("api")[0]
        key = _key(house, api, "admin")
        with calling(doors(house, "https"), key) as contract:
            contract.load()
            contract.patch(1.5)
            contract.keep_through_the_end_of(house, api)
        with calling(doors(house, "https")) as stranger:
            assert stranger.caller.ask("GET", "/v1/graphs").status_code == 401
        say("over TLS, with a key: load, solve, PATCH, restart; without one: 401")
        if house.of("prometheus"):
            (one,) = house.of("prometheus")
            (one.folder / "run/secrets/metrics-key").write_text(_key(house, api, "read"))
            check_prometheus(house, 1)
            say("Prometheus scrapes over TLS with its key")
            if shutil.which("promtool"):
                check_with_promtool(one.folder / "etc/prometheus/prometheus-tls.yml")
                check_with_promtool(one.folder / "etc/prometheus/prometheus.yml")
                say("promtool accepts both configurations, and the alerts fire when they should")


def kubernetes(folder: Path, say: Say, certificate: tuple[Path, Path] | None = None) -> None:
    """The pods of `base`; with a certificate, also the component for TLS. Each is killed once."""
    own = folder / "kustomization"
    own.mkdir()
    tls = folder / "tls"
    tls.mkdir()
    for source, name in zip(certificate or (), ("tls.crt", "tls.key"), strict=False):
        shutil.copy(source, tls / name)
    objects = manifests.render(manifests.FOLDER / "base") if certificate is None else manifests.secured(own, "base")
    passwords = {"headrace-store": {"password": secrets.token_hex(24)}}
    pods = list(manifests.containers(objects, passwords, {"headrace-tls": tls}))
    with opened(folder / "house", pods) as house:
        _tell(house, say)
        api = house.of("headrace")[0]
        with calling(doors(house, "http" if certificate is None else "https"), _key(house, api, "admin")) as contract:
            contract.load()
            contract.patch(1.5)
            for one in _one_of_each(house) if certificate is None else [api]:
                contract.keep_through_the_end_of(house, one)
        for one in house.running.values():
            assert house.is_healthy(one, alive=True) or one.container.alive is None, one.container.name
        (worker,), (store,) = house.of("headrace-worker"), house.of("valkey")
        if certificate is None:
            house.kill(store)
            assert house.is_healthy(worker, alive=True), "a worker is not to be ended while the store is away"
            assert not house.is_healthy(worker)
            assert not house.is_healthy(api)
            house.start(store)
            house.wait_healthy(store)
        say(f"{len(pods)} pods: load, solve, PATCH, restarts and probes{'' if certificate is None else ', over TLS'}")


def _one_of_each(house: House) -> list[Running]:
    """Of containers that are alike, one."""
    return list({one.container.image + one.container.names[0]: one for one in house.running.values()}.values())


def _key(house: House, api: Running, scope: str) -> str:
    made = house.run(api, "headrace", "keys", "create", "rehearsal", "--scope", scope, "--yes")
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def _tell(house: House, say: Say) -> None:
    names = ", ".join(house.running)
    say(f"healthy: {names}")
    if house.missing:
        say(f"not started, as this machine has no such program: {', '.join(_program(c) for c in house.missing)}")


def _program(container: Container) -> str:
    return f"{container.name} ({container.command[0]})"


def _kinds(collector: Collector) -> set[int]:
    return {span.kind for span in collector.spans}
