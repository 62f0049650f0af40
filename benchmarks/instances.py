"""The instances, as data. A synthetic one is a family, its parameters and a seed; a real one is a file."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpu_engine.formats.npz import read_npz
from gpu_engine.generators import generate
from gpu_engine.networks.edgelist import EdgeList

EXAMPLES = Path(__file__).parent.parent / "examples"
REAL_DIRECTORY = "HEADRACE_BENCH_REAL"
"""Environment variable: a directory with the real networks that may not be shipped."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A network to measure; `seed` and `parameters` draw it again, or `file` names it."""

    name: str
    family: str
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    seed: int = 1
    file: str = ""
    """File name of a real network; then `family` is ``real``."""
    capped: bool = False
    """Our engine is asked as the service asks for a matching: what the edges at source and sink carry becomes caps of
    their other ends. Peers have no caps and get the edges."""

    def load(self, real: Path | None = None) -> EdgeList | None:
        """The network with its terminals, or None if its file is in neither directory."""
        if not self.file:
            return generate(self.family, seed=self.seed, **self.parameters)
        for directory in (real, EXAMPLES):
            if directory is not None and (directory / self.file).is_file():
                return read_npz(directory / self.file)
        return None


def _drawn(**families: tuple[str, dict[str, int | str]]) -> tuple[Instance, ...]:
    return tuple(Instance(name.replace("_", "-"), family, given) for name, (family, given) in families.items())


