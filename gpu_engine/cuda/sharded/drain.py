"""A drain over shards: push-relabel in steps, all shards at once, with a barrier between two steps.

A global relabel is a breadth-first search from the targets: levels that are small grow by their own rows, and large
ones are met by the rows of what is still unseen (Beamer, Asanovic and Patterson, "Direction-optimizing breadth-first
search", SC 2012). A round is two steps. In `push` labels stand still: each active vertex pushes along admissible arcs,
and the residual of a reverse arc and the excess of a head are written wherever they lie. In `collect` each shard
relabels its own vertices, tells all shards, and lists what is active next (Goldberg and Tarjan, JACM 1988, section 5:
the synchronous parallel algorithm). No step reads what another shard writes in the same step, but for labels in a
search, where a stale one only leads to a second equal write.

The host queues steps and looks now and then how many vertices are left. Networks with many small steps are faster in
`gpu_engine.cuda.engine`, which makes a whole drain in one kernel.
"""

from time import perf_counter
from typing import Final

from gpu_engine.cuda.launch.drain import PATIENCE, ROUND_LIMIT
from gpu_engine.cuda.layout import COUNTED
from gpu_engine.cuda.sharded.launch import Shards
from gpu_engine.engine import WORK_DONE, Control

LEAST_ROUNDS: Final = 16
"""Rounds between two global relabels, unless there are more for the depth of the last one."""

ROUNDS_AT_ONCE: Final = 4
"""Rounds that are queued before the host looks."""

MOST_LEVELS_AT_ONCE: Final = 16
"""Levels that are queued before the host looks, while they stay small."""

LOOK_BACK: Final = 4
"""Unseen vertices look for the level once this many times its arcs are more than theirs."""

UNSEEN: Final = 0x3FFFFFF0
"""As in sharded/shard.cuh."""

ITEMS, STUCK, ARCS = (COUNTED.index(name) for name in ("items", "stuck", "arcs"))


class Stopped(Exception):
    """A drain was cancelled or has taken too long. What it leaves is a pseudoflow, which can be drained later."""


class Drain:
    """The drain of one region, S of its deficits (mirrored) or T of its excess."""

    def __init__(self, shards: Shards, control: Control, *, mirrored: bool, until_s: float) -> None:
        self._shards, self._control, self._until_s = shards, control, until_s
        self._way = "mirrored" if mirrored else "forward"
        self.searches = self.rounds = self.levels = 0

    def run(self) -> None:
        """Move excess until none can reach a target; what is cut off changes sides. Raises `Stopped`."""
        shards, first = self._shards, True
        while self.rounds < ROUND_LIMIT:
            depth = self._search(first=first)
            first = False
            slot = self._collect(fresh=True)
            counted = self._look()[slot]
            if not counted[ITEMS]:
                if counted[STUCK]:
                    shards.over_vertices(f"move_cut_off_{self._way}")
                return
            self._make_rounds(slot, max(LEAST_ROUNDS, int(PATIENCE * depth)))

    def work(self) -> dict[str, int]:
        """The counters of the drain so far."""
        pushes, relabels, scanned = self._shards.tally()[0][:3].tolist()
        found = dict(zip(WORK_DONE, (pushes, relabels, self.searches, scanned), strict=True))
        return {**found, "rounds": self.rounds, "levels": self.levels}

    def _look(self) -> list[list[int]]:
        """The slots of the tally, as they are when all that is queued has ended."""
        if self._control.cancelled or perf_counter() > self._until_s:
            raise Stopped
        found: list[list[int]] = self._shards.tally()[1:].tolist()
        return found

    def _collect(self, *, fresh: bool) -> int:
        slot = self._shards.next_slot()
        self._shards.over_vertices(f"collect_{self._way}", int(fresh), slot)
        self._shards.places.barrier()
        return slot

    def _gather(self, level: int) -> int:
        slot = self._shards.next_slot()
        self._shards.over_vertices("gather", level, slot)
        return slot

    def _make_rounds(self, slot: int, most: int) -> None:
        done = 0
        while done < most:
            for _ in range(min(ROUNDS_AT_ONCE, most - done)):
                self._shards.over_items(f"push_{self._way}", slot)
                self._shards.places.barrier()
                slot = self._collect(fresh=False)
                done += 1
            if not self._look()[slot][ITEMS]:
                break
        self.rounds += done

    def _search(self, *, first: bool) -> int:
        """Exact labels; returns how many levels there are."""
        shards, slot = self._shards, self._shards.next_slot()
        shards.over_vertices(f"reset_{self._way}", int(first), slot)
        shards.places.barrier()
        unseen_slot, depth, at_once = slot, 0, 1
        slots = [self._gather(0)]
        unseen = None
        while True:
            counts = self._look()
            if unseen is None:
                unseen = counts[unseen_slot][ARCS]
            else:
                unseen -= sum(counts[slot][ARCS] for slot in slots)
            if not counts[slots[-1]][ITEMS]:
                break
            if LOOK_BACK * counts[slots[-1]][ARCS] > unseen:
                slots, at_once = [self._look_back(depth)], 1
            else:
                slots, at_once = self._grow(slots[-1], depth, at_once), min(2 * at_once, MOST_LEVELS_AT_ONCE)
            depth += len(slots)
        shards.places.barrier()
        self.searches += 1
        self.levels += depth
        return depth

    def _look_back(self, depth: int) -> int:
        """Label the next level from the other side; returns the slot of its rows."""
        slot = self._gather(UNSEEN)
        self._shards.over_items(f"look_{self._way}", depth, slot)
        self._shards.places.barrier()
        return self._gather(depth + 1)

    def _grow(self, slot: int, depth: int, levels: int) -> list[int]:
        """Label so many levels; returns the slots of their rows."""
        slots = []
        for level in range(depth, depth + levels):
            self._shards.over_items(f"grow_{self._way}", level, slot)
            self._shards.places.barrier()
            slot = self._gather(level + 1)
            slots.append(slot)
        return slots
