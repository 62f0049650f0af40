"""Who follows a load hears what it is busy with."""

import threading
from typing import Any

import pytest

from gpu_engine.formats import pack
from service.protocol import Kind, LoadArgs
from service.store.blobs import Blobs
from service.store.keys import Keys
from service.worker.copies import Copies
from service.worker.running.task import Task
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker
from tests.serving import eventually


def test_a_load_tells_its_phase(caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its job, and in the events of the job."""
    begun, go_on, build = threading.Event(), threading.Event(), Copies.network
    phases: list[tuple[str, float | None]] = []
    at = Task.at

    def note(task: Task, phase: str, fraction: float | None = None) -> None:
        phases.append((phase, fraction))
        at(task, phase, fraction)

    def slow(copies: Copies, edges: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return build(copies, edges)

    monkeypatch.setattr(Copies, "network", slow)
    monkeypatch.setattr(Task, "at", note)
    start_worker()
    caller.wait_ready()
    blob = caller.run(caller.dispatcher.blobs.put(pack(diamond().edges)))
    job_id = caller.submit(Kind.LOAD, "g", LoadArgs(blob=blob))
    building = {"phase": "building", "fraction": None}

    def is_building() -> bool:
        job = caller.run(caller.dispatcher.job(job_id))
        return job is not None and job.progress == building

    try:
        eventually(is_building)
    finally:
        go_on.set()
    assert begun.is_set()

    async def events() -> list[tuple[str, Any]]:
        return [(event.event, event.data) async for event in caller.dispatcher.events(job_id, None)]

    heard = caller.run(events())
    assert ("progress", building) in heard
    assert heard[-1][0] == "done"
    assert phases == [("reading", 0.0), ("building", None), ("storing", None)]
    assert caller.value("g") == 5


def test_a_long_blob_tells_how_much_of_it_is_read(client: Any, keys: Keys) -> None:
    heard: list[float] = []
    blobs = Blobs(client, keys)
    name, _ = blobs.write([400 * b"x"], 60, chunk_bytes=100)
    assert blobs.get(name, heard.append) == 400 * b"x"
    assert heard == [0, 0.25, 0.5, 0.75]
