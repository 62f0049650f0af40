"""An API process whose event loop hangs."""

import os
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


SERVER = """
import sys, time
from functools import partial
import uvicorn
from service.api.http import server
from service.api.watchdog import PATIENCE

server.Watchdog = partial(server.Watchdog, 0.05)
tick, shutdown = uvicorn.Server.on_tick, uvicorn.Server.shutdown

async def hangs_after_a_while(self, counter):
    if counter == PATIENCE:  # ten a second: twice as long as it may show no life
        print("it turned", flush=True)
        {then}
    return await tick(self, counter)

async def takes_its_time(self, sockets=None):
    time.sleep(1.5)
    await shutdown(self, sockets)

uvicorn.Server.on_tick, uvicorn.Server.shutdown = hangs_after_a_while, takes_its_time
sys.argv = ["api", "--port", "0"]
server.main()
"""


@pytest.mark.parametrize(("then", "status"), [("time.sleep(60)", 70), ("self.should_exit = True", 0)])
def test_a_process_whose_event_loop_hangs_ends(then: str, status: int) -> None:
    """But neither one whose loop turns, nor one that takes its time to end."""
    command = [sys.executable, "-c", SERVER.format(then=then)]
    here = os.environ | {"REDIS_URL": "redis://127.0.0.1:1/0"}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=here)
    assert (ended.returncode, "it turned" in ended.stdout) == (status, True), ended.stderr
