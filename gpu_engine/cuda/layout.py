"""Records and constants that Python and the kernels share, stated once.

Every compilation gets them as macros (`options`). Constants are used from there; of each record the kernels assert that
its size and the places of its fields are the same in C++ (kernels/layout.cuh). This module needs no CuPy.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from gpu_engine.control import WORK_DONE
from gpu_engine.footprint import HUB_ROW, LONG_ROW
from gpu_engine.networks.free import ORDINARY, SINK, SOURCE
from gpu_engine.networks.rows import OLD_LINK
from gpu_engine.partition.buckets import SLOTS

WARP: Final = 32
"""Threads that run together."""

THREADS: Final = 512
"""Threads in a block of the drain."""

CLUSTER: Final = 8
"""Blocks of the leading cluster: the largest size that every device with clusters allows."""

NARROW_LIMIT: Final = 1 << 30
"""Pair sums below this fit int32 residuals."""

ARCS_OF_WARP: Final = 512
"""Arcs of a certificate that a warp looks at one after the other."""

INSIDE, TARGET, OUTSIDE = 0, 1, 2
"""Roles of a vertex in the region of a preset: excess passes through it, it takes everything, or it is left alone."""

PAIR_THREADS: Final = 128
"""Threads in a block that solves pairs, a warp each."""

OPEN_PAIR, UNLIMITED_PAIR = -1, -2
"""Stand for the value of a pair that was not solved there, and of one without a finite cut."""

MOST_SHARDS: Final = 16
"""Shards of one network: a kernel gets the addresses of all of them as an argument."""

PIECE_OF_ROW: Final = 128
"""The arcs of a row that are one item of a kernel over shards; `TILE_OF_ROW` neighbouring lanes visit it."""

TILE_OF_ROW: Final = 8

SHARD_THREADS: Final = 512
"""Threads in a block of a drain over shards."""

SHARD_BLOCKS: Final = 3
"""Blocks of it on a multiprocessor: with more, what each thread keeps in registers goes to memory."""

STOP, GIVEN_UP = 1, 2
"""What the host may say to a drain over shards: end after this step, or at once, as other devices have not started."""

TALLY_SLOTS: Final = 64
"""A kernel over shards counts into the slot of its step; they are used again in turn."""

COUNTED: Final = ("items", "stuck", "arcs", "pad")
"""The int64 of each slot of a tally; the first of them all are of the whole drain: pushes, relabels, arcs scanned."""

PARTITION_LANES: Final = 8
"""Threads that visit a row of a partitioned graph together: most rows are short."""

UNKNOWN_LABEL: Final = -1
"""Stands for the label of a vertex that no drain of its side has labelled."""

ENDED_DRAIN, CANCELLED_DRAIN, LEFT_DRAIN = 0, 1, 2
"""How a drain ends: all excess has gone, the host has said so, or some is left to waves (waves.cu)."""

LEVEL_BITS: Final = 23
"""The marks of waves have so many bits for a level: they take networks of fewer vertices than its values."""

CONSTANTS: Final[Mapping[str, int]] = {
    "WARP": WARP,
    "MOST_SHARDS": MOST_SHARDS,
    "PIECE_OF_ROW": PIECE_OF_ROW,
    "TILE_OF_ROW": TILE_OF_ROW,
    "SHARD_THREADS": SHARD_THREADS,
    "SHARD_BLOCKS": SHARD_BLOCKS,
    "STOP_MEETING": STOP,
    "GIVE_UP_MEETING": GIVEN_UP,
    "TALLY_SLOTS": TALLY_SLOTS,
    "TALLY_WIDTH": len(COUNTED),
    "THREADS": THREADS,
    "LONG_ROW": LONG_ROW,
    "HUB_ROW": HUB_ROW,
    "UNKNOWN_LABEL": UNKNOWN_LABEL,
    "ENDED_DRAIN": ENDED_DRAIN,
    "CANCELLED_DRAIN": CANCELLED_DRAIN,
    "LEFT_DRAIN": LEFT_DRAIN,
    "LEVEL_BITS": LEVEL_BITS,
    "NARROW_LIMIT": NARROW_LIMIT,
    "ORDINARY_VERTEX": ORDINARY,
    "SINK_VERTEX": SINK,
    "SOURCE_VERTEX": SOURCE,
    "INSIDE_REGION": INSIDE,
    "TARGET_OF_REGION": TARGET,
    "OUTSIDE_REGION": OUTSIDE,
    "ARCS_OF_WARP": ARCS_OF_WARP,
    "PAIR_THREADS": PAIR_THREADS,
    "OPEN_PAIR": OPEN_PAIR,
    "UNLIMITED_PAIR": UNLIMITED_PAIR,
    "OLD_LINK": OLD_LINK,
    "PARTITION_LANES": PARTITION_LANES,
    "BUCKET_SLOTS": SLOTS,
}

SHARD_UPDATE: Final = np.dtype(
    [("gained", "i8"), ("lacking", "i4"), ("holding", "i4"), ("overflow", "i4"), ("pad", "i4")]
)
"""The answer to an update of shards: see `ShardUpdate` in sharded/state.cu."""

UPDATE_RESULT: Final = np.dtype([*SHARD_UPDATE.descr, ("weighed", "u8")])
"""The answer to an update: see `UpdateResult` in update.cu."""

OFFENDERS: Final = ("residual", "balance", "terminal", "crossing", "side")
"""The conditions of a certificate, in the order of `gpu_engine.checks.certificate`."""

SHARD_FINDINGS: Final = np.dtype(
    [(name, "i4") for name in (*OFFENDERS, "pad")] + [("across", "i8"), ("cut_capacity", "i8")]
)
"""The answer of a certificate's scan over shards: see `ShardFindings` in sharded/certify.cu."""

