"""A graph whose restore takes its worker down, as for want of memory, does not do so at each start for ever."""

from service.settings import Settings
from service.store.connection import connect
from service.store.keys import Keys
from service.store.restores import LATELY_S, MOST, Restores
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker
from tests.serving import eventually


def test_tries_are_counted_until_there_are_none_for_a_while(settings: Settings) -> None:
    with connect(settings) as client:
        keys = Keys(settings.redis_prefix)
        restores = Restores(client, keys)
        assert [restores.is_one_too_many("g") for _ in range(MOST + 2)] == [False] * MOST + [True] * 2
        assert not restores.is_one_too_many("other")
        assert 0 < client.ttl(keys.restores("g")) <= LATELY_S  # type: ignore[operator]


def test_a_graph_that_was_restored_over_and_over_is_left_until_it_is_asked_for(
    settings: Settings, caller: Caller, start_worker: StartWorker
) -> None:
    """The worker serves the others meanwhile, and is ready."""
    first = start_worker()
    caller.wait_ready()
    for name in ("fatal", "other"):
        caller.load(name, diamond().edges)
    value = caller.value("fatal")
    first.stop()
    with connect(settings) as client:
        client.set(Keys(settings.redis_prefix).restores("fatal"), MOST)
        second = start_worker()
        eventually(lambda: second.ready)
    assert [graph.name for graph in second.graphs.residents.all()] == ["other"]
    assert caller.value("fatal") == value
    assert {graph.name for graph in second.graphs.residents.all()} == {"fatal", "other"}
