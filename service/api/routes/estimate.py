"""What a graph would take, from its counts alone, and whether there is room."""

from collections.abc import Iterable, Sequence

from gpu_engine.footprint import Counts, Footprint, needs_of, on_cpu, on_cuda, on_split
from gpu_engine.networks.coordinates import VERTEX_BYTES
from service.models.graphs import EstimateBody, EstimateInfo, MemoryInfo
from service.queue.models import WorkerInfo


def estimate(body: EstimateBody, workers: Sequence[WorkerInfo]) -> EstimateInfo:
    """What the CPU engine would take on the host, and the CUDA engine on the device.

    It fits if a worker has room for the graph, a flow state and a solve beside what it holds, nothing spilled.
    """
    n_arcs = 2 * (body.n_edges if body.n_links is None else body.n_links)
    counts = Counts(body.n_vertices, body.n_edges, n_arcs, body.infinite, body.wide)
    places = VERTEX_BYTES * body.n_vertices if body.coordinates else 0
    limits = 12 * body.n_limited  # capacities of vertices
    own = Footprint(body.name_bytes + body.n_edges + limits + places)  # names, closed edges
    split = body.n_limited, body.n_twins, body.n_twins if body.n_two_way is None else body.n_two_way
    cpu, cuda = (on_split(needs, counts, *split) for needs in (on_cpu, on_cuda))
    ready = [(worker, _free(worker)) for worker in workers if worker.alive and worker.ready]

    def needed(engine: str) -> Footprint:
        return own + on_split(needs_of(engine), counts, *split).of_one_state

    fits = any(needed(worker.engine).within(free) for worker, free in ready)
    with_device = [(worker.engine, free) for worker, free in ready if worker.device_budget_bytes]
    on_device = any(needed(_on_device(engine)).within(free) for engine, free in with_device)
    return EstimateInfo(
        host=MemoryInfo(
            bytes=(own + cpu.network).host,
            bytes_per_flow_state=cpu.state.host,
            scratch_bytes=cpu.scratch.host,
            fits=fits,
            free_bytes=_most(free.host for _, free in ready),
        ),
        device=MemoryInfo(
            bytes=cuda.network.device,
            bytes_per_flow_state=cuda.state.device,
            scratch_bytes=cuda.scratch.device,
            fits=on_device,
            free_bytes=_most(free.device for _, free in ready),
        ),
    )


def _on_device(engine: str) -> str:
    """The engine that a worker has on its device: "auto" has the one for a single device."""
    return engine if engine.startswith("cuda") else "cuda"


def _free(worker: WorkerInfo) -> Footprint:
    return Footprint(worker.budget_bytes - worker.bytes, worker.device_budget_bytes - worker.device_bytes)


def _most(free_bytes: Iterable[int]) -> int:
    return max([0, *free_bytes])
