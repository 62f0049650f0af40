"""The memory that engines take for a network, from its counts alone: the one place where their arrays are added up.

The arrays are those of `gpu_engine.networks.network`, of the flow states in `gpu_engine.cpu.engine` and
`gpu_engine.cuda.engine`, and of `gpu_engine.cpu.scratch` and `gpu_engine.cuda.launch.drain`; tests hold the sums to
them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes of host and device memory."""

    host: int = 0
    device: int = 0

    def __add__(self, other: "Footprint") -> "Footprint":
        return Footprint(self.host + other.host, self.device + other.device)

    def __sub__(self, other: "Footprint") -> "Footprint":
        return Footprint(self.host - other.host, self.device - other.device)

    def within(self, budget: "Footprint") -> bool:
        """Whether neither kind of memory exceeds the budget."""
        return self.host <= budget.host and self.device <= budget.device


Room = Callable[[Footprint], None]
"""Engines call it before they allocate this much, and with a negative footprint after they have freed memory. It raises
`OutOfMemory` if there is no room."""


def unlimited(needed: Footprint) -> None:
    """A `Room` that refuses nothing."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a network. An arc is one direction of a link; edges between two vertices share one link."""

    n_vertices: int
    n_edges: int
    n_arcs: int
    infinite: bool = False
    """Some edge has no limit."""
    wide: bool = False
    """On a device, residuals are int64: some link has 2**30 units or more in both directions together, or the network
    that much in all and an edge without limit."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The memory of one engine on one network. ``network`` and ``state`` (each flow state) are held at rest;
    ``scratch`` is the working memory while one flow state is solved and its answer proven, ``flow`` and ``cut`` while
    they are read from it, with what is given back."""

    network: Footprint
    state: Footprint
    scratch: Footprint
    flow: Footprint
    cut: Footprint
    fork: Footprint
    """A fork while an overlay is solved, the network included."""
    fork_on_host: Footprint
    """The same where no memory of a device is to be taken."""
    trial: Footprint
    """What each thread takes that tries changes on a fork."""

    @property
    def of_one_state(self) -> Footprint:
        """The memory that any answer takes."""
        return self.network + self.state + self.scratch


WORKING_BYTES: Final = 60
"""Working memory a vertex in `gpu_engine.cpu.scratch`; each solving thread keeps it for its largest network."""

LOOK_BYTES: Final = 28
"""Working memory a vertex of `gpu_engine.cpu.near`, which each solving thread keeps likewise."""

COMPONENT_BYTES: Final = 24
"""Working memory a vertex of `gpu_engine.cpu.bottlenecks`, where there are several minimum cuts."""


def most_roads(n_vertices: int, n_arcs: int) -> int:
    """A flow on more roads and terminals than these (`gpu_engine.cpu.roads`) is not made shorter: they do not fit.

    With its share of a search a road takes 192 bytes, and what tells roads from other links 2 an arc and 6 a vertex:
    less than what is given back before.
    """
    return 256 + n_vertices // 7 + n_arcs // 32


def network_bytes(counts: Counts) -> int:
    """`Network.nbytes` on the host without names, edges all directed or all undirected.

    Per edge capacity 8 and arc 4; per arc head 4 and reverse 4; per vertex an offset 4.
    """
    return 12 * counts.n_edges + 8 * counts.n_arcs + 4 * (counts.n_vertices + 1) + 1


