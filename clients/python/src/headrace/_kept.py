"""Graphs that are uploaded by the way, for functions of other libraries: each is deleted when it is used no more.

The address of the service and the key are those of the environment, as of the shell commands.
"""

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Any, TypeAlias, TypeVar
from uuid import uuid4

import numpy as np

from headrace._client import Client
from headrace._columns import GraphColumns
from headrace._errors import ConnectionFailed, HeadraceError, UnknownGraph
from headrace._exchange import Retry
from headrace._graph import Graph

T = TypeVar("T")

PREFIX = "HEADRACE_KEPT_PREFIX"
"""The variable with what the names of all such graphs begin with: for a key that is bound to a prefix."""
KEPT_GRAPHS = 8
LAST_CALLS = Retry(attempts=1, patience_s=5)
"""A process that ends does not wait for a service that has gone."""
LAST_CALLS_S = 5.0


@dataclass(frozen=True, slots=True)
class Content:
    """A graph for `put_graph`, and what it is called by its content."""

    columns: GraphColumns
    digest: str

    @classmethod
    def of(cls, columns: GraphColumns) -> "Content":
        found = blake2b(digest_size=10)
        for name, column in columns.items():
            found.update(name.encode())
            if isinstance(column, np.ndarray):
                found.update(f"{column.dtype}{column.shape}".encode() + column.tobytes())
            else:
                found.update(repr(column).encode())
        return cls(columns, found.hexdigest())


Resident: TypeAlias = tuple[Graph, "weakref.WeakValueDictionary[int, Any]"]
"""A graph in the service, and what it was made of here, by `id`: not everything has a hash."""


class Kept:
    """The graphs that this process has uploaded for one library, by their content, the last used ones.

    Each belongs to the objects that had this content. When all of them are gone, it is deleted at the next call; not
    at once, since Python collects its garbage anywhere, and so in the middle of another request. At the end of the
    process all that are left are deleted. Names have a part that no other process has: none deletes what another uses.
    """

    def __init__(self, library: str, url: str | None, key: str | None) -> None:
        self._client = Client(url, api_key=key)
        self._prefix = f"{os.environ.get(PREFIX, '')}{library}-{uuid4().hex[:8]}-"
        self._lock = threading.Lock()
        self._graphs: OrderedDict[str, Resident] = OrderedDict()
        weakref.finalize(self, _end, self._client, self._graphs, os.getpid(), url, key)

    def ask(self, owner: Any, content: Content, question: Callable[[Graph], T], at_most: int = KEPT_GRAPHS) -> T:
        """The answer about this content, which is uploaded if it is not there.

        It is uploaded again if it was deleted meanwhile: by another thread, for want of room, or by somebody else.
        """
        with _explained():
            try:
                return question(self._resident(owner, content, at_most))
            except UnknownGraph:
                self._forget(content)
            return question(self._resident(owner, content, at_most))

    def __len__(self) -> int:
        return len(self._graphs)

    def _resident(self, owner: Any, content: Content, at_most: int) -> Graph:
        with self._lock:
            if content.digest not in self._graphs:
                graph = self._client.put_graph(self._prefix + content.digest, **content.columns)
                self._graphs[content.digest] = graph, weakref.WeakValueDictionary()
            graph, owners = self._graphs[content.digest]
            owners[id(owner)] = owner
            self._graphs.move_to_end(content.digest)
            self._tidy(at_most)
            return graph

    def _tidy(self, at_most: int) -> None:
        """Delete what nobody owns, and what has not been asked for longest; never the last used one."""
        *older, _ = self._graphs
        for digest in older:
            if not self._graphs[digest][1] or len(self._graphs) > at_most:
                graph, _ = self._graphs.pop(digest)
                with suppress(HeadraceError):
                    self._client.delete_graph(graph.name)

    def _forget(self, content: Content) -> None:
        with self._lock:
            self._graphs.pop(content.digest, None)


def kept(library: str) -> Kept:
    """The graphs of this process in the service that the environment names now."""
    url, key = (os.environ.get(name) or None for name in ("HEADRACE_URL", "HEADRACE_API_KEY"))
    return _kept_of(library, os.getpid(), url, key)


@cache
def _kept_of(library: str, _pid: int, url: str | None, key: str | None) -> Kept:
    """A child process gets connections and graphs of its own."""
    return Kept(library, url, key)


@contextmanager
def _explained() -> Iterator[None]:
    """What to do about a service that cannot be reached is said where it is not."""
    try:
        yield
    except ConnectionFailed as error:
        raise ConnectionFailed(
            f"{error}. HEADRACE_URL names the service, and HEADRACE_API_KEY is the key: set them, or start a"
            " service on this machine with `headrace serve`"
        ) from error


def _end(client: Client, graphs: OrderedDict[str, Resident], pid: int, url: str | None, key: str | None) -> None:
    """Delete what is left and close the connections; a child that was forked leaves those of its parent alone."""
    if os.getpid() != pid:
        return
    client.close()
    if graphs:
        with suppress(HeadraceError), Client(url, api_key=key, retry=LAST_CALLS, timeout_s=LAST_CALLS_S) as last:
            for graph, _ in graphs.values():
                last.delete_graph(graph.name, timeout_s=LAST_CALLS_S)