SMALL = _drawn(
    genrmf_long=("genrmf-long", {"a": 9}),
    genrmf_wide=("genrmf-wide", {"a": 20}),
    rlg_long=("rlg-long", {"rows": 80}),
    rlg_wide=("rlg-wide", {"rows": 115}),
    ac=("ac", {"n_vertices": 300}),
    grid=("grid", {"rows": 100, "columns": 100}),
    vision=("vision", {"rows": 80, "columns": 80}),
    rmat_hub=("rmat", {"scale": 11}),
    rmat_sets=("rmat-ms", {"scale": 11}),
    delaunay=("delaunay", {"n_vertices": 8_000}),
    rgg=("rgg", {"n_vertices": 5_000}),
    road=("road", {"rows": 60, "columns": 60, "terminals": 50}),
)
MEDIUM = _drawn(
    genrmf_long=("genrmf-long", {"a": 29}),
    genrmf_wide=("genrmf-wide", {"a": 60}),
    rlg_long=("rlg-long", {"rows": 410}),
    rlg_wide=("rlg-wide", {"rows": 580}),
    ac=("ac", {"n_vertices": 1450}),
    grid=("grid", {"rows": 500, "columns": 500}),
    vision=("vision", {"rows": 400, "columns": 400}),
    rmat_hub=("rmat", {"scale": 16}),
    rmat_sets=("rmat-ms", {"scale": 16}),
    delaunay=("delaunay", {"n_vertices": 170_000}),
    rgg=("rgg", {"n_vertices": 100_000}),
    road=("road", {"rows": 300, "columns": 300, "terminals": 200}),
)
LARGE = _drawn(
    genrmf_long=("genrmf-long", {"a": 56}),
    genrmf_wide=("genrmf-wide", {"a": 112}),
    rlg_long=("rlg-long", {"rows": 1150}),
    rlg_wide=("rlg-wide", {"rows": 1630}),
    ac=("ac", {"n_vertices": 4000}),
    grid=("grid", {"rows": 1400, "columns": 1400}),
    vision=("vision", {"rows": 1130, "columns": 1130}),
    rmat_hub=("rmat", {"scale": 19}),
    rmat_sets=("rmat-ms", {"scale": 19}),
    delaunay=("delaunay", {"n_vertices": 1_200_000}),
    rgg=("rgg", {"n_vertices": 800_000}),
    road=("road", {"rows": 850, "columns": 850, "terminals": 600}),
)
DEVICE = _drawn(
    genrmf_long=("genrmf-long", {"a": 32}),
    genrmf_wide=("genrmf-wide", {"a": 64}),
    rlg_long=("rlg-long", {"rows": 512}),
    rlg_wide=("rlg-wide", {"rows": 1024}),
    ac=("ac", {"n_vertices": 4000}),
    grid=("grid", {"rows": 1024, "columns": 1024}),
    vision=("vision", {"rows": 1024, "columns": 1024}),
    road=("road", {}),
    rmat_18=("rmat", {"scale": 18}),
    rmat_20=("rmat", {"scale": 20}),
    delaunay=("delaunay", {"n_vertices": 1 << 20}),
)
LARGE_DEVICE = _drawn(
    genrmf_long_64=("genrmf-long", {"a": 64}),
    genrmf_wide_128=("genrmf-wide", {"a": 128}),
    rlg_long_1280=("rlg-long", {"rows": 1280}),
    rlg_wide_2048=("rlg-wide", {"rows": 2048}),
    ac_10000=("ac", {"n_vertices": 10_000}),
    grid_2048=("grid", {"rows": 2048, "columns": 2048}),
    vision_2048=("vision", {"rows": 2048, "columns": 2048}),
    road_850=("road", {"rows": 850, "columns": 850, "terminals": 600}),
)
CLOSED: Mapping[str, int | str] = {"leaving": 4, "entering": 1, "max_capacity": 1000, "closed": True}
HARD = (
    *_drawn(
        digraph_10k=("digraph", {"n_vertices": 10_000}),
        digraph_100k=("digraph", {"n_vertices": 100_000}),
        digraph_1m=("digraph", {"n_vertices": 1_000_000}),
        digraph_out_1000_100k=("digraph", {"n_vertices": 100_000, "leaving": 1000}),
        digraph_out_1000_1m=("digraph", {"n_vertices": 1_000_000, "leaving": 1000}),
        digraph_both_10000_100k=("digraph", {"n_vertices": 100_000, "leaving": 10_000, "entering": 10_000}),
        digraph_both_10000_1m=("digraph", {"n_vertices": 1_000_000, "leaving": 10_000, "entering": 10_000}),
        closed_unit_100k=("digraph", {"n_vertices": 100_000, "closed": True}),
        closed_unit_1m=("digraph", {"n_vertices": 1_000_000, "closed": True}),
        closed_100k=("digraph", {"n_vertices": 100_000, **CLOSED}),
        closed_1m=("digraph", {"n_vertices": 1_000_000, **CLOSED}),
        zigzag_10k=("zigzag", {"pairs": 5_000}),
        zigzag_100k=("zigzag", {"pairs": 50_000}),
        zigzag_200k=("zigzag", {"pairs": 100_000}),
        zigzag_1m=("zigzag", {"pairs": 500_000}),
        zigzag_in_order_100k=("zigzag", {"pairs": 50_000, "shuffled": False}),
        zigzag_in_order_200k=("zigzag", {"pairs": 100_000, "shuffled": False}),
        zigzag_undirected_100k=("zigzag", {"pairs": 50_000, "undirected": True}),
        tree_60k=("tree", {"n_vertices": 60_000}),
        tree_240k=("tree", {"n_vertices": 240_000}),
        tree_1m=("tree", {"n_vertices": 1_000_000}),
        tree_undirected_240k=("tree", {"n_vertices": 240_000, "undirected": True}),
        tree_wide_240k=("tree", {"n_vertices": 240_000, "max_capacity": 100}),
        bipartite_2=("bipartite", {"degree": 2}),
        bipartite_3=("bipartite", {"degree": 3}),
        bipartite_4=("bipartite", {"degree": 4}),
        bipartite_16=("bipartite", {"degree": 16}),
        bipartite_skew=("bipartite", {"degree": 4, "skew": 3}),
        dispatch_3=("dispatch", {"within_reach": 3.0}),
        dispatch_5=("dispatch", {"within_reach": 5.0}),
        dispatch_8=("dispatch", {"within_reach": 8.0}),
        dispatch_5_wide=("dispatch", {"within_reach": 5.0, "most": 10}),
        dispatch_depots=("dispatch", {"vehicles": 1000, "within_reach": 5.0, "most": 100}),
        unrolled_20x5000=("rlg", {"rows": 20, "columns": 5000}),
        unrolled_2x100000=("rlg", {"rows": 2, "columns": 100_000}),
        unrolled_3x100000=("rlg", {"rows": 3, "columns": 100_000}),
        chains_40k=("chains", {"length": 40_000}),
        line_3x150000=("line", {"width": 3, "length": 150_000}),
        merge_14=("merge", {"levels": 14}),
        merge_16=("merge", {"levels": 16}),
        strip_10x20000=("grid", {"rows": 10, "columns": 20_000}),
        unit_grid=("grid", {"rows": 300, "columns": 300, "max_capacity": 1}),
        ac=("ac", {"n_vertices": 1450}),
        rmat_hub=("rmat", {"scale": 16}),
    ),
    Instance("zigzag-matching-200k", "zigzag", {"pairs": 100_000}, capped=True),
    Instance("bipartite-4-matching", "bipartite", {"degree": 4}, capped=True),
)
"""Shapes on which a solver that floods from one side is slow: small cuts, unit capacities, long chains, lines, strips,
trees that merge, assignments, a hub; and acyclic dense, where rows are so long that a single pass over them tells."""
SIZES: Mapping[str, tuple[Instance, ...]] = {
    "small": SMALL,
    "medium": MEDIUM,
    "large": LARGE,
    "device": DEVICE,
    "large-device": LARGE_DEVICE,
    "hard": HARD,
}
"""About 40 thousand, one million and eight million arcs; the sizes in which the papers measured GPU codes; and hard
shapes, which are a suite and not a size."""

REAL = tuple(
    Instance(name, "real", file=f"{name}.npz")
    for name in (
        "osm-andorra",
        "osm-heidelberg",
        "road-luxembourg",
        "power-pegase9241",
        "as-caida20070917",
        "snap-cit-hepph-part",
    )
)
WARM = ("osm-heidelberg", "genrmf-wide", "grid", "rmat-hub", "rmat-sets")
"""Names of the instances of the warm table."""

DRIFT = ("genrmf-wide", "grid", "rmat-hub")
"""Names of the instances on which a state is repaired a thousand times."""


def choose(size: str, only: list[str]) -> list[Instance]:
    """The instances of a size and all real ones, or of these the named ones. Raises ValueError for an unknown name."""
    known = {instance.name: instance for instance in (*SIZES[size], *REAL)}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise ValueError(f"unknown instances {', '.join(unknown)}; known are {', '.join(known)}")
    return [known[name] for name in only or known]


def real_directory(option: Path | None) -> Path | None:
    """Where the real networks are: the option, else the environment variable, else nowhere."""
    given = os.environ.get(REAL_DIRECTORY)
    return option or (Path(given) if given else None)
