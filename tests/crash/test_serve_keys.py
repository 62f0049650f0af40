"""`headrace serve` where others can reach it: refused without API keys, guarded with them to the last."""

import contextlib
import json
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
import redis
from headrace import Client, Unauthorised
from typer.testing import CliRunner

from service.cli.main import app
from service.host import redis_server
from service.settings import Settings
from service.store.keys_seen import FILE
from tests.serving import PATIENCE_S, eventually, serve_command, serving


def keys(data_dir: Path, *words: str) -> str:
    """The command's output."""
    done = CliRunner(env={"HEADRACE_DATA_DIR": str(data_dir)}).invoke(app, ["keys", *words])
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


def test_another_host_needs_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_API_KEY", raising=False)
    command = serve_command(tmp_path, "--host", "0.0.0.0", "--port", "0")
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1
    assert f"`headrace keys create NAME --scope admin --data-dir {tmp_path}`" in done.stderr
    token = keys(tmp_path, "create", "test", "--scope", "admin")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert "ready at http://0.0.0.0:" in process.stdout.readline()
        url = json.loads((tmp_path / "serve.lock").read_text())["url"].replace("0.0.0.0", "127.0.0.1")
        with Client(url, api_key=token) as client, Client(url) as stranger:
            assert client.graphs() == ()
            assert stranger.ready()
            with pytest.raises(Unauthorised):
                stranger.graphs()
        keys(tmp_path, "revoke", token.split("_")[1])  # on the Redis that runs
        shown = {"Authorization": f"Bearer {token}"}
        eventually(lambda: httpx.get(f"{url}/v1/graphs", headers=shown, trust_env=False).status_code == 401)
        assert httpx.get(f"{url}/v1/graphs", trust_env=False).status_code == 401
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.parametrize("where", ["embedded", "of its own"])
def test_a_redis_that_comes_back_empty_opens_nothing(where: str, tmp_path: Path) -> None:
    """While the service runs, and across its restart; until it is told to open, which needs no restart."""
    data_dir, other = tmp_path / "data", Settings(data_dir=tmp_path / "other", redis_url=None)
    environment = {} if where == "embedded" else {"HEADRACE_REDIS_URL": other.redis_location}
    redis_data = (data_dir if where == "embedded" else other.data_dir) / "redis"

    def headrace(*words: str) -> str:
        done = CliRunner(env=environment | {"HEADRACE_DATA_DIR": str(data_dir)}).invoke(app, ["keys", *words])
        assert done.exit_code == 0, done.output
        return done.stdout.strip()

    def answers(http: httpx.Client, code: int) -> None:
        eventually(lambda: http.get("/v1/graphs").status_code == code)

    with contextlib.ExitStack() as stack:
        if where != "embedded":
            stack.enter_context(redis_server.running(other))
        with serving(data_dir, environment=environment) as service:
            assert service.http.get("/v1/graphs").status_code == 200
            token = headrace("create", "test", "--scope", "admin")
            answers(service.http, 401)
            location = other.redis_location if environment else Settings(data_dir=data_dir).redis_location
            admin = redis.Redis.from_url(location.replace("headrace@", ""))
            admin.flushall()
            answers(service.http, 503)
            shown = {"Authorization": f"Bearer {token}"}
            refused = service.http.get("/v1/graphs", headers=shown)
            assert (refused.status_code, refused.json()["code"]) == (503, "worker_unavailable")
            admin.close()
    shutil.rmtree(redis_data)
    with contextlib.ExitStack() as stack:
        if where != "embedded":
            stack.enter_context(redis_server.running(other))
        service = stack.enter_context(serving(data_dir, environment=environment))
        for _ in range(3):
            assert service.http.get("/v1/graphs").status_code == 503
        headrace("forget", "--open")
        answers(service.http, 200)
        headrace("create", "test")
        answers(service.http, 401)


def test_keys_are_not_forgotten_by_accident(tmp_path: Path) -> None:
    keys(tmp_path, "create", "test")
    done = CliRunner(env={"HEADRACE_DATA_DIR": str(tmp_path)}).invoke(app, ["keys", "forget"])
    assert (done.exit_code, "--open" in done.stderr) == (2, True)
    assert len(keys(tmp_path, "list").splitlines()) == 1
    assert (tmp_path / FILE).exists()
    keys(tmp_path, "forget", "--open")
    assert not keys(tmp_path, "list")
    assert not (tmp_path / FILE).exists()
