"""/status for people, out of what /status says in JSON."""

import base64
import hashlib
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from service.api.routes.status_page import _bytes, _span, status_page
from service.queue.models import RedisInfo, WorkerInfo
from service.store.catalogue import GraphInfo

NOW = datetime.now(UTC)
REDIS = RedisInfo(version="7.2.4", appendonly=True, fsync="everysec", used_memory_bytes=3 << 20, ping_ms=0.25)


def worker(**changes: Any) -> WorkerInfo:
    plain = {"name": "cpu-0", "pid": 1, "ready": True, "engine": "cpu", "graphs": 1, "bytes": 1, "beat_at": 0}
    seen = {"alive": True, "heartbeat_age_s": 0.1, "waiting": 0}
    return WorkerInfo.model_validate(plain | seen | changes)


def graph(name: str, age_s: float = 0) -> GraphInfo:
    times = {"created_at": NOW, "updated_at": NOW - timedelta(seconds=age_s)}
    size = {"n_vertices": 1234567, "n_edges": 4, "n_arcs": 8, "bytes": 5, "flow_states": 1}
    known = {"name": name, "version": 7, "decimals": 0, "engine": "cpu", "worker": "cpu-0", "source": 0, "sink": 3}
    return GraphInfo.model_validate(known | size | times)


def page(**changes: Any) -> str:
    content = {
        "version": "0.1.0",
        "api": {"pid": 1, "started_at": NOW.timestamp() - 100},
        "redis": REDIS,
        "workers": [worker()],
        "graphs": [graph("city")],
        "limits": {"max_body_bytes": 1 << 30, "max_wait_s": 300.0, "max_edges": 1000},
    }
    content["n_graphs"] = len(changes.get("graphs", content["graphs"]))
    return bytes(status_page(content | changes).body).decode()


def test_the_policy_allows_the_style_it_has_and_nothing_else() -> None:
    response = status_page({**_content(), "graphs": [], "n_graphs": 0})
    policy = response.headers["content-security-policy"]
    (style,) = re.findall(r"<style>(.*?)</style>", bytes(response.body).decode(), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert " style=" not in bytes(response.body).decode()
    assert "<script" not in bytes(response.body).decode()


def _content() -> dict[str, Any]:
    api = {"pid": 1, "started_at": NOW.timestamp()}
    return {
        "version": "0.1.0",
        "api": api,
        "redis": REDIS,
        "workers": [worker()],
        "graphs": [],
        "limits": {},
    }


def test_a_redis_that_evicts_is_marked() -> None:
    """It is nobody's wish: what it evicts are graphs, and what they need."""
    evicting = REDIS.model_copy(update={"maxmemory_bytes": 1 << 30, "maxmemory_policy": "allkeys-lru"})
    assert 'bad">1.0 GiB, allkeys-lru</td>' in page(redis=evicting)
    assert "noeviction" not in page(redis=REDIS.model_copy(update={"maxmemory_policy": "noeviction"}))


def test_a_redis_that_is_full_is_marked() -> None:
    """Its workers cannot renew their leases, and look as if they were at fault."""
    full = REDIS.model_copy(update={"maxmemory_bytes": REDIS.used_memory_bytes})
    assert 'bad">3.0 MiB, no writes</td>' in page(redis=full)
    assert "no writes" not in page(redis=REDIS.model_copy(update={"maxmemory_bytes": 1 << 30}))


def test_what_others_wrote_is_escaped() -> None:
    text = page(workers=[worker(name="<b>x</b>", engine='"&', notes=["<script>alert(1)</script>"])])
    assert "<b>" not in text
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        ([], "Not ready"),
        ([worker(alive=False)], "Not ready"),
        ([worker(ready=False)], "Not ready"),
        ([worker()], "Ready: 1 worker at work."),
        ([worker(), worker(name="b"), worker(name="c", alive=False)], "Ready: 2 workers at work, 1 not."),
    ],
)
def test_the_headline(workers: list[WorkerInfo], said: str) -> None:
    assert said in page(workers=workers)


def test_bad_news_stands_out() -> None:
    text = page(workers=[worker(alive=False)], redis=REDIS.model_copy(update={"appendonly": False}))
    assert '<td class="bad">away</td>' in text
    assert '<td class="bad">off</td>' in text


def test_the_latest_graphs_come_first_and_not_all_of_them() -> None:
    listed = [graph(f"g{i}", age_s=i) for i in reversed(range(3))]
    text = page(graphs=listed, n_graphs=1234)
    assert text.index("<td>g0</td>") < text.index("<td>g1</td>")
    assert "Graphs: 1,234, the first 3 by name shown" in text
    assert "Graphs: 3</h2>" in page(graphs=listed)
    assert "1,234,567" in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0.0 s"), (4.21, "4.2 s"), (60, "1 min"), (200, "3 min 20 s"), (7300, "2 h 1 min"), (190_800, "2 d 5 h")],
)
def test_spans(seconds: float, text: str) -> None:
    assert _span(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 50, "1,024.0 TiB")])
def test_bytes(count: int, text: str) -> None:
    assert _bytes(count) == text
