"""Which engine a network gets."""

from typing import Final

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.cuda.presets import DEFAULT, find
from gpu_engine.engine import Engine
from gpu_engine.errors import EngineError, UnknownEngine
from gpu_engine.network import Network

CUDA_FROM_ARCS: Final = 2_000_000
"""Below this the CPU engine's cold solves are about as fast, and its small updates faster: no launch, no transfer."""


def open_engine(network: Network, choice: str = "auto") -> Engine:
    """An engine for the network. ``choice`` is "cpu", "cuda", "cuda:PRESET" (`gpu_engine.cuda.presets`), or "auto",
    which takes the CUDA engine for large networks if there is a device.

    Raises `UnknownEngine`, and `EngineError` if "cuda" is asked for and cannot be had.
    """
    kind, _, preset = choice.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (preset and kind != "cuda"):
        raise UnknownEngine(f"no engine {choice!r}; there are auto, cpu, cuda and cuda:PRESET")
    preset = preset or DEFAULT
    find(preset)
    if kind == "cpu" or (kind == "auto" and network.n_arcs < CUDA_FROM_ARCS):
        return CpuEngine(network)
    try:
        from gpu_engine.cuda.module import device_available

        if device_available():
            from gpu_engine.cuda.engine import CudaEngine

            return CudaEngine(network, preset)
        missing = "no CUDA device can be used"
    except ImportError:
        missing = "CuPy is not installed (extra gpu12 or gpu13)"
    if kind == "cuda":
        raise EngineError(f"the CUDA engine cannot run here: {missing}")
    return CpuEngine(network)