FINDINGS: Final = np.dtype([*SHARD_FINDINGS.descr, ("total", "u8"), ("edges", "u8")])
"""The answer of a certificate's scan: see `Findings` in certify.cu."""

DRAIN_PROGRESS: Final = np.dtype(
    [("cancel", "i4"), ("status", "i4"), ("cut_off", "i4"), ("pad", "i4"), ("gained", "i8")]
    + [(name, "i8") for name in (*WORK_DONE, "rounds", "levels", "grid_steps", "cluster_steps")]
)
"""The record that the host and a running drain share: see `DrainProgress` in arguments.cuh."""

DRAIN_ARGUMENTS: Final = np.dtype(
    [(name, "u8") for name in ("row_offsets", "arcs", "excess", "role", "source_side", "labels", "vertices")]
    + [(name, "u8") for name in ("search_even", "search_odd", "active_even", "active_odd", "long_even", "long_odd")]
    + [(name, "u8") for name in ("hubs", "marks", "targets", "memory", "progress")]
    + [("n", "i4"), ("patience", "f4"), ("trust", "i4"), ("small", "i4"), ("round_limit", "i4")]
    + [("deep", "i4"), ("deepest", "i4"), ("capacity", "i4")]
)
"""The one argument of a drain, passed by value; u8 is an address: see `DrainArguments` in arguments.cuh."""

DRAIN_COUNTERS: Final = np.dtype([(name, "i8") for name in ("pushes", "relabels", "arcs_scanned")])
"""The counters of a preset's kernels: see `DrainCounters` in presets/common.cuh."""

PAIR_ARC: Final = np.dtype([("head", "i4"), ("reverse", "i4"), ("capacity", "i8"), ("backward", "i8")])
"""An arc of the network in which pairs are solved: see `PairArc` in pair_memory.cuh."""

PAIR_ARGUMENTS: Final = np.dtype(
    [(name, "u8") for name in ("row_offsets", "arcs", "sources", "sinks", "values", "next", "cancel", "memory")]
    + [("memory_words", "i8"), ("epochs", "u8")]
    + [(name, "i4") for name in ("n_pairs", "n", "n_arcs", "log_size", "most_visits", "pad")]
)
"""The one argument of a kernel that solves pairs, passed by value: see `PairArguments` in pair_memory.cuh."""

SHARD: Final = np.dtype(
    [(name, "u8", (MOST_SHARDS,)) for name in ("arcs", "capacity", "excess", "role", "source_side", "label")]
    + [(name, "u8") for name in ("row_offsets", "items", "left", "lowest", "tally")]
    + [("first", "i4", (MOST_SHARDS + 1,)), ("own", "i4"), ("count", "i4"), ("pad", "i4")]
)
"""The first argument of a kernel over shards, passed by value: see `Shard` in sharded/shard.cuh."""

