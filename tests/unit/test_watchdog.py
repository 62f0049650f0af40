"""An API process whose event loop hangs."""

import subprocess
import sys

import pytest

PROGRAM = """
import time
from service.api.watchdog import PATIENCE, Watchdog

watchdog = Watchdog(0.02)
watchdog.begin()
for _ in range(2 * PATIENCE):
    watchdog.sign()
    time.sleep(0.02)

def hangs():
    time.sleep(60)

{then}
"""


@pytest.mark.parametrize(("then", "status"), [("hangs()", 70), ("watchdog.rest(); time.sleep(0.6)", 0)])
def test_what_shows_no_life_ends(then: str, status: int) -> None:
    command = [sys.executable, "-c", PROGRAM.format(then=then)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert (ended.returncode, "in hangs" in ended.stderr) == (status, status == 70), ended.stderr
    assert ("hung" in ended.stdout) == (status == 70)
