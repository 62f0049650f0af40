"""Which engine a network gets."""

from typing import Literal

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import Engine
from gpu_engine.errors import EngineError
from gpu_engine.network import Network

Choice = Literal["auto", "cpu", "cuda"]


def open_engine(network: Network, choice: Choice = "auto") -> Engine:
    """An engine for the network; "auto" takes the best there is. Raises `EngineError` for one that is not there."""
    if choice == "cuda":
        raise EngineError("there is no CUDA engine in this build; choose auto or cpu")
    return CpuEngine(network)