SHARD_DRAIN: Final = np.dtype(
    [("own", "u8"), ("meetings", "u8", (MOST_SHARDS,)), ("outcome", "u8"), ("patience", "f4")]
    + [(name, "i4") for name in ("n_own", "rank", "devices", "round_limit", "pad")]
)
"""The one argument of a drain over shards, passed by value: see `ShardDrain` in sharded/drain.cu."""

SHARD_OUTCOME: Final = np.dtype([(name, "i4") for name in ("ended", "searches", "rounds", "levels")])
"""What a drain over shards says in the end: see `ShardOutcome` in sharded/meeting.cuh."""

MEETING: Final = np.dtype([("stop", "i4"), ("arrived", "i4"), ("from", "u1", (2 * MOST_SHARDS * 32,))])
"""Where the blocks of a device meet those of others; the host writes `STOP` or `GIVEN_UP` into ``stop``: see
`Meeting` in sharded/meeting.cuh."""

TALLY: Final = np.dtype([("first", "u8"), ("gone", "i4"), ("left", "i4"), ("open", "i4"), ("pad", "i4")])
PARTITION_SUMS: Final = np.dtype(
    [("twice_cut", "i8")]
    + [(name, "i4") for name in ("listed", "waiting", "rounds", "turns", "stuck", "pad")]
    + [("tally", TALLY, 3)]
)
"""What a refinement counts, and what it says: see `PartitionSums` in partition/graph.cuh."""

PARTITION_ARGUMENTS: Final = np.dtype(
    [(name, "u8") for name in ("start", "used", "room", "head", "weight", "part", "vertex_weight", "part_weight")]
    + [(name, "u8") for name in ("target", "gain", "going", "listed", "stamp", "best", "list", "pseudo", "touched")]
    + [(name, "u8") for name in ("total", "left", "threshold", "open", "bins", "sums")]
    + [("limit", "i8")]
    + [(name, "i4") for name in ("n", "k", "n_touched", "turns", "patience", "from", "daring", "pad")]
)
"""The one argument of a refinement, passed by value: see `PartitionArguments` in partition/graph.cuh."""

GRID_MEMORY_BYTES: Final = 256
PROGRESS_BYTES: Final = 256
"""The host gives a drain so much for its `GridMemory` and its `DrainProgress`, each in cache lines of its own."""

WAVE_MEMORY_BYTES: Final = 1536
"""As `GRID_MEMORY_BYTES`, for the `WaveMemory` of waves."""

RECORDS: Final[Mapping[str, np.dtype[np.void]]] = {
    "UpdateResult": UPDATE_RESULT,
    "Findings": FINDINGS,
    "DrainProgress": DRAIN_PROGRESS,
    "DrainArguments": DRAIN_ARGUMENTS,
    "DrainCounters": DRAIN_COUNTERS,
    "PairArc": PAIR_ARC,
    "PairArguments": PAIR_ARGUMENTS,
    "Shard": SHARD,
    "ShardUpdate": SHARD_UPDATE,
    "ShardDrain": SHARD_DRAIN,
    "ShardOutcome": SHARD_OUTCOME,
    "Meeting": MEETING,
    "ShardFindings": SHARD_FINDINGS,
    "PartitionSums": PARTITION_SUMS,
    "PartitionArguments": PARTITION_ARGUMENTS,
}


def options(cluster: int, *, wide: bool) -> tuple[str, ...]:
    """The macros of one compilation, for residuals of int32 or (``wide``) int64 and clusters of so many blocks."""
    values = {**CONSTANTS, **dict(_places()), "CLUSTER": cluster}
    values |= {"GRID_MEMORY_BYTES": GRID_MEMORY_BYTES, "WAVE_MEMORY_BYTES": WAVE_MEMORY_BYTES}
    return (*(f"-D{name}={value}" for name, value in values.items()), *(["-DWIDE"] if wide else []))


def _places() -> Iterator[tuple[str, int]]:
    """``SIZE_OF_<record>`` and ``PLACE_OF_<record>_<field>``, in bytes."""
    for name, record in RECORDS.items():
        yield f"SIZE_OF_{name}", record.itemsize
        for field, (_, place, *_) in (record.fields or {}).items():
            yield f"PLACE_OF_{name}_{field}", place
