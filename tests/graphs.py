"""Small networks drawn by hand, each with its answer."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.types import INFINITE


@dataclass(frozen=True)
class Drawn:
    edges: EdgeList
    value: int
    cut_edges: tuple[int, ...] | None = None
    """Rows of the only minimum cut; None if there are several."""


def drawn(n: int, rows: list[tuple[int, int, int]], undirected: bool | list[bool] = False) -> EdgeList:
    tail, head, capacity = (np.array(column) for column in zip(*rows, strict=True))
    both = undirected if isinstance(undirected, bool) else np.array(undirected)
    return EdgeList(
        n, tail.astype(np.int32), head.astype(np.int32), capacity.astype(np.int64), both, source=0, sink=n - 1
    )


def diamond() -> Drawn:
    """
    ::

            3 --> 1 -- 2
          /       |      \\
        0         1        --> 3      rows: 0>1:3 0>2:2 1>2:1 1>3:2 2>3:3
          \\       v      /
            2 --> 2 -- 3
    """
    return Drawn(drawn(4, [(0, 1, 3), (0, 2, 2), (1, 2, 1), (1, 3, 2), (2, 3, 3)]), 5)


def bottleneck() -> Drawn:
    """
    ::

        0 ==9==> 1 --4--> 2 ==9==> 3
    """
    return Drawn(drawn(4, [(0, 1, 9), (1, 2, 4), (2, 3, 9)]), 4, (1,))


def parallel_edges() -> Drawn:
    """
    ::

          --2-->
        0 --3--> 1 --9--> 2
          <--5--
    """
    return Drawn(drawn(3, [(0, 1, 2), (0, 1, 3), (1, 0, 5), (1, 2, 9)]), 5, (0, 1))


def undirected_bridge() -> Drawn:
    """
    ::

        0 --8--> 2 --4-- 1 --7--> 3        row 1 is drawn 1--2, used from 2 to 1
    """
    return Drawn(drawn(4, [(0, 2, 8), (1, 2, 4), (1, 3, 7)], [False, True, False]), 4, (1,))


def self_loop() -> Drawn:
    """
    ::

              _
             / \\ 50
        0 --3--> 1 --2--> 2
    """
    return Drawn(drawn(3, [(0, 1, 3), (1, 1, 50), (1, 2, 2)]), 2, (2,))


def apart() -> Drawn:
    """
    ::

        0 --5--> 1        2 --5--> 3
    """
    return Drawn(drawn(4, [(0, 1, 5), (2, 3, 5)]), 0, ())


def endless_inside() -> Drawn:
    """
    ::

        0 ==inf==> 1 --6--> 2 ==inf==> 3
    """
    return Drawn(drawn(4, [(0, 1, INFINITE), (1, 2, 6), (2, 3, INFINITE)]), 6, (1,))


ALL = (diamond, bottleneck, parallel_edges, undirected_bridge, self_loop, apart, endless_inside)


CITY: Final[dict[str, Any]] = {
    "tail": ["s", "s", "u", "u", "v"],
    "head": ["u", "v", "v", "t", "t"],
    "capacity": [4, 3, 2, 2, 4],
    "cost": [1, 3, 1, 4, 1],
    "edge_ids": ["a", "b", "c", "d", "e"],
    "source": "s",
    "sink": "t",
}
"""
::

       u --d 2 at 4--> t        a: 4 at 1, from s to u
     / |             /          b: 3 at 3, from s to v
    s  c 2 at 1     e 4 at 1
     \\ v          /
       v --------
"""
