"""A log that cannot be written, as its reader has gone, keeps nobody from work; both loggers' lines go to one place."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
import structlog

from service.telemetry import logs


class Broken(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.fixture
def handler() -> "Iterator[logging.StreamHandler[io.StringIO]]":
    logs.configure("test")
    (handler,) = logging.getLogger().handlers
    assert isinstance(handler, logging.StreamHandler)
    yield handler
    structlog.reset_defaults()


def test_a_line_that_cannot_be_written_is_lost(handler: "logging.StreamHandler[io.StringIO]") -> None:
    log = structlog.get_logger("test")
    handler.setStream(Broken())
    for tell in (log.debug, log.info, log.warning, log.error, log.critical):
        tell("lost")
    out = io.StringIO()
    handler.setStream(out)
    log.info("there", of=2)
    logging.getLogger("other").warning("there as well")
    own, other = map(json.loads, out.getvalue().splitlines())
    assert (own["event"], own["of"], own["process"], own["level"]) == ("there", 2, "test", "info")
    assert (other["event"], other["process"], other["level"]) == ("there as well", "test", "warning")


def test_closed_streams_lead_nowhere() -> None:
    """As a service has them that is started with `>&- 2>&-`: what it opens must not become one of them."""
    told = "import os, socket, structlog; from service.telemetry import logs; logs.configure('test'); "
    told += "structlog.get_logger().info('lost'); assert socket.socket().fileno() > 2 and os.write(2, b'lost') == 4"
    closed = subprocess.run(["bash", "-c", f'exec "{sys.executable}" -c "{told}" <&- >&- 2>&-'], check=False)
    assert closed.returncode == 0
