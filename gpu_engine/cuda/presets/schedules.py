"""The published GPU max-flow systems by name, for comparison: other ways to drain a region.

A schedule does what drain.cu does, with launches and read-backs from the host as its paper has it. It leaves a
pseudoflow in which no active vertex reaches a target, but it proves nothing: the default drain always follows, finds
the vertices that are cut off, and would finish what a schedule left. So the certificate holds for every preset, and the
counter ``left_pushes`` tells how much was left (nothing, if the repairs below are right).

Papers:

- Gutierrez Mota, "Aplicación de las GPU's en la solución del problema de flujo máximo", 2012, chapter 4; the rule is
  Hong's ("A lock-free multi-threaded algorithm for the maximum flow problem", IPDPS 2008).
- Kannappan, Kumar, Nasre, "Scalable Maxflow Processing for Dynamic Graphs"; alternating push and pull is from Khatri
  et al., "Scaling the Maximum Flow Computation on GPUs", 2022.
- VanAusdal, Burtscher, "An Efficient Push-Relabel Implementation for Max-Flow Computations on GPUs" (ECL-MaxFlow).
- Hsieh, Lin, Kuo, "Engineering A Workload-balanced Push-Relabel Algorithm for Massive Graphs on GPUs" (WBPR).

What differs from all of them: terminal sets instead of one source and one sink; searches stay on the device; and a
warm solve drains the two sides of the old cut one after the other. The dynamic algorithm's one drain of everything
moves the same excess, because no residual arc leads from the source side to the sink side. Cold solves are the
papers' static forms.

A schedule is a generator that yields after each launch or two; the caller looks at its cancel flag there. Each
kernel is bounded; a schedule ends because exact distances never shrink between its searches (Kannappan et al.,
Theorem 3.7), and the caller bounds it all the same.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from gpu_engine.errors import UnknownEngine

if TYPE_CHECKING:  # so that names can be checked without CuPy
    from gpu_engine.cuda.presets.region import Region

Steps = Generator[None, None, None]

NOWHERE: Final = 0x7FFFFFFF
"""A height of no vertex: not seen by a search."""

INNER_CYCLES: Final = 5
OUTER_CYCLES: Final = 220
"""Gutierrez, appendix B: operations of a vertex in a launch, launches between global relabels."""

ALTERNATIONS: Final = 512
"""Iterations of alternating push and pull, which has no proof that it ends; from then on only push, which has."""

LAUNCH_CYCLES: Final = 64
"""Most operations of a vertex in one launch of a thread-centric WBPR kernel, so that it can be cancelled."""


def hong_lockfree(region: "Region") -> Steps:
    """Gutierrez, Algorithms 4.1-4.8: lock-free cycles, then violations are cancelled and two searches give heights
    min(distance to a target, n + distance to the outside), which stands for the source.

    Racy: pushes by outdated heights, and violations cancelled without regard to the excess; repaired in lockfree.cuh.
    """
    while True:
        yield from _search(region, "hong/search", region.records, unseen=NOWHERE)
        yield from _levels(region, "hong/search", region.records, first=region.n, unseen=NOWHERE)
        if not region.collect("hong"):
            return
        for _ in range(OUTER_CYCLES):
            region.launch("hong/push_relabel", region.n, *region.records, INNER_CYCLES, region.clear_signal())
            region.counters.host["rounds"] += 1
            yield
            if not region.read_signal():
                break
        region.launch("hong/cancel", region.n, *region.records)


def dyn_topo(region: "Region") -> Steps:
    """Kannappan et al., Algorithms 1-4 (static) and 5-6 (dynamic), one thread for every vertex.

    Racy: their steep arcs, which Algorithm 3 removes; where that would take more than a vertex holds, see lockfree.cuh.
    """
    while True:
        yield from _search(region, "kannappan/search", region.records)
        if not region.collect("kannappan"):
            return
        region.launch(
            "kannappan/push_relabel", region.n, *region.records, _kernel_cycles(region), region.clear_signal()
        )
        region.launch("kannappan/remove_invalid", region.n, *region.records)
        region.counters.host["rounds"] += 1
        yield


def dyn_data(region: "Region") -> Steps:
    """Kannappan et al., section 5.2.1: as `dyn_topo`, with one thread for each vertex that a search left active."""
    while True:
        if not (yield from _data_iteration(region)):
            return


def dyn_push_pull(region: "Region") -> Steps:
    """Kannappan et al., section 5.2.2: arcs into sinks are filled first, so deficits are the targets; then `dyn_data`.

    When an update leaves work on both sides of the old cut, `PresetDrain.both` runs a pull on one and a push on the
    other, on two streams at once; what they leave for each other follows with a last push, as in the paper.
    """
    region.launch("kannappan/saturate_sinks", region.n, *region.records)
    yield from dyn_data(region.without_sinks())


def alt_pp(region: "Region") -> Steps:
    """Khatri et al., as Kannappan et al. compare with it: a push and a pull take turns on the same region, each with
    its own heights.

    The paper has no proof that it ends: after `ALTERNATIONS` turns only the push goes on.
    """
    region.launch("kannappan/saturate_sinks", region.n, *region.records)
    push = region.without_sinks()
    pull = push.mirror()
    for turn in count():
        pulling = turn % 2 == 1 and turn < ALTERNATIONS
        busy = yield from _data_iteration(pull if pulling else push)
        if not busy and not pulling:
            return


def ecl(region: "Region") -> Steps:
    """ECL-MaxFlow, Algorithms 4-7, phase 1: a warp for each vertex of a double worklist, an equally parallel search
    every max(100, V^2 / (1000 E)) iterations.

    Racy: pushes to neighbours that rise in the same launch; repaired by a launch of each kind (warps.cuh).
    """
    every = max(100, region.n**2 // (1000 * max(1, region.n_arcs // 2)))
    stamp, spare, other = region.new_list(), region.new_list(), region.new_list()
    stamp.fill(0)
    yield from _ecl_search(region, stamp, spare, other)
    length = region.collect("ecl")
    current, following = region.active, other
    for iteration in count(1):
        if length == 0:
            return
        worklist = (current, length, following, region.clear_signal(), stamp, iteration)
        region.launch_warps("ecl/push", length, *region.records, *worklist)
        region.launch_warps("ecl/relabel", length, *region.records, *worklist)
        region.counters.host["rounds"] += 1
        yield
        length = region.read_signal()
        current, following = following, current
        if iteration % every == 0:
            yield from _ecl_search(region, stamp, spare, following)


def wbpr_tc_bcsr(region: "Region") -> Steps:
    """WBPR, Algorithm 1 on the bidirectional CSR, whose reverse arcs are found by binary search."""
    yield from _thread_centric(region, "bcsr", region.records)


def wbpr_tc_rcsr(region: "Region") -> Steps:
    """WBPR, Algorithm 1 on the reversed CSR: a copy of the residuals while the drain lasts."""
    with region.as_reversed_rows() as rows:
        yield from _thread_centric(region, "rcsr", rows)


def wbpr_vc_bcsr(region: "Region") -> Steps:
    """WBPR, Algorithm 2 on the bidirectional CSR."""
    yield from _vertex_centric(region, "bcsr", region.records)


def wbpr_vc_rcsr(region: "Region") -> Steps:
    """WBPR, Algorithm 2 on the reversed CSR: a copy of the residuals while the drain lasts."""
    with region.as_reversed_rows() as rows:
        yield from _vertex_centric(region, "rcsr", rows)


@dataclass(frozen=True, slots=True)
class Preset:
    """A schedule and what it needs."""

    schedule: Callable[["Region"], Steps]
    reversed_rows: bool = False
    """Whether the schedule works on WBPR's reversed CSR."""
    both_sides: bool = False
    """Whether the two regions that an update leaves are drained at once."""


