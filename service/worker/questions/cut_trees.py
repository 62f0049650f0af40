"""The Gomory-Hu tree of an undirected graph, and the least cut of any graph."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from gpu_engine.errors import InvalidTerminals, NotUndirected
from gpu_engine.footprint import Footprint
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import present_of
from gpu_engine.pairs.cut_tree import CutTree, TreeGrower, tree_nbytes
from gpu_engine.pairs.global_cut import GlobalCut, global_cut, global_cut_nbytes
from gpu_engine.text.counted import counted
from gpu_engine.types import INFINITE, VertexArray
from service.errors import ServiceError
from service.protocol import TEXTS, CutTreeArgs, Envelope, GlobalCutArgs
from service.store.jobs.record import Result
from service.worker import answers
from service.worker.columns import FlagColumn, each, listed
from service.worker.copies import Copies
from service.worker.cut_sides import cut_sides
from service.worker.graph import Graph
from service.worker.pinned import pin
from service.worker.questions.terminals import read_distinct_vertices
from service.worker.result_writer import written_as
from service.worker.running.costs import rows_s
from service.worker.running.results import Results
from service.worker.running.task import Rest, Task
from service.worker.solving import Solver
from service.worker.time_limit import time_limit

TREE_BYTES: Final = 128
"""Bytes of memory for each vertex while a tree is made, proven and written, without its rows."""
EDGE_BYTES: Final = 48
"""Bytes of memory for each edge, for the proof and for the answer of a cut."""


class CutTrees:
    """Answers the commands GOMORY_HU_TREE and GLOBAL_MIN_CUT beside the graph's lane, about the version of then."""

    def __init__(self, copies: Copies, solver: Solver, results: Results) -> None:
        self._copies = copies
        self._solver = solver
        self._results = results

    def tree(self, task: Task) -> Rest:
        args, began = CutTreeArgs.model_validate(task.command.args), time.perf_counter()
        graph = self._copies.at_least(task.command.graph, args.min_version)
        terminals = _terminals(graph.network, args)
        network = graph.network
        own = tree_nbytes(network) + TREE_BYTES * network.n_vertices

        def work(network: Network) -> dict[str, object]:
            found = _grown(task, network, terminals)
            return _tree_parts(network, found, args)

        needed = Footprint(own + EDGE_BYTES * network.n_edges)
        return self._beside(task, graph, args, began, needed, work, len(terminals))

    def global_cut(self, task: Task) -> Rest:
        args, began = GlobalCutArgs.model_validate(task.command.args), time.perf_counter()
        graph = self._copies.at_least(task.command.graph, args.min_version)
        own = global_cut_nbytes(graph.network.n_vertices, graph.network.n_arcs) + EDGE_BYTES * graph.network.n_edges
        if len(graph.network.deleted_vertices):  # the cut is found in a network without them
            own += graph.network.nbytes + EDGE_BYTES * graph.network.n_edges

        def work(network: Network) -> dict[str, object]:
            return _cut_parts(network, _global_cut(task, network), args)

        return self._beside(task, graph, args, began, Footprint(own), work, graph.network.n_vertices)

    def _beside(
        self,
        task: Task,
        graph: Graph,
        args: CutTreeArgs | GlobalCutArgs,
        began: float,
        needed: Footprint,
        work: Callable[[Network], dict[str, object]],
        n_rows: int,
    ) -> Rest:
        with ExitStack() as stack:
            network = pin(graph, task, self._copies.residents, self._solver, needed, stack)
            head = answers.about(graph)
            envelope = Envelope(version=graph.version, generation=graph.generation)
            used_s = time.perf_counter() - began
            done = partial(self._answered, task, args, network, head, envelope, work, used_s)
            return Rest(done, stack.pop_all().close, rows_s(n_rows, network.n_arcs))

    def _answered(
        self,
        task: Task,
        args: CutTreeArgs | GlobalCutArgs,
        network: Network,
        head: dict[str, object],
        envelope: Envelope,
        work: Callable[[Network], dict[str, object]],
        used_s: float,
    ) -> Result:
        with time_limit(task.control, args.time_limit_s, used_s):
            began = time.perf_counter()
            parts = work(network)
            solve_ms = 1e3 * (time.perf_counter() - began)
            timings_ms = {"solve": solve_ms, "total": 1e3 * used_s + solve_ms}
            answer = head | parts | {"timings_ms": answers.rounded(timings_ms)}
            return written_as(args.encoding, network.decimals, self._results, answer, envelope, task.control)


