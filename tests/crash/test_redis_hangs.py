"""Redis neither answers nor closes its connections: probes, people and scrapes hear of it, and it passes."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.contract.test_codes import check_problem
from tests.serving import serving

pytestmark = pytest.mark.crash

HANG_S = 15
"""Far below the half minute that a command to Redis may take, far above the two seconds meant."""


def test_a_redis_that_hangs_is_said_to_be_away(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as service:
        redis = service.children()["redis"]
        assert service.http.get("/metrics").status_code == 200  # the process knows of no API keys
        os.kill(redis, signal.SIGSTOP)
        try:
            time.sleep(2.5)  # the API keys as read are no longer fresh
            for path in ("/readyz", "/status"):
                check_problem(service.http.get(path, timeout=HANG_S), "worker_unavailable")
            scraped = service.http.get("/metrics", timeout=HANG_S)
            assert (scraped.status_code, "headrace_redis_up 0.0" in scraped.text) == (200, True)
            assert service.http.get("/livez").status_code == 200
        finally:
            os.kill(redis, signal.SIGCONT)
        service.wait_ready()
        assert service.http.get("/status", timeout=HANG_S).status_code == 200
