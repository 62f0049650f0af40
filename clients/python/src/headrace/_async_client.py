"""The asynchronous client."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, Unpack

import httpx

from headrace import _calls as calls
from headrace import _exchange as exchange
from headrace import _records as records
from headrace import _results as results
from headrace._async_caller import AsyncCaller
from headrace._async_graph import AsyncGraph
from headrace._async_job import AsyncJob
from headrace._async_webhooks import AsyncWebhooks
from headrace._async_workers import AsyncWorkers
from headrace._columns import GraphColumns
from headrace._connecting import Verify
from headrace._exchange import Deadline, Retry
from headrace._mistakes import flag
from headrace._options import suggesting
from headrace._parsers import parser_of
from headrace._progress import upload_bar


@suggesting
class AsyncClient(AsyncWebhooks, AsyncWorkers):
    """A connection to a Headrace service; a context manager. Safe to share between tasks.

    Args:
        base_url: where the service listens; "host:port" is http. Without it `HEADRACE_URL` of the environment says
            where, and if that is not set it is http://127.0.0.1:8080.
        api_key: shown with each request; without it `HEADRACE_API_KEY` of the environment is, if set.
        timeout_s: how long the service may be silent, beyond the time it was asked to wait. An answer that has begun
            comes at 1 KiB a second at least beyond that.
        verify: False to trust any certificate, or a file of those to trust, or an `ssl.SSLContext`.
        retry: how calls are repeated when the connection is lost or the service is busy, and for how long.
        headers: sent with each request.
        transport: an httpx transport in place of the network.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        timeout_s: float = 60.0,
        verify: Verify = True,
        retry: Retry | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._caller = AsyncCaller(
            base_url, timeout_s, verify, exchange.patience(retry), exchange.with_key(headers, api_key), transport
        )

    def __repr__(self) -> str:
        return f"<AsyncClient {exchange.shown(self._caller.url)}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._caller.close()

    async def put_graph(
        self,
        name: str,
        graph: object = None,
        *,
        if_version: int | str | None = None,
        must_be_new: bool = False,
        timeout_s: float | None = None,
        progress: bool = False,
        **columns: Unpack[GraphColumns],
    ) -> AsyncGraph:
        """Create or replace a graph: from columns, a NetworkX graph, a square SciPy matrix or array, a
        table (a pandas DataFrame) or the path of a file.

        See `GraphColumns` for columns, `decimals` and `rounding`. Numbers travel as npz, labels and `Decimal` as JSON.
        `if_version` (a number, or `info.etag`) replaces this version alone, `must_be_new` none: else `VersionConflict`.
        """
        call = calls.put_graph(name, graph, columns, if_version, must_be_new)
        if not flag(progress, "progress"):
            return AsyncGraph(self._caller, await self._caller.command(call, timeout_s))
        deadline, n_bytes = Deadline.after(timeout_s), 0 if call.body is None else call.body.n_bytes
        with upload_bar(f"upload {name}", n_bytes) as on_sent:
            begun = await self._caller.submit(call, deadline, on_sent)
        job = AsyncJob(self._caller, begun, call.parse)
        return AsyncGraph(self._caller, await job._shown(f"load {name}", deadline))

    async def graph(self, name: str) -> AsyncGraph:
        """A graph the service has. Raises `UnknownGraph`."""
        return AsyncGraph(self._caller, await self._caller.ask(calls.graph(name)))

    async def delete_graph(
        self, name: str, *, if_version: int | str | None = None, timeout_s: float | None = None
    ) -> None:
        """Remove a graph and all its versions. Raises `UnknownGraph`, and `VersionConflict` at another version."""
        await self._caller.command(calls.delete_graph(name, if_version), timeout_s)

    async def graphs(self) -> tuple[results.GraphInfo, ...]:
        """All graphs, by name; asked for in pages of 1,000."""
        page = await self._caller.ask(calls.graphs())
        found = page.graphs
        while page.next is not None:
            page = await self._caller.ask(calls.graphs(page.next))
            found += page.graphs
        return found

    async def estimate(
        self,
        n_vertices: int,
        n_edges: int,
        *,
        n_links: int | None = None,
        n_limited: int = 0,
        n_twins: int = 0,
        n_two_way: int | None = None,
        infinite: bool = False,
        wide: bool = False,
        name_bytes: int = 0,
        coordinates: bool = False,
    ) -> records.Estimate:
        """What a graph of this size would need, and whether it fits.

        Args:
            n_links: pairs of vertices that edges join; by default each edge is the only one of its pair.
            n_limited: vertices that have a capacity; each is two inside.
            n_twins: undirected edges at such vertices; each is two inside.
            n_two_way: pairs with such a vertex that edges join both ways; by default as many as `n_twins`.
            infinite: some edge, or vertex with a capacity, has no limit.
            wide: some pair has 2**30 units or more between it.
            name_bytes: of edge ids and vertex labels, 8 for an integer, 16 and its bytes for a string.
            coordinates: vertices have x and y.
        """
        split = {"n_limited": n_limited, "n_twins": n_twins, "n_two_way": n_two_way}
        known = {"n_links": n_links, "infinite": infinite, "wide": wide, "name_bytes": name_bytes, **split}
        if flag(coordinates, "coordinates"):
            known["coordinates"] = True
        return await self._caller.ask(calls.estimate(n_vertices, n_edges, known))

    async def job(self, job_id: str) -> AsyncJob[Any]:
        """A job by its id, also one that another client started."""
        info = await self._caller.ask(calls.job(job_id))
        return AsyncJob(self._caller, info, parser_of(info.kind))

    async def jobs(self) -> tuple[records.JobInfo, ...]:
        """The latest jobs of the last hour, a hundred at most."""
        return await self._caller.ask(calls.jobs())

    async def status(self) -> records.ServiceStatus:
        """The service, its workers and its store."""
        return await self._caller.ask(calls.status())

    async def ready(self) -> bool:
        """Whether the service answers and can work; False also when nothing listens."""
        return await self._caller.drive(exchange.readiness())

    async def wait_ready(self, timeout_s: float | None = 60.0) -> None:
        """Wait until `ready`. Raises `WaitTimeout`."""
        await self._caller.drive(exchange.until_ready(Deadline.after(timeout_s)))