@lru_cache(64)
def on_cpu(counts: Counts) -> Needs:
    """Network: also per arc its capacity 8. State: per arc residual 8; per vertex excess 8, role and side 2,
    and as much again for what was proven of them.

    Scratch: `WORKING_BYTES`, `LOOK_BYTES`, and for the proof per vertex supply 8, role and marks 2. If some edge has no
    limit, first for the search of what it makes free: per arc a flag 1, per vertex a tree arc 4, a queue 4 and its role
    1; and if some edges join the same vertices besides, per arc capacity 8.

    Flow: per arc residual and what goes back 16; per vertex excess and caps 16, roles, sides and tree 20; per
    edge its flow and whether it is undirected 9. What is given back is enough for a shorter flow, and unless there are
    many parallel edges for its proof: per edge a row and an end 12.

    Cut: per vertex marks and queues 23; per arc a mark; per edge a row 4, and 20 if all are cut.

    Trial: per arc capacities and residual 24; per vertex excesses 16, sides 2, a list 4; per edge its capacity 8.
    """
    n, m, arcs = counts.n_vertices, counts.n_edges, counts.n_arcs
    proof = 10 * n
    if counts.infinite:
        proof = max(proof + (0 if arcs == 2 * m else 8 * arcs), arcs + 9 * n)
    network, state = network_bytes(counts) + 8 * arcs, 8 * arcs + 20 * n
    scratch = proof + (WORKING_BYTES + LOOK_BYTES) * n
    return Needs(
        network=Footprint(network),
        state=Footprint(state),
        scratch=Footprint(scratch),
        flow=Footprint(max(16 * arcs + (WORKING_BYTES + 36) * n, 12 * m) + 9 * m),
        cut=Footprint(23 * n + arcs + 24 * m),
        fork=Footprint(network + 2 * state + scratch),
        fork_on_host=Footprint(network + 2 * state + scratch),
        trial=Footprint(24 * arcs + 8 * m + (WORKING_BYTES + 22) * n),
    )


@lru_cache(64)
def on_cuda(counts: Counts) -> Needs:
    """Network: also, if some edge has no limit, a flag of 1 per arc. On the device: per edge capacity 8, per vertex an
    offset 4. State: per arc a record of 16 (24 if wide), per edge its arc 4; per vertex excess 8, role and side 2,
    label 4. Scratch: that of the drains or that of the proof, the larger one. Flow and cut: on the host as the CPU
    engine has them, and a copy of the state with the arcs' capacities, which on the device is put in the network's
    order first; a cut may take a drain's memory there instead, per vertex a label and marks 8, and per edge a mark and
    what lists the marked ones 25. Fork: on the device the state twice and capacities, beside what a solve, a new state
    or a copy to the host takes; on the host the flow that trials begin with. One on the host has the state there once
    more while it is made.
    """
    n, m, arcs = counts.n_vertices, counts.n_edges, counts.n_arcs
    proof = (8 if counts.wide else 4) * arcs + 16 * n
    host, width = on_cpu(counts), 8 if counts.wide else 4
    copy = host.state + Footprint(8 * arcs, ((4 if counts.infinite else 2) * width + 4) * arcs + (32 + width) * m)
    state, scratch = (24 if counts.wide else 16) * arcs + 4 * m + 14 * n, max(drain_bytes(n, arcs), proof)
    beside = max(scratch, arranging_bytes(n, arcs), copy.device)
    return Needs(
        network=Footprint(network_bytes(counts) + (arcs if counts.infinite else 0), 8 * m + 4 * (n + 1) + 1),
        state=Footprint(0, state),
        scratch=Footprint(0, scratch),
        flow=host.flow + copy,
        cut=host.cut + replace(copy, device=max(copy.device, drain_bytes(n, arcs) + 8 * n + 25 * m)),
        fork=Footprint(network_bytes(counts) + copy.host + host.state.host, 8 * m + 2 * state + beside),
        fork_on_host=host.fork_on_host + host.state,
        trial=host.trial,
    )


