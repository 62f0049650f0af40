"""How long a command will take: as an equal one took of late on that graph, or else a guess by the graph's size.

Guesses are low where a command may be either. What turns out long does not stay in the way for long
(`service.worker.running.lanes`), but short work that is taken for long waits for all that is.
"""

import json
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Final

from service.protocol import Command, Kind

LOAD_S_PER_BYTE: Final = 1e-7
"""The expected time of a load for each byte of its edges as they are stored, in seconds."""

RESTORE_S_PER_BYTE: Final = 5e-8
"""The time to restore a graph for each byte of its host memory at rest, in seconds."""

PER_ARC_S: Final = {
    Kind.MAX_FLOW: 1e-7,
    Kind.MIN_CUT: 1e-7,
    Kind.MATCHING: 1e-7,
    Kind.WHAT_IF: 1e-7,
    Kind.CLOSURE_STUDY: 1e-7,
    Kind.PAIRS: 1e-7,
    Kind.GOMORY_HU_TREE: 1e-7,
    Kind.GLOBAL_MIN_CUT: 1e-7,
    Kind.PARAMETRIC: 1e-7,
    Kind.CAPACITY_EXPANSION: 5e-6,
    Kind.CIRCULATION: 2e-7,
    Kind.PARTITION: 1e-6,
    Kind.SNAPSHOT: 2e-8,
    Kind.EXPORT: 1e-7,
    Kind.MIN_COST_FLOW: 5e-6,
    Kind.RESTORE: 1e-7,
    Kind.WATCH: 1e-7,
}
"""The expected time for each arc of a command that was never timed, in seconds: its question is solved from zero."""

ROW_S: Final = 1e-3
"""What each row of a question is expected to take at least."""

ROW_S_PER_ARC: Final = 1e-7
"""What it takes more for each arc, as if every row looked at all of them."""

PROCESS_S: Final = 0.3
"""The time to start the process in which a cheapest flow is solved, or a graph is partitioned."""

SAME_TERMINALS: Final = 100
"""Questions with more terminals than this share their times."""

TIMES: Final = 4
"""How many of the latest times of one command are remembered."""

KEPT: Final = 20_000
"""Commands whose durations are remembered; the one that was looked up the longest ago goes first."""

IN_ORDER: Final = json.JSONEncoder(sort_keys=True)

QUESTIONS: Final = (Kind.MAX_FLOW, Kind.MIN_CUT, Kind.MATCHING, Kind.PARTITION)
IN_PROCESSES: Final = (Kind.MIN_COST_FLOW, Kind.CAPACITY_EXPANSION, Kind.PARTITION)
DRY_RUNS: Final = (Kind.DRY_RUN, Kind.DRY_RUN_COSTS, Kind.DRY_RUN_VERTICES, Kind.DRY_RUN_EDGES, Kind.DRY_RUN_LOWER)
PATCHES: Final = (Kind.PATCH, Kind.PATCH_COSTS, Kind.PATCH_LOWER, Kind.PATCH_VERTICES, Kind.PATCH_EDGES)
UPDATES: Final = (*PATCHES, *DRY_RUNS)
Arcs = Callable[[str], int | None]
"""How many arcs a graph has in memory; None if it is not there."""


Key = tuple[str, Kind, int]


def rows_s(n_rows: int, n_arcs: int) -> float:
    """How long so many rows of a question are expected to take on a graph of so many arcs: rather too long, since what
    is short goes before all that is long."""
    return n_rows * (ROW_S + ROW_S_PER_ARC * n_arcs)


class Costs:
    """Remembers how long commands of one worker took. Safe from any thread."""

    def __init__(self, arcs: Arcs = lambda graph: None) -> None:
        self._arcs = arcs
        self._took_s: OrderedDict[Key, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def expected_s(self, command: Command) -> float:
        """How long the command is expected to take, by its last times or by a guess.

        The shortest of the last times counts, since a busy machine makes all of them longer.
        """
        with self._lock:
            for key in (_same(command), _alike(command)):
                if key in self._took_s:
                    self._took_s.move_to_end(key)
                    return min(self._took_s[key], default=0.0)
        if command.kind is Kind.LOAD:
            return LOAD_S_PER_BYTE * float(command.args.get("n_bytes", 0))
        per_arc_s = PER_ARC_S.get(command.kind, 0.0)
        least_s = PROCESS_S if command.kind in IN_PROCESSES else 0.0
        return least_s + per_arc_s * (self._arcs(command.graph) or 0) if per_arc_s else 0.0

    def took(self, command: Command, seconds: float) -> None:
        """Remember how long a command ran."""
        same, alike = _same(command), _alike(command)
        with self._lock:
            if same in self._took_s or same == alike:
                self._keep(same, seconds)
            else:  # the first of its kind, whose flow state is there from now on
                self._took_s[same] = deque(maxlen=TIMES)
                self._keep(alike, seconds)

    def _keep(self, key: Key, seconds: float) -> None:
        self._took_s.setdefault(key, deque(maxlen=TIMES)).append(seconds)
        self._took_s.move_to_end(key)
        while len(self._took_s) > KEPT:
            self._took_s.popitem(last=False)


def _alike(command: Command) -> Key:
    """The key of all commands of this kind on the graph; updates are told apart by their size as well."""
    is_update = command.kind in UPDATES
    return command.graph, command.kind, _rows(command.args).bit_length() if is_update else 0


def _same(command: Command) -> Key:
    """The key of this very question, whose flow state may be there."""
    if command.kind not in QUESTIONS:
        return _alike(command)
    asked = {name: value for name, value in command.args.items() if name not in ("min_version", "time_limit_s")}
    n_terminals = sum(len(value) for value in asked.values() if isinstance(value, list))
    if n_terminals > SAME_TERMINALS:
        return _alike(command)
    return command.graph, command.kind, hash(IN_ORDER.encode(asked)) or 1


def _rows(args: dict[str, Any]) -> int:
    """About how many rows a PATCH has: a packed row takes some ten characters."""
    operations = args.get("batch", ())
    return sum(
        len(operation.get("packed") or "") // 10 or len(operation.get("edges") or operation.get("tail") or ())
        for operation in operations
    )
