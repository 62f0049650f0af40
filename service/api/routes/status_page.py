"""/status for people: one page made on the server."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from starlette.responses import HTMLResponse, Response

from service.api.replies.login_page import LOG_OUT
from service.api.replies.pages import VARIES, WIDE, headers_of, page_of
from service.errors import DATA_GONE
from service.queue.models import RedisInfo, WorkerInfo
from service.store.catalogue import GraphInfo

REFRESH_S: Final = 5
GRAPHS_SHOWN: Final = 200
"""Graphs that /status lists, by name: it is to be answered while there are very many, and everything is slow."""
STYLE: Final = (
    WIDE
    + """
:root { color-scheme: light dark; --line: #8884; --dim: #666; --good: #187a3c; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --dim: #aaa; --good: #5fce8a; --bad: #ff8a80; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.05rem; margin: 2rem 0 .4rem; }
.dim { color: var(--dim); } .good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem 1.25rem .3rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 500; color: var(--dim); } th:last-child, td:last-child { padding-right: 0; }
.n { text-align: right; } .notes { white-space: normal; }
"""
)

Cell = str | int

OF_WORKERS: Final = (
    *("name", "state", "engine", "#graphs", "#memory", "#device"),
    *("#commands waiting", "#oldest", "#heartbeat"),
)
OF_REDIS: Final = ("version", "append-only file", "fsync", "#memory", "#limit", "#ping")
OF_GRAPHS: Final = (
    *("name", "worker", "#version", "#vertices", "#edges"),
    *("#memory", "#device", "#flow states", "#updated"),
)
"""The heads of the columns of each table; "#" stands before those of numbers."""


def status_page(content: Mapping[str, Any], key_id: str | None = None) -> Response:
    """The page for what /status answers in JSON; the graph that was updated last comes first.

    `key_id`: of the API key that somebody is logged in with, who may log out here.
    """
    now = datetime.now(UTC)
    redis: RedisInfo = content["redis"]
    workers: Sequence[WorkerInfo] = content["workers"]
    graphs: Sequence[GraphInfo] = content["graphs"]
    latest = sorted(graphs, key=lambda graph: graph.updated_at, reverse=True)
    left_out = f", the first {len(graphs)} by name shown" if content["n_graphs"] > len(graphs) else ""
    started = now.timestamp() - content["api"]["started_at"]
    parts = (
        f"<h1>Headrace {escape(content['version'])}</h1>",
        _headline(workers),
        f'<p class="dim">This API process has been up for {_span(started)}. As of {now:%Y-%m-%d %H:%M:%S} UTC; '
        f'reloads every {REFRESH_S} s. The graphs themselves: <a href="console">the console</a>.</p>',
        "<h2>Workers</h2>",
        _table(OF_WORKERS, (_worker(worker) for worker in workers), "No worker has ever reported."),
        *(_note(worker.name, note) for worker in workers for note in worker.notes),
        "<h2>Redis</h2>",
        f'<p class="bad">Not durable: {escape(DATA_GONE)}.</p>' if redis.data_gone else "",
        _table(OF_REDIS, [_redis(redis)], "Redis is away."),
        f"<h2>Graphs: {content['n_graphs']:,}{left_out}</h2>",
        _table(OF_GRAPHS, (_graph(graph, now) for graph in latest), "No graph is loaded."),
        "<h2>Limits</h2>",
        _table(("limit", "#value"), [(_limit_name(n), _limit(n, value)) for n, value in content["limits"].items()], ""),
        '<p class="dim">Programs get this as JSON. The API: <a href="docs">/docs</a>. Figures for Prometheus: '
        '<a href="metrics">/metrics</a>.</p>',
        "" if key_id is None else f'<p class="dim">Logged in with the key {escape(key_id)}.</p>{LOG_OUT}',
    )
    reload = f'<meta http-equiv="refresh" content="{REFRESH_S}">'
    page = page_of("Headrace status", STYLE, "\n".join(parts), reload)
    return HTMLResponse(page, headers=headers_of(STYLE, has_form=key_id is not None) | VARIES)


def _headline(workers: Sequence[WorkerInfo]) -> str:
    ready = sum(worker.alive and worker.ready for worker in workers)
    if not ready:
        return '<p class="bad">Not ready: no worker takes commands.</p>'
    absent = len(workers) - ready
    kind, text = ("bad", f", {absent} not") if absent else ("good", "")
    return f'<p class="{kind}">Ready: {_plural(ready, "worker")} at work{text}.</p>'


def _worker(worker: WorkerInfo) -> Sequence[Cell]:
    state = "ready" if worker.ready else "starting"
    if worker.compiling is not None:
        state = f"compiling its kernels, {worker.compiling.done} of {worker.compiling.of}"
    return (
        worker.name,
        state if worker.alive else "!away",
        worker.engine,
        worker.graphs,
        _share(worker.bytes, worker.budget_bytes),
        _share(worker.device_bytes, worker.device_budget_bytes),
        worker.waiting,
        _span(worker.oldest_s) if worker.waiting else "-",
        f"{_span(worker.heartbeat_age_s)} ago",
    )


def _redis(redis: RedisInfo) -> Sequence[Cell]:
    durable = {True: "on", False: "!off", None: "not told"}[redis.appendonly]
    limit = _bytes(redis.maxmemory_bytes) if redis.maxmemory_bytes else "none"
    if redis.maxmemory_policy not in (None, "noeviction"):
        limit = f"!{limit}, {redis.maxmemory_policy}"
    elif redis.maxmemory_bytes and redis.used_memory_bytes >= redis.maxmemory_bytes:
        limit = f"!{limit}, no writes"
    ping = f"{redis.ping_ms:.2f} ms"
    return redis.version, durable, redis.fsync or "not told", _bytes(redis.used_memory_bytes), limit, ping


def _graph(graph: GraphInfo, now: datetime) -> Sequence[Cell]:
    updated = f"{_span((now - graph.updated_at).total_seconds())} ago"
    on_device = _bytes(graph.device_bytes) if graph.device_bytes else "-"
    size = (graph.n_vertices, graph.n_edges, _bytes(graph.bytes), on_device, graph.flow_states)
    return graph.name, graph.worker, graph.version, *size, updated


def _note(worker: str, note: str) -> str:
    return f'<p class="bad notes">{escape(worker)}: {escape(note)}</p>'


def _table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], if_empty: str) -> str:
    """A column named `#...` is one of figures, on the right; a cell `!...` is bad news."""
    figures = [column.startswith("#") for column in columns]
    head = "".join(_cell("th", column.lstrip("#"), figure) for column, figure in zip(columns, figures, strict=True))
    body = "".join(
        f"<tr>{''.join(_cell('td', cell, figure) for cell, figure in zip(row, figures, strict=True))}</tr>"
        for row in rows
    )
    if not body:
        return f'<p class="dim">{escape(if_empty)}</p>'
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(tag: str, value: Cell, figure: bool) -> str:
    text = f"{value:,}" if isinstance(value, int) else value
    classes = " ".join((["n"] if figure else []) + (["bad"] if text.startswith("!") else []))
    opening = f'{tag} class="{classes}"' if classes else tag
    return f"<{opening}>{escape(text.lstrip('!'))}</{tag}>"


def _limit_name(name: str) -> str:
    return name.removesuffix("_bytes").removesuffix("_s").replace("_", " ")


def _limit(name: str, value: float) -> str:
    if name.endswith("_bytes"):
        return _bytes(int(value))
    return _span(value) if name.endswith("_s") else f"{value:,}"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _bytes(count: int) -> str:
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.0f} B" if units[0] == "B" else f"{value:,.1f} {units[0]}"


def _share(count: int, budget: int) -> str:
    return f"{_bytes(count)} of {_bytes(budget)}" if budget else "-"


def _span(seconds: float) -> str:
    """The two largest units at most: 4.2 s, 3 min 20 s, 2 d 5 h."""
    if seconds < 60:
        return f"{max(0.0, seconds):.1f} s"
    whole = int(seconds)
    for size, unit, part, part_unit in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {part_unit}" if rest else "")
    return f"{whole} s"
