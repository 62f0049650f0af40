"""`headrace serve` where others can reach it: refused without API keys, guarded with them to the last."""

import json
import subprocess
from pathlib import Path

import httpx
import pytest
from headrace import Client, Unauthorised
from typer.testing import CliRunner

from service.cli import app
from tests.serving import PATIENCE_S, eventually, serve_command


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
    assert "headrace keys create" in done.stderr
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
