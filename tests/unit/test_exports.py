"""Files of whole graphs on the worker's side: what is kept of them, and what one may take."""

from typing import Any

import pytest

from gpu_engine.formats import read_npz, unpack
from service.protocol import ExportArgs, Kind, LoadArgs
from service.store.blobs import Blobs
from service.store.keys import Keys
from service.worker.running import results
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker, code_of


def exported(caller: Caller, **args: Any) -> dict[str, Any]:
    return caller.ask(Kind.EXPORT, "g", ExportArgs(**args))


def test_what_becomes_another_graph_is_not_dropped_with_old_results(
    caller: Caller, start_worker: StartWorker, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker drops its oldest results for want of room; what a graph has adopted since is no result."""
    monkeypatch.setattr(results, "RESULTS_BYTES", 1)
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    packed = exported(caller, format="packed")
    caller.ask(Kind.LOAD, "copy", LoadArgs(blob=packed["blob"], if_match="new"))
    again = LoadArgs(blob=packed["blob"], if_match="new")
    assert code_of(lambda: caller.reply(Kind.LOAD, "copy", again)) == "already_exists"
    file = exported(caller, format="npz")
    exported(caller, format="npz")
    stored = Blobs(client, keys)
    assert client.exists(keys.blob(file["blob"])) == 0
    edges = unpack(stored.get(packed["blob"]))
    assert edges.capacity.tolist() == diamond().edges.capacity.tolist()
    assert client.ttl(keys.blob(packed["blob"])) == -1, "it is the copy's"


def test_a_file_expires(caller: Caller, start_worker: StartWorker, client: Any, keys: Keys) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    for kind in ("npz", "packed"):
        made = exported(caller, format=kind)
        assert 0 < client.ttl(keys.blob(made["blob"])) <= 3600
    file = exported(caller)
    content = Blobs(client, keys).get(file["blob"])
    assert len(content) == file["bytes"]
    assert read_npz(content).capacity.tolist() == diamond().edges.capacity.tolist()


def test_what_writing_takes_is_asked_for(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from service.worker.questions import export

    worker = start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    monkeypatch.setattr(export, "EDGE_BYTES", worker.graphs.residents.budget.host)
    assert code_of(lambda: caller.reply(Kind.EXPORT, "g", ExportArgs())) == "out_of_memory"
    monkeypatch.undo()
    assert exported(caller)["version"] == 1
