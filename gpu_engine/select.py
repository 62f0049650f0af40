"""Which engine a network gets, and where it is built."""

from functools import partial
from math import inf
from typing import Final, TypeAlias

import numpy as np

from gpu_engine.auto import AutoEngine
from gpu_engine.control import Control
from gpu_engine.cpu.carried import carried_by, part_of
from gpu_engine.cpu.decompose import distribute
from gpu_engine.cpu.drain import drain
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.cpu.near import Near
from gpu_engine.cpu.routes import straighten
from gpu_engine.cpu.scratch import SCRATCH
from gpu_engine.cuda.presets.schedules import DEFAULT, find
from gpu_engine.devices import NO_CUPY, NO_DEVICE, PEERS, devices
from gpu_engine.engine import Engine
from gpu_engine.errors import EngineError, UnknownEngine
from gpu_engine.footprint import Room, unlimited
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.pairs.solver import PairSolver, Seat, Values
from gpu_engine.partition.problem import Question
from gpu_engine.partition.resident import KeptPartition
from gpu_engine.types import UnitArray

Choice: TypeAlias = str
"""auto, cpu, cuda, cuda:PRESET for a name of `gpu_engine.cuda.presets`, or cuda-peers: all devices at once."""

KINDS: Final = ("auto", "cpu", "cuda", PEERS)

TRIAL_FROM_ARCS: Final = 50_000
"""In smaller networks a solve on the CPU takes less time than a launch on a device."""

BUILT_ON_DEVICE_FROM_EDGES: Final = 1_000_000

PARTITIONED_ON_DEVICE_FROM_ARCS: Final = 200_000
"""In smaller graphs the host brings a partition up to date in less time than a launch on a device takes."""

LONGEST_PARTITIONED_ROW: Final = 1 << 16
"""The longest row of a graph that is partitioned on a device. Eight threads visit a row, and a longer one takes them
milliseconds."""


def load_network(edges: EdgeList, choice: Choice = "auto") -> Network:
    """The network of these edges, its rows sorted on a device if there is one and it pays. Raises as `Network`."""
    if choice != "cpu" and edges.n_edges >= BUILT_ON_DEVICE_FROM_EDGES and not missing_device():
        from gpu_engine.cuda.build import build_csr
        from gpu_engine.cuda.memory import DeviceFull, free_unused

        try:
            return Network(edges, build_csr)
        except DeviceFull:
            pass  # the host has more memory, if less speed
        finally:
            free_unused()
    return Network(edges)


def open_engine(network: Network, choice: Choice = "auto", room: Room = unlimited) -> Engine:
    """An engine for the network: "cpu", "cuda", "cuda:PRESET" (`gpu_engine.cuda.presets`), "cuda-peers" or "auto".

    "auto" lets CPU and device try the first solve, unless the network is small or the device has no room for it, and
    again once a solve from zero takes much longer.

    "cuda-peers" gives all devices that the process sees a shard of the network each.

    Raises `UnknownEngine`, `EngineError` if "cuda" is asked for and cannot be had, and what ``room`` raises.
    """
    kind, preset = _parse(choice)
    if kind == "cpu" or (kind == "auto" and network.n_arcs < TRIAL_FROM_ARCS):
        return CpuEngine(network, room)
    missing = missing_device()
    if missing and kind in ("cuda", PEERS):
        raise EngineError(f"the CUDA engine cannot run here: {missing}")
    if missing:
        return CpuEngine(network, room)
    if kind == "cuda":
        return _cuda(network, room, preset)
    if kind == PEERS:
        return _on_peers(network, room)
    return AutoEngine(network, partial(CpuEngine, room=room), partial(_cuda, room=room), room)


def _parse(choice: Choice) -> tuple[str, str]:
    """Engine and preset. Raises `UnknownEngine`."""
    kind, _, preset = choice.partition(":")
    if kind not in KINDS or (preset and kind != "cuda"):
        raise UnknownEngine(f"no engine {choice!r}; there are {', '.join(KINDS)} and cuda:PRESET")
    find(preset or DEFAULT)
    return kind, preset or DEFAULT


def missing_device() -> str:
    """Why there is no CUDA device to use; empty if there is one."""
    try:
        from gpu_engine.cuda.module import device_available
    except ImportError:
        return NO_CUPY
    return "" if device_available() else NO_DEVICE


def why_not(choice: Choice) -> str:
    """Why this engine cannot be had here; empty if it can."""
    try:
        kind, _ = _parse(choice)
    except UnknownEngine as error:
        return error.message
    return missing_device() if kind in ("cuda", PEERS) else ""


