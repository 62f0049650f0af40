"""Graphs of the kinds that Lee et al. partition in Table I of iG-kway, beside what they report.

Their circuits are not public, and the meshes of the DIMACS challenge are not at hand: a generated graph, or a public
one, stands for each kind. So the cuts of the two have nothing to do with each other; the times that one is faster than
from nothing, and the ratio of its cut to that from nothing, can be read side by side.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.instances import REAL_DIRECTORY, Instance
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network


@dataclass(frozen=True, slots=True)
class Published:
    """A line of Table I: k = 2, 100 iterations of tens to hundreds of modifiers on an NVIDIA A6000; G-kway, on the
    same device, is what makes a partition from nothing there."""

    name: str
    times: float
    """Times faster than from nothing."""
    cut: float
    """Its cut as a part of that from nothing."""


@dataclass(frozen=True, slots=True)
class Graph:
    name: str
    load: Callable[[], Network | None]
    """None: its file is not at hand."""
    published: Published


def network_of(n: int, tail: NDArray[np.integer], head: NDArray[np.integer]) -> Network:
    ends = np.asarray(tail, np.int32), np.asarray(head, np.int32)
    return Network(EdgeList(n, *ends, np.ones(len(tail), np.int64), undirected=True))


def circuit(n: int, m: int) -> Network:
    """Each gate is wired to one before it, and some to more. Of all wires longer than some length 45 % are ten times as
    long: some thousands of wires link the two halves then, as in the circuits of the paper."""
    rng = np.random.default_rng(1)
    tail = np.concatenate([np.arange(1, n), rng.integers(1, n, m - n + 1)])
    length = 1 + np.minimum(3 * rng.pareto(0.35, m), n).astype(np.int64)
    return network_of(n, tail, np.where(length <= tail, tail - length, rng.integers(0, tail)))


def of_instance(instance: Instance) -> Network | None:
    """Without the edges of its terminals, which are there for flows."""
    directory = os.environ.get(REAL_DIRECTORY)
    edges = instance.load(Path(directory) if directory else None)
    if edges is None:
        return None
    tail, head = np.asarray(edges.tail), np.asarray(edges.head)
    at_terminals = np.isin(tail, [edges.source, edges.sink]) | np.isin(head, [edges.source, edges.sink])
    return network_of(edges.n_vertices, tail[~at_terminals], head[~at_terminals])


def _drawn(family: str, **parameters: int) -> Callable[[], Network | None]:
    return lambda: of_instance(Instance(family, family, parameters))


def _read(file: str) -> Callable[[], Network | None]:
    return lambda: of_instance(Instance(file, "real", file=f"{file}.npz"))


USB: Final = Published("usb", 84.67, 1 / 0.98)
DES_PERF: Final = Published("des_perf", 84.46, 1 / 1.01)
TV80: Final = Published("tv80", 82.67, 1 / 1.01)
AUTHORS: Final = Published("coAuthorsCiteseer", 86.15, 1 / 0.99)
ADAPTIVE: Final = Published("adaptive", 98.27, 1 / 1.12)
NLR: Final = Published("NLR", 86.56, 1.0)

GRAPHS: Final = (
    Graph("circuit of the size of usb", lambda: circuit(139_479, 180_510), USB),
    Graph("circuit of the size of des_perf", lambda: circuit(303_690, 387_292), DES_PERF),
    Graph("circuit, a quarter of tv80", lambda: circuit(975_425, 1_324_713), TV80),
    Graph("citations cit-HepPh, a part", _read("snap-cit-hepph-part"), AUTHORS),
    Graph("roads of Luxembourg", _read("road-luxembourg"), NLR),
    Graph("Delaunay mesh", _drawn("delaunay", n_vertices=200_000), NLR),
    Graph("random geometric graph", _drawn("rgg", n_vertices=100_000), ADAPTIVE),
)
