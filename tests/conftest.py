"""Fixtures for all tests."""

from pathlib import Path

from service.host import redis_server
from tests.service_fixtures import caller, redis_url, settings, start_worker

__all__ = ["caller", "redis_url", "settings", "start_worker"]


def pytest_report_header() -> list[str]:
    try:
        server = str(redis_server.find_server(Path("no data yet")))
    except redis_server.NoRedisServer as error:
        server = str(error)
    return [f"Redis: {server}", "The first run on a machine compiles the solver, for a minute or two."]
