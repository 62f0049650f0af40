"""Seeded synthetic networks, drawn without a Python loop over edges.

Every generator takes keyword parameters only, the first of them `seed`, and returns an `EdgeList` with its
source and sink set; the same parameters and NumPy version give the same network. The default sizes have about
a million arcs. Parameters without an instance raise `InvalidNetwork`.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from gpu_engine.errors import InvalidNetwork
from gpu_engine.generators.genrmf import genrmf, genrmf_long, genrmf_wide
from gpu_engine.generators.grid import grid, vision_grid
from gpu_engine.generators.levels import acyclic_dense, chains, line, rlg, rlg_long, rlg_wide
from gpu_engine.generators.narrow import bipartite, digraph, merge, tree, zigzag
from gpu_engine.generators.planar import delaunay, dispatch, geometric, road
from gpu_engine.generators.rmat import rmat, rmat_sets
from gpu_engine.networks.edgelist import EdgeList

__all__ = [
    "FAMILIES",
    "acyclic_dense",
    "bipartite",
    "chains",
    "delaunay",
    "digraph",
    "dispatch",
    "generate",
    "genrmf",
    "genrmf_long",
    "genrmf_wide",
    "geometric",
    "grid",
    "line",
    "merge",
    "rlg",
    "rlg_long",
    "rlg_wide",
    "rmat",
    "rmat_sets",
    "road",
    "tree",
    "vision_grid",
    "zigzag",
]

FAMILIES: Mapping[str, Callable[..., EdgeList]] = MappingProxyType(
    {
        "genrmf": genrmf,
        "genrmf-long": genrmf_long,
        "genrmf-wide": genrmf_wide,
        "rlg": rlg,
        "rlg-long": rlg_long,
        "rlg-wide": rlg_wide,
        "chains": chains,
        "line": line,
        "ac": acyclic_dense,
        "rmat": rmat,
        "rmat-ms": rmat_sets,
        "grid": grid,
        "vision": vision_grid,
        "rgg": geometric,
        "delaunay": delaunay,
        "road": road,
        "digraph": digraph,
        "tree": tree,
        "merge": merge,
        "zigzag": zigzag,
        "bipartite": bipartite,
        "dispatch": dispatch,
    }
)
"""Family name to generator. All but `genrmf` and `rlg` need no parameter beyond the seed."""


def generate(family: str, *, seed: int, **parameters: Any) -> EdgeList:
    """Draw an instance of `family`; its generator's docstring says what the parameters are."""
    if family not in FAMILIES:
        raise InvalidNetwork(f"unknown family {family!r}; known are {', '.join(FAMILIES)}")
    return FAMILIES[family](seed=seed, **parameters)