PRESETS: Final[Mapping[str, Preset]] = {
    "hong-lockfree": Preset(hong_lockfree),
    "dyn-topo": Preset(dyn_topo),
    "dyn-data": Preset(dyn_data),
    "dyn-push-pull": Preset(dyn_push_pull, both_sides=True),
    "alt-pp": Preset(alt_pp),
    "ecl": Preset(ecl),
    "wbpr-tc-rcsr": Preset(wbpr_tc_rcsr, reversed_rows=True),
    "wbpr-tc-bcsr": Preset(wbpr_tc_bcsr),
    "wbpr-vc-rcsr": Preset(wbpr_vc_rcsr, reversed_rows=True),
    "wbpr-vc-bcsr": Preset(wbpr_vc_bcsr),
}
DEFAULT: Final = "default"


def find(name: str) -> Preset | None:
    """The preset of this name; None for "default". Raises `UnknownEngine` with the names that exist."""
    if name == DEFAULT:
        return None
    if name not in PRESETS:
        raise UnknownEngine(f"no preset {name!r}; there are {', '.join((DEFAULT, *PRESETS))}")
    return PRESETS[name]


# ---- pieces ------------------------------------------------------------------------------------------------------


def _search(region: "Region", kernel: str, rows: tuple[Any, ...], unseen: int | None = None) -> Steps:
    """Exact heights by a topology-driven search, a launch a level; ``unseen`` (n) where no target is reached."""
    unseen = region.n if unseen is None else unseen
    region.counters.host["global_relabels"] += 1
    region.launch(f"{kernel.split('/')[0]}/start_heights", region.n, unseen)
    yield from _levels(region, kernel, rows, first=0, unseen=unseen)