@lru_cache(64)
def on_shards(counts: Counts, shards: int = 8) -> Needs:
    """Of `gpu_engine.cuda.sharded`, whose residuals are taken to be wide; device memory is that of all devices.

    Network: per arc its capacity 8, per vertex an offset 4. State: per arc a record of 24, per vertex excess 8, role
    and side 2, and its role 1 on the host. Scratch: per vertex a label 4 in each shard, a list 8, what is left 8, the
    lowest label seen 4; per piece of a row 8; on the host, for a complete proof, per arc its capacity 8. Flow and cut:
    on the host as the CPU engine has them, and a copy of the state. Forks are on the host.
    """
    n, arcs = counts.n_vertices, counts.n_arcs
    host = on_cpu(counts)
    copy = host.state + Footprint(8 * arcs)
    return Needs(
        network=Footprint(network_bytes(counts), 8 * arcs + 4 * (n + shards)),
        state=Footprint(n, 24 * arcs + 10 * n),
        scratch=Footprint(host.scratch.host + 8 * arcs, (20 + 4 * shards) * n + arcs // 16 + 4096 * shards),
        flow=host.flow + copy,
        cut=host.cut + copy,
        fork=host.fork_on_host + host.state,
        fork_on_host=host.fork_on_host + host.state,
        trial=host.trial,
    )


def needs_of(engine: str) -> Callable[[Counts], Needs]:
    """What an engine of this name (`gpu_engine.select`) cannot do without: "auto" does without a device."""
    if engine.startswith("cuda-peers"):
        return on_shards
    return on_cuda if engine.startswith("cuda") else on_cpu


def on_split(
    needs_of: Callable[[Counts], Needs], counts: Counts, n_limited: int, n_twins: int = 0, n_two_way: int = 0
) -> Needs:
    """Of the engine of `gpu_engine.vertices` on a network with ``n_limited`` vertices of a capacity, each one more
    vertex, edge and link inside. ``n_twins`` undirected edges at them are two edges each, and ``n_two_way`` links at
    them, which edges run along both ways, are two links each.

    Network: beside that of the split one, the caller's own; per vertex its out half 4; per vertex with a capacity its
    number 4, per twin its edge 8. Flow and fork: per edge 8. There are no trials.
    """
    if not n_limited:
        return needs_of(counts)
    n, m, arcs = counts.n_vertices + n_limited, counts.n_edges + n_limited, counts.n_arcs + 2 * n_limited
    needs = needs_of(replace(counts, n_vertices=n, n_edges=m + n_twins, n_arcs=arcs + 2 * n_two_way))
    return as_split(needs, network_bytes(counts) + 4 * n + 8 * n_twins, counts.n_edges)


def as_split(needs: Needs, own_bytes: int, n_edges: int) -> Needs:
    """The needs of an engine with those of the split network, and what the caller's network of so many edges takes
    beside them: ``own_bytes`` at rest, and a column by edge for a flow and for a fork. There are no trials."""
    own, by_edge = Footprint(own_bytes), Footprint(8 * n_edges)
    return replace(
        needs,
        network=needs.network + own,
        flow=needs.flow + by_edge,
        fork=needs.fork + by_edge,
        fork_on_host=needs.fork_on_host + by_edge,
        trial=Footprint(),
    )


def arranging_bytes(n_vertices: int, n_arcs: int) -> int:
    """Working memory of `gpu_engine.cuda.arrange`: per arc four numbers of 4, 40 for those sorted at once."""
    return 16 * n_arcs + 40 * min(n_arcs, ARRANGED_AT_ONCE) + 28 * n_vertices


ARRANGED_AT_ONCE: Final = 1 << 24
"""Arcs that are sorted together."""

LONG_ROW: Final = 128
"""A drain visits rows of so many arcs or more by a warp or a block, and a search visits them in pieces."""

HUB_ROW: Final = 4096
"""A search that looks back visits longer rows by a block."""

SPARE_ROWS: Final = 1024
"""The shared lists of a search hold so many rows beside one of each vertex: what the blocks keep when few are left."""


def drain_bytes(n_vertices: int, n_arcs: int) -> int:
    """`Drains` of `gpu_engine.cuda.launch`: per vertex a record of 16, four lists of 16, a mark and a list of 4; more
    for rows in pieces and the longest rows."""
    pieces = n_arcs // LONG_ROW + 1
    return (
        88 * n_vertices + 32 * (pieces + min(n_vertices, pieces)) + 4 * (n_arcs // HUB_ROW + 1) + 32 * SPARE_ROWS + 7168
    )
