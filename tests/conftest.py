"""Fixtures for all tests."""

import gc
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import hypothesis
import pytest
import structlog

from service.host import redis_server
from tests.service_fixtures import by_itself, caller, client, keys, redis_url, settings, start_worker, worker
from tests.shared_services import Services

PROCESSES: Final = frozenset({"subprocess", "multiprocessing", "serving", "api_process", "redis_server", "House"})
"""What a module of tests imports that starts processes."""

LONG: Final = ("crash", "faults", "timeout")
"""Marks of tests that take half a minute each."""

NEED_PROCESSES: Final = frozenset({"redis_url", "services"})
"""Fixtures that do."""

__all__ = ["by_itself", "caller", "client", "keys", "redis_url", "settings", "start_worker", "worker"]


def pytest_configure() -> None:
    """What is collected stays until the end, so nothing looks through it again and again while it grows.

    Exceptions are logged as the service logs them: with the values of all variables, as is structlog's default where
    rich is installed, one takes seconds, and a service that runs in a thread of the tests answers nobody meanwhile.

    No example that Hypothesis draws has a deadline: the first one of a process may import and compile."""
    hypothesis.settings.register_profile("without deadline", deadline=None)
    hypothesis.settings.load_profile("without deadline")
    gc.disable()
    renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], renderer])


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def log_as_before() -> Iterator[None]:
    """A command that a test runs within its own process sets up the log of that process: it is put back.

    Loggers that were first used meanwhile, as by a server in a thread, keep that log: they forget it, lest nothing that
    they write is captured later.
    """
    root, config = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**config)
    for name, module in list(sys.modules.items()):
        if name.startswith("service.") and (log := getattr(module, "log", None)) is not None:
            vars(log).pop("bind", None)


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Services that many modules share."""
    shared = Services(tmp_path_factory)
    yield shared
    shared.close()


@pytest.fixture(scope="module")
def service_url(services: Services) -> Iterator[str]:
    """A whole service: uvicorn, a worker process and Redis."""
    with services.lent() as service:
        yield service.url


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs Redis, or processes of its own: `make check` leaves it out.

    What takes longest begins first: else one process is at work on it at the end while the others have nothing left.
    """
    items.sort(key=lambda item: all(item.get_closest_marker(name) is None for name in LONG))
    for item in items:
        names = vars(getattr(item, "module", None) or object).keys()
        needs_processes = not NEED_PROCESSES.isdisjoint(getattr(item, "fixturenames", ()))
        if needs_processes or not PROCESSES.isdisjoint(names):
            item.add_marker("service")


def pytest_report_header() -> list[str]:
    try:
        server = str(redis_server.find_server(Path("no data yet")))
    except redis_server.NoRedisServer as error:
        server = str(error)
    return [f"Redis: {server}", "The first run on a machine compiles the solver, for a minute or two."]
