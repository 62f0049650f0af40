"""A session of a browser on a real service: at every API process, after their restart, and no longer than its key."""

import os
import signal
from pathlib import Path

import httpx
from typer.testing import CliRunner

from service.api.guards.access import STALE_S
from service.cli.main import app
from tests.serving import another_api, eventually, serving

HTML = {"Accept": "text/html"}


def keys(data_dir: Path, *words: str) -> str:
    done = CliRunner(env={"HEADRACE_DATA_DIR": str(data_dir)}).invoke(app, ["keys", *words])
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


def sees(http: httpx.Client, cookie: str) -> bool:
    """Whether the browser with this cookie sees the page of the service's state."""
    page = http.get("/status", headers=HTML | {"Cookie": cookie})
    assert page.status_code in (200, 401, 503)
    return page.status_code == 200 and "Workers" in page.text


def test_one_session_at_all_processes_and_after_their_restart(tmp_path: Path) -> None:
    token = keys(tmp_path, "create", "dispatch", "--scope", "admin")
    with serving(tmp_path) as service, another_api(tmp_path) as other:
        own = {"Origin": f"http://{httpx.URL(service.url).netloc.decode()}"}
        sent = service.http.post("/login", data={"key": token, "next": "/status"}, headers=own)
        assert sent.status_code == 303, sent.text
        cookie = sent.headers["set-cookie"].partition(";")[0]
        service.http.cookies.clear()
        assert sees(service.http, cookie)
        assert sees(other, cookie), "at once, at the other process too"
        os.kill(service.children()["api"], signal.SIGKILL)
        eventually(lambda: sees(service.http, cookie))
        assert not sees(other, cookie[:-1] + ("A" if cookie[-1] != "A" else "B"))

        second = service.http.post("/login", data={"key": token}, headers=own).headers["set-cookie"].partition(";")[0]
        service.http.cookies.clear()
        left = service.http.post("/logout", headers=own | {"Cookie": second})
        assert left.status_code == 303
        assert [sees(other, shown) for shown in (second, cookie)] == [False, True], "the one that was logged out"

        assert STALE_S <= 5
        keys(tmp_path, "revoke", token.split("_")[1])
        eventually(lambda: not sees(service.http, cookie) and not sees(other, cookie))
