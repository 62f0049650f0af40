"""Which engine a network gets."""

from typing import Final, Literal

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import Engine
from gpu_engine.errors import EngineError
from gpu_engine.network import Network

Choice = Literal["auto", "cpu", "cuda"]

CUDA_FROM_ARCS: Final = 2_000_000
"""Below this the CPU engine's cold solves are about as fast, and its small updates faster: no launch, no transfer."""


def open_engine(network: Network, choice: Choice = "auto") -> Engine:
    """An engine for the network; "auto" takes the CUDA engine for large ones if there is a device.

    Raises `EngineError` if "cuda" is asked for and cannot be had.
    """
    if choice == "cpu" or (choice == "auto" and network.n_arcs < CUDA_FROM_ARCS):
        return CpuEngine(network)
    try:
        from gpu_engine.cuda.module import device_available

        if device_available():
            from gpu_engine.cuda.engine import CudaEngine

            return CudaEngine(network)
        missing = "no CUDA device can be used"
    except ImportError:
        missing = "CuPy is not installed (extra gpu12 or gpu13)"
    if choice == "cuda":
        raise EngineError(f"the CUDA engine cannot run here: {missing}")
    return CpuEngine(network)
