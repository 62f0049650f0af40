"""Any API process will do: a caller reads through one what it wrote through another."""

from service.protocol import Kind, MaxFlowArgs, Operation, PatchArgs
from service.settings import Settings
from service.store.graphs import Catalogue
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker, code_of

ADD = PatchArgs(batch=[Operation(op="add", edges=[0, 1, 2, 3], amounts=["1"] * 4)])


def test_what_is_acknowledged_is_seen_by_all(caller: Caller, start_worker: StartWorker, settings: Settings) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    other = Caller(settings)
    try:
        for k in range(10):
            writer, reader = (caller, other) if k % 2 else (other, caller)
            version = writer.ask(Kind.PATCH, "g", ADD)["version"]
            assert version == k + 2
            assert reader.ask(Kind.MAX_FLOW, "g", MaxFlowArgs(min_version=version))["version"] == version
            info = reader.run(Catalogue(reader.dispatcher.client, reader.dispatcher.keys).get("g"))
            assert info is not None
            assert info.version == version
            ahead = MaxFlowArgs(min_version=version + 1)
            assert code_of(lambda reader=reader, ahead=ahead: reader.reply(Kind.MAX_FLOW, "g", ahead)) == (  # type: ignore[misc]
                "version_unavailable"
            )
    finally:
        other.close()


def test_a_key_counts_once_whichever_process_it_comes_through(
    caller: Caller, start_worker: StartWorker, settings: Settings
) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    other = Caller(settings)
    first = caller.reply(Kind.PATCH, "g", ADD, "key", "digest")
    again = other.reply(Kind.PATCH, "g", ADD, "key", "digest")
    assert (again.id, again.result_json) == (first.id, first.result_json)
    assert code_of(lambda: other.reply(Kind.PATCH, "g", ADD, "key", "other")) == "idempotency_conflict"
    other.close()