def _levels(region: "Region", kernel: str, rows: tuple[Any, ...], first: int, unseen: int) -> Steps:
    """At most n levels from the height ``first`` on."""
    region.clear_signal()
    for level in range(first, first + region.n):
        region.launch(kernel, region.n, *rows, level, unseen, region.counters.signal)
        region.counters.host["levels"] += 1
        yield
        if region.read_signal() != level + 1:
            return


def _kernel_cycles(region: "Region") -> int:
    """Kannappan et al., section 6.1: the average degree."""
    return max(1, region.n_arcs // region.n)


def _data_iteration(region: "Region") -> Generator[None, None, bool]:
    """Search, push and relabel, remove invalid arcs for the vertices that are active; returns if there were any."""
    yield from _search(region, "kannappan/search", region.records)
    active = region.collect("kannappan")
    if active:
        listed = (region.active, active)
        cycles, busy = _kernel_cycles(region), region.clear_signal()
        region.launch("kannappan/push_relabel_listed", active, *region.records, cycles, busy, *listed)
        region.launch("kannappan/remove_invalid_listed", active, *region.records, *listed)
        region.counters.host["rounds"] += 1
        yield
    return active > 0


def _thread_centric(region: "Region", layout: str, rows: tuple[Any, ...]) -> Steps:
    """Algorithm 1: |V| cycles of every vertex, then a global relabel; here without a host's search.

    Racy: pushes by outdated heights, with nothing to remove the steep arcs; repaired in lockfree.cuh.
    """
    while True:
        yield from _search(region, f"wbpr/search_{layout}", rows)
        if not region.collect("wbpr"):
            return
        for begun in range(0, region.n, LAUNCH_CYCLES):
            cycles = min(LAUNCH_CYCLES, region.n - begun)
            region.launch(f"wbpr/push_relabel_{layout}", region.n, *rows, cycles, region.clear_signal())
            region.counters.host["rounds"] += cycles
            yield
            if not region.read_signal():
                break
        region.launch(f"wbpr/cancel_{layout}", region.n, *rows)


def _vertex_centric(region: "Region", layout: str, rows: tuple[Any, ...]) -> Steps:
    """Algorithm 2: the active vertices are queued, each gets a warp; |V| such cycles, then a global relabel.

    Racy: pushes to neighbours that rise in the same launch; repaired by a launch of each kind (warps.cuh).
    """
    while True:
        yield from _search(region, f"wbpr/search_{layout}", rows)
        for _ in range(region.n):
            active = region.collect("wbpr")
            if not active:
                return  # heights are valid: who stands at n is cut off
            region.launch_warps(f"wbpr/push_{layout}", active, *rows, region.active, active)
            region.launch_warps(f"wbpr/relabel_{layout}", active, *rows, region.active, active)
            region.counters.host["rounds"] += 1
            yield


def _ecl_search(region: "Region", stamp: Any, current: Any, following: Any) -> Steps:
    """Algorithms 6 and 7; ``current`` and ``following`` int32[n] are free to use. At most n levels."""
    region.counters.host["global_relabels"] += 1
    search = -region.counters.host["global_relabels"]
    region.launch("ecl/start_search", region.n, current, region.clear_signal(), stamp, search)
    yield
    for level in count(1):
        length = region.read_signal()
        if length == 0:
            return
        worklist = (current, length, following, region.clear_signal(), stamp, search, level)
        region.launch_warps("ecl/search", length, *region.records, *worklist)
        region.counters.host["levels"] += 1
        yield
        current, following = following, current