def _terminals(network: Network, args: CutTreeArgs) -> VertexArray:
    """Raises `NotUndirected`, `UnknownVertex`, `InvalidTerminals`, and too_large."""
    rows = network.live(np.arange(network.n_edges))
    directed = rows[~network.is_undirected(rows)]
    if len(directed):
        ids = network.edge_ids.of(directed[:10])
        several = counted(len(directed), "edge is", "edges are")
        raise NotUndirected(f"{several} directed: a Gomory-Hu tree is of undirected ones, pairs are of any", edges=ids)
    if args.terminals is None:
        terminals = np.flatnonzero(network.there).astype(np.int32)
    else:
        terminals = read_distinct_vertices(network, args.terminals, "terminal", "/terminals")
    if len(terminals) > args.most:
        limit = f"a tree has at most {args.most} terminals (HEADRACE_MAX_QUESTION_ROWS)"
        raise ServiceError("too_large", f"{limit}, not {len(terminals)}: name some", field="/terminals")
    if not len(terminals):
        raise InvalidTerminals("a tree has one vertex or more", field="/terminals")
    return terminals


def _grown(task: Task, network: Network, terminals: VertexArray) -> CutTree:
    """Row by row; a cancel stops it between two, and within a long one."""
    grower = TreeGrower(network, terminals)
    for row in grower.grow(grower.seat(), task.control):
        task.row(row, len(terminals) - 1)
    task.row(len(terminals) - 1, len(terminals) - 1)
    return grower.finish()


def _global_cut(task: Task, network: Network) -> GlobalCut:
    """Of the vertices that are there: beside one that was deleted any cut would cost nothing."""
    if not len(network.deleted_vertices):
        return global_cut(network, task.control, task.row)
    edges = replace(network.edge_list(), vertex_labels=None, edge_ids=None)
    found = global_cut(Network(present_of(edges, network)), task.control, task.row)
    source_side = network.there
    source_side[source_side] = found.source_side
    return GlobalCut(found.value, source_side)


def _tree_parts(network: Network, found: CutTree, args: CutTreeArgs) -> dict[str, object]:
    names = network.vertex_labels
    parts: dict[str, object] = {"certificate": {"valid": True, "rows": len(found.tail)}}
    if "tree" in args.fields:
        parts["tree"] = {
            "tail": answers.labels(names, listed(found.tail)),
            "head": answers.labels(names, listed(found.head)),
            "value": answers.amounts(network, found.value, each(found.value)),
        } | ({} if args.encoding in TEXTS else {"unlimited": FlagColumn(found.value == INFINITE)})
    if "groups" in args.fields:
        others = np.flatnonzero((found.group != np.arange(network.n_vertices)) & network.there)
        parts["groups"] = {
            "vertices": answers.labels(names, listed(others)),
            "terminal": answers.labels(names, listed(found.group[others])),
        }
    return parts


def _cut_parts(network: Network, found: GlobalCut, args: GlobalCutArgs) -> dict[str, object]:
    value = answers.amount(network, found.value)
    proven = {"valid": True, "rows": network.n_live_vertices - 1}
    parts: dict[str, object] = {"certificate": proven, "value": value}
    if not found.value:
        parts["reason"] = "no open edge leads from the source side to the sink side"
    if "cut" in args.fields:
        rows = np.arange(network.n_edges)
        leaves, enters = found.source_side[network.edge_tail(rows)], found.source_side[network.edge_head(rows)]
        crosses = (leaves & ~enters) | (network.is_undirected(rows) & enters & ~leaves)
        edges = listed(np.flatnonzero(crosses & (network.capacity > 0)))
        parts["cut"] = {
            "value": value,
            "edges": answers.labels(network.edge_ids, edges),
            "pays": answers.amounts(network, network.capacity, edges),
        } | cut_sides(network, found.source_side, packed=args.encoding not in TEXTS)
    return parts
