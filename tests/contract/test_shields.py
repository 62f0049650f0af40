"""Headers on every answer, and secrets that stay out of answers and logs."""

import io
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
import structlog

from service.api.guards.shields import HEADERS
from service.api.middleware import LONGEST_PATH, legible
from service.store.api_keys import Scope, new_key
from service.telemetry import logs
from tests.contract.fakes import Api


@pytest.mark.parametrize(
    "path",
    ["/livez", "/v1/graphs", "/v1/nothing", "/v1/graphs/explode", "/status", "/metrics", "/docs", "/openapi.json"],
)
def test_every_answer_has_its_headers(api: Api, path: str) -> None:
    response = api.http.get(path)
    for name, value in HEADERS.items():
        if not (path == "/docs" and name == "Content-Security-Policy"):
            assert response.headers[name] == value
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    assert "strict-transport-security" not in response.headers  # plain HTTP
    assert "access-control-allow-origin" not in response.headers


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What the log of a process gets; the log is as it was afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    logs.configure("test")
    out = io.StringIO()
    (handler,) = root.handlers
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(out)
    yield out
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def paths_of(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """The paths of the requests among lines of the log, which all servers of this process write: one of another test
    may be ending a request meanwhile."""
    return [line["path"] for line in lines if "path" in line]


def test_secrets_never_reach_the_log(written: io.StringIO) -> None:
    _, token = new_key("x", Scope.READ)
    url = "rediss://app:p4ssw0rd@redis.example:6379/0"
    log = structlog.get_logger("test")
    log.info(f"connecting to {url}", token=token, headers={"authorization": f"Bearer {token}"})
    logging.getLogger("redis").warning("cannot reach %s with %s", url, token)
    try:
        secret_local = token
        raise RuntimeError(f"{url} {secret_local}")
    except RuntimeError:
        log.exception("failed")
    text = written.getvalue()
    lines = [json.loads(line) for line in text.splitlines()]
    assert len([line for line in lines if line.get("event", "").startswith(("connecting", "cannot", "failed"))]) == 3
    assert "p4ssw0rd" not in text
    assert token.split("_", 2)[2] not in text
    assert token.split("_")[1] in text  # which key it was may be known
    assert "redis.example:6379" in text


def test_a_path_cannot_write_to_a_terminal(api: Api) -> None:
    with structlog.testing.capture_logs() as lines:
        api.http.get("/v1/%1b%5b31mred%0aforged")
    assert r"/v1/\x1b[31mred\nforged" in paths_of(lines)
    assert all(str(value).isprintable() for line in lines for value in line.values())


@pytest.mark.parametrize("turn", [1, 2])
def test_a_log_that_was_set_up_meanwhile_hides_nothing_later(api: Api, turn: int) -> None:
    """The first turn leaves loggers that the server has used with the log of a process; the second one sees its line
    all the same. So does the first, whatever ran before."""
    with structlog.testing.capture_logs() as lines:
        api.http.get(f"/v1/turn/{turn}")
    assert f"/v1/turn/{turn}" in paths_of(lines)
    logs.configure("test")
    api.http.get("/v1/turn/0")


@pytest.mark.parametrize("method", ["GET", "PATCH"])
@pytest.mark.parametrize("path", ["/{0}", "/v1/graphs/{0}", "/v1/graphs/{0}/capacities", "/v1/jobs/{0}"])
def test_the_log_gets_no_more_than_the_beginning_of_a_path(api: Api, method: str, path: str) -> None:
    with structlog.testing.capture_logs() as lines:
        api.http.request(method, path.format(20_000 * "x"))
        api.http.request(method, path.format("%1b%5b31m" + 1000 * "%0a"))
    for line in lines:
        for text in map(str, line.values()):
            assert text.isprintable()
            assert len(text) < 2 * LONGEST_PATH + 100
    assert any("characters left out)" in path for path in paths_of(lines))


def test_a_text_that_is_too_long_says_so() -> None:
    assert legible(LONGEST_PATH * "x") == LONGEST_PATH * "x"
    assert legible(1000 * "\n") == LONGEST_PATH * "\\n" + "... (488 characters left out)"


def test_a_redis_that_is_away_is_not_described_to_callers(api: Api) -> None:
    assert "Redis is away" not in api.http.get("/v1/graphs/away").text
