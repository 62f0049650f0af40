"""Edges whose flow can go another way, many by one search.

A way round the edge, and back over it against its flow, is a way round each edge that it passes against its flow. Where
flow goes along a chain and the only other way is all round, one search shows it for most of the chain. Each way is
proven by `gpu_engine.checks.detours`.
"""

from typing import Final

import numpy as np
from numba import njit

from gpu_engine.checks.detours import room_round
from gpu_engine.closures.domains import residual_arcs
from gpu_engine.control import Control
from gpu_engine.cpu.pseudoflow import CANCEL, POLL_MASK
from gpu_engine.errors import Cancelled
from gpu_engine.networks.network import Network
from gpu_engine.types import ArcArray, BoolArray, EdgeArray, UnitArray, VertexArray

SIZES: Final = 16
"""All searches together may scan the network (n + arcs) so many times, and once more for each `WORTH` edges found."""

WORTH: Final = 512


def go_another_way(network: Network, flow: UnitArray, rows: EdgeArray, control: Control) -> BoolArray:
    """bool[r]: the edges among ``rows``, each named once, whose flow can go another way as a search shows. ``flow`` is
    feasible, int64[m]. O(n + arcs), and as much for each `WORTH` edges shown. Raises `Cancelled`."""
    amounts, arcs = np.abs(flow[rows]), network.edge_arc[rows]
    along = np.where(flow[rows] < 0, network.reverse_arc[arcs], arcs) if network.n_arcs else arcs
    along = np.where((arcs < 0) | (amounts == 0), -1, along).astype(np.int32)
    residual = residual_arcs(network, flow)
    columns = network.row_offsets, network.head, network.reverse_arc
    shown = np.zeros(len(rows), np.bool_)
    for prefers in (False, True):
        _detours(*columns, residual, along, amounts, shown, prefers, control.slots)
        if control.cancelled:
            raise Cancelled("cancelled while ways round edges are looked for")
    return shown


@njit(cache=True, nogil=True)
def _detours(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    residual: UnitArray,
    along: ArcArray,
    amounts: UnitArray,
    shown: BoolArray,
    prefers: bool,
    slots: UnitArray,
) -> None:
    """Mark what is ``shown`` bool[r], where row i carries its amount by the arc ``along``. Ways are the shortest ones,
    or where a search ``prefers`` it those with the fewest arcs that show nothing new."""
    n, arcs = len(row_offsets) - 1, len(head)
    used = np.zeros(arcs, np.bool_)
    first, following = np.full(arcs, -1, np.int32), np.full(len(along), -1, np.int32)
    for i in range(len(along)):
        if along[i] >= 0:
            following[i] = first[along[i]]
            first[along[i]] = i
    seen, done, via = np.full(n, -1, np.int32), np.full(n, -1, np.int32), np.empty(n, np.int32)
    queue, later, way = np.empty(arcs + 1, np.int32), np.empty(arcs + 1, np.int32), np.empty(n + 1, np.int32)
    scanned, count_shown = 0, 0
    for i in range(len(along)):
        if along[i] < 0 or shown[i]:
            continue
        if scanned > (SIZES + count_shown // WORTH) * (n + arcs) or (i & POLL_MASK == 0 and slots[CANCEL] != 0):
            break
        over, back = along[i], reverse_arc[along[i]]
        start, end = head[back], head[over]
        seen[start], queue[0], begin, count, farther = i, start, 0, 1, 0
        while begin < count and seen[end] != i:
            if prefers:
                count -= 1
                v = queue[count]
            else:
                v = queue[begin]
                begin += 1
            if done[v] != i:
                done[v] = i
                scanned += row_offsets[v + 1] - row_offsets[v]
                for a in range(row_offsets[v], row_offsets[v + 1]):
                    w = head[a]
                    if done[w] == i or a == over or residual[a] < amounts[i]:
                        continue
                    j = first[reverse_arc[a]]
                    if prefers and j >= 0 and not shown[j]:
                        seen[w], via[w], queue[count] = i, a, w
                        count += 1
                    elif seen[w] != i:
                        seen[w], via[w], later[farther] = i, a, w
                        farther += 1
            if begin == count:
                queue, later, begin, count, farther = later, queue, 0, farther, 0
        if seen[end] != i:
            continue
        way[0], length, v = back, 1, end
        while v != start:
            way[length] = via[v]
            length += 1
            v = head[reverse_arc[via[v]]]
        way[:length] = way[:length][::-1].copy()
        room = room_round(head, reverse_arc, residual, way[:length], used)
        for a in way[:length]:
            j = first[reverse_arc[a]]
            while j >= 0:
                count_shown += not shown[j] and amounts[j] <= room
                shown[j] |= amounts[j] <= room
                j = following[j]
