"""The engine that a choice names, where there is no device."""

import pytest

from gpu_engine import select
from gpu_engine.cuda.presets.schedules import DEFAULT, PRESETS, find
from gpu_engine.errors import EngineError, UnknownEngine
from gpu_engine.generators import generate
from gpu_engine.networks.network import Network
from gpu_engine.select import open_engine


@pytest.mark.parametrize(
    "choice", ["gpu", "", "cuda:nope", "cpu:ecl", "auto:ecl", "ecl", "cuda:ecl:ecl", "cuda-peers:ecl"]
)
def test_unknown_choices_are_refused_with_the_names_there_are(choice: str) -> None:
    network = Network(generate("grid", seed=1, rows=3, columns=3))
    with pytest.raises(UnknownEngine, match="there are") as refused:
        open_engine(network, choice)
    assert refused.value.code == "unknown_engine"


@pytest.mark.parametrize("choice", ["cuda", "cuda-peers"])
def test_what_takes_a_device_is_refused_where_there_is_none(choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "missing_device", lambda: "no CUDA device can be used")
    with pytest.raises(EngineError, match="no CUDA device"):
        open_engine(Network(generate("grid", seed=1, rows=3, columns=3)), choice)


@pytest.mark.parametrize("choice", ["auto", "cpu"])
def test_small_networks_stay_on_the_host(choice: str) -> None:
    assert open_engine(Network(generate("grid", seed=1, rows=3, columns=3)), choice).name == "cpu"


def test_every_preset_has_a_schedule_that_says_where_it_is_from() -> None:
    assert find(DEFAULT) is None
    for name in PRESETS:
        preset = find(name)
        assert preset is not None
        assert preset.schedule.__doc__