def prepare(choice: Choice = "auto") -> str:
    """Make ready what `open_engine` may need, kernels compiled; returns what there is. Seconds, the first time ever."""
    if choice == "cpu" or missing_device():
        return "cpu"
    from gpu_engine.cuda.module import device_name

    if choice == PEERS:
        from gpu_engine.cuda.sharded.warm_up import warm_up

        warm_up(range(len(devices())))
        return f"{choice} ({', '.join(devices())})"
    from gpu_engine.cuda.warm_up import warm_up as warm_up_one

    warm_up_one()
    return f"{choice} ({device_name()})"


def device_label(choice: Choice = "auto", number: int | None = None) -> str:
    """The name of the device that `open_engine` would use, behind its ``number`` if known; empty without a device."""
    if choice == "cpu" or missing_device():
        return ""
    from gpu_engine.cuda.module import device_name

    if choice == PEERS and number is None:
        return ", ".join(devices())
    return device_name() if number is None else f"GPU {number}: {device_name()}"


def unit_flow(network: Network, path: list[int]) -> UnitArray:
    """int64[m]: one unit along these edge rows, made as `Engine.flow` makes one, but with no solve before it.

    For a start that compiles what answers need in a process of its own.
    """
    ends = Terminals.of(network.edge_tail(np.array(path[:1])), network.edge_head(np.array(path[-1:])))
    arcs = network.edge_arc[path]
    arc_flow = np.zeros(network.n_arcs, np.int64)
    arc_flow[arcs], arc_flow[network.reverse_arc[arcs]] = 1, -1
    straighten(network, ends, network.arc_capacity(), arc_flow, 1, Control())
    return distribute(network, arc_flow)


def run_rare_kernels(network: Network, terminals: Terminals) -> None:
    """Run what solves of small networks leave out, as there is nothing left to drain, to look around for, or few of:
    this is for a start, which compiles it."""
    n, capacity = network.n_vertices, network.arc_capacity()
    drain(network, capacity.copy(), np.zeros(n, np.int64), np.zeros(n, np.int8), Control(), SCRATCH, mirrored=True)
    desk = SCRATCH.desk(n)
    found = Near.look(network, capacity, terminals, inf, desk, SCRATCH.reach(n), Control())
    assert found is not None
    found.changes_with(network, np.zeros(1, np.int64))
    found.certificate(network, capacity, terminals, desk.ledger)
    few = carried_by(network, capacity, capacity)
    assert few is not None
    part_of(network, terminals, few)


def device_seat(solver: PairSolver, host: Seat, nbytes: int) -> Values:
    """A place where thousands of pairs are solved at once, for values alone, on at most ``nbytes`` of a device that is
    there. What takes too long there is solved by ``host``. Raises `OutOfMemory` if that is too little."""
    from gpu_engine.cuda.pairs import DeviceSeat

    return DeviceSeat(solver, host, nbytes)


def device_seat_nbytes(network: Network) -> int:
    """More than this of a device is of no use to a `device_seat`; 0 if there is no device."""
    if missing_device():
        return 0
    from gpu_engine.cuda.pairs import most_warps, seat_nbytes

    return seat_nbytes(network.n_vertices, network.n_arcs, most_warps())


def device_partition(question: Question) -> KeptPartition:
    """A partition on a device that is there."""
    from gpu_engine.cuda.partition.resident import CudaResidentPartition

    return CudaResidentPartition(question)


def device_partition_nbytes(network: Network, k: int) -> int:
    """What a `device_partition` takes of a device at most; 0 if there is none, or the network is no work for it."""
    if network.n_arcs < PARTITIONED_ON_DEVICE_FROM_ARCS or missing_device():
        return 0
    if int(np.diff(network.row_offsets).max()) > LONGEST_PARTITIONED_ROW:
        return 0
    from gpu_engine.cuda.partition.resident import device_partition_bytes

    return device_partition_bytes(network.n_vertices, network.n_edges, network.n_arcs, k)


def device_bytes(choice: Choice = "auto") -> int:
    """Memory of the device that `open_engine` would use, or of all of them; 0 if there is none."""
    if choice == "cpu" or missing_device():
        return 0
    from gpu_engine.cuda.memory import total_bytes

    if choice == PEERS:
        return sum(total_bytes(number) for number in range(len(devices())))
    return total_bytes()


def _cuda(network: Network, room: Room, preset: str = DEFAULT) -> Engine:
    from gpu_engine.cuda.engine import CudaEngine
    from gpu_engine.cuda.presets.engine import PresetEngine

    return CudaEngine(network, room) if preset == DEFAULT else PresetEngine(network, preset, room)


def _on_peers(network: Network, room: Room) -> Engine:
    from gpu_engine.cuda.sharded.engine import ShardedEngine

    return ShardedEngine(network, range(len(devices())), room)
