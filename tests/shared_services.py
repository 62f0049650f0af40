"""Real services that modules of tests share: a start takes more of the machine than most modules do."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import Final

import pytest

from tests.serving import Service, serving

MOST: Final = 3
"""Services that run at a time; the one that was lent longest ago makes room."""


OFTEN_SAVED: Final = MappingProxyType(
    {
        "HEADRACE_MAX_PATCH_ROWS": "2000",
        "HEADRACE_MAX_QUESTION_ROWS": "3000",
        "HEADRACE_SNAPSHOT_EVERY_UPDATES": "7",
    }
)
WEBHOOKS: Final = MappingProxyType({"HEADRACE_WEBHOOK_HOSTS": "127.0.0.1, hooks.test", "HEADRACE_MAX_WEBHOOKS": "3"})
"""Settings that several modules share with the service."""


class Services:
    """Services of one test process, one for each environment, each as if it were new to the module that has it."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._running: dict[frozenset[tuple[str, str]], tuple[Service, ExitStack]] = {}

    @contextmanager
    def lent(self, environment: Mapping[str, str] = MappingProxyType({})) -> Iterator[Service]:
        """A service with these settings and no graphs. What a module leaves behind goes away at its end."""
        key = frozenset(environment.items())
        service, stack = self._running.pop(key, None) or self._started(environment)
        self._running[key] = service, stack
        try:
            service.wait_ready()
            yield service
            self._tidy(service)
        except BaseException:
            self._running.pop(key)[1].close()
            raise

    def _started(self, environment: Mapping[str, str]) -> tuple[Service, ExitStack]:
        while len(self._running) >= MOST:
            self._running.pop(next(iter(self._running)))[1].close()
        folder, stack = self._folders.mktemp("shared"), ExitStack()
        return stack.enter_context(serving(folder / "data", folder / "log", environment)), stack

    def _tidy(self, service: Service) -> None:
        service.wait_ready()
        while graphs := service.http.get("/v1/graphs").raise_for_status().json()["graphs"]:
            for graph in graphs:
                service.http.delete(f"/v1/graphs/{graph['name']}").raise_for_status()
        for webhook in service.http.get("/v1/webhooks").raise_for_status().json()["webhooks"]:
            service.http.delete(f"/v1/webhooks/{webhook['id']}").raise_for_status()

    def close(self) -> None:
        for _, stack in self._running.values():
            stack.close()
