"""After its start a worker compiles nothing: whatever is asked first takes no longer than what is asked later."""

import subprocess
import sys

PROGRAM = """
import importlib, pkgutil, sys
from contextlib import suppress
from fractions import Fraction
import numpy as np
from numba.core.dispatcher import Dispatcher
import gpu_engine
from dataclasses import replace
from gpu_engine.networks.bipartite import one_each
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.checks.chains import closed_alike
from gpu_engine.checks.domains import Closures, Trees, closures_cost_the_most
from gpu_engine.closures.detours import go_another_way
from gpu_engine.closures.domains import domains
from gpu_engine.closures.nested import levels
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.cpu.cycles import cancel_cycles
from gpu_engine.paths import decompose
from gpu_engine.checks.contractions import Slots, contraction_failures
from gpu_engine.pairs.around import edges_around
from gpu_engine.pairs.cut_tree import TreeGrower
from gpu_engine.pairs.drawing import next_round, of_joined
from gpu_engine.pairs.forest import forest
from gpu_engine.pairs.global_cut import global_cut
from gpu_engine.pairs.solver import PairSolver
from gpu_engine.checks.circulations import Barrier, prove_circulation
from gpu_engine.checks.costs import prove_cheapest
from gpu_engine.circulations.solver import find_circulation
from gpu_engine.networks.bounds import LowerBounds
from gpu_engine.checks.partitions import prove_partition
from gpu_engine.footprint import unlimited
from gpu_engine.partition.partitioner import HostPartitioner
from gpu_engine.partition.problem import Question, edge_weights
from gpu_engine.partition.resident import ResidentPartition
from gpu_engine.control import Control
from gpu_engine.errors import Infeasible
from gpu_engine.mincost.cheapest import cheapest_flow
from gpu_engine.mincost.expansion import Candidates, cheapest_expansion
from gpu_engine.parametric.probes import Prober, Scaled
from gpu_engine.mincost.cycles import cycles_of
from gpu_engine.checks.flows import prove_flow, prove_paths, prove_rest
from gpu_engine.formats import pack, unpack
from gpu_engine.matching import read_matching
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.trials import Changes
from gpu_engine.types import INFINITE
from gpu_engine.networks.updates import CapacityTable
from service.worker import answers, file_writer, json_writer
from service.packed import Columns, pack as packed, unpack as columns_of
from service.protocol import CapacitiesArgs, Operation
from service.worker.graph import Graph
from service.worker.warm_up import warm_up

warm_up(CpuEngine)

def solve(engine, state, _):
    return engine.solve(state).value

def kernels():
    found = {}
    for module in [m for name, m in sys.modules.items() if name.startswith("gpu_engine.") and ".cuda" not in name]:
        for name, kernel in vars(module).items():
            if isinstance(kernel, Dispatcher):
                found[kernel.py_func] = set(kernel.overloads)
    return found

before = kernels()
assert sum(map(len, before.values())) > 20
tail, head = np.array([0, 0, 1, 2, 1], np.int32), np.array([1, 2, 3, 3, 1], np.int32)
for undirected in (False, True, np.array([True, False, True, False, True])):
    head[4] = 4 - head[4]  # parallel to another edge, or a loop
    for ids in (None, np.arange(5) + 7, list("abcde")):
        for capacity in ([3, 2, 2, 3, 9], [INFINITE, 2, 2, 3, 9]):
            labels = None if ids is None else ids[:4]
            edges = EdgeList(4, tail, head, np.array(capacity), undirected=undirected, decimals=1, edge_ids=ids,
                             vertex_labels=labels, source=0, sink=3)
            network = Network(unpack(pack(edges)))
            engine, table = CpuEngine(network), CapacityTable(network)
            graph = Graph("g", "1", 1, 1, network, engine, table)
            states = [engine.open(Terminals.of([0], [3])), engine.open(Terminals.of([0], [3], [5], [7]))]
            names, ends = network.edge_ids.of(np.arange(4)), network.vertex_labels.of(np.arange(4))
            amounts = ["1", "2.5", "inf", "0.1"]
            long = columns_of(packed({"edges": names, "amounts": ["1", "2", "3", "4"]}))
            between = columns_of(packed({"tail": ends[:1], "head": ends[1:2]}))
            for operation in (
                Operation(op="set", edges=names, amounts=amounts),
                Operation(op="add", edges=names, amounts=amounts[:2] * 2),
                Operation(op="scale", edges=names, amounts=["2"] * 4), Operation(op="close", edges=names[:2]),
                Operation(op="reopen", tail=ends[:1], head=ends[1:2]),
                Columns("set", long["edges"], None, None, long["amounts"]),
                Columns("close", None, between["tail"], between["head"], None),
            ):
                change = table.resolve([operation], rounding="up")
                change = table.resolve([operation])
                engine.update(change.rows, change.effective)
                table.apply(change)
                for state in states:
                    engine.solve(state)
                    engine.certificate(state)
            for trials in engine.fork(states[0]).trials(1):
                trials.run(Changes.of([(np.array([0]), np.array([0]))]), Control())
            for state in states:
                flow, cut = engine.flow(state), engine.cut(state)
                limits = engine.bottlenecks(state)
                assert len(limits.edges) == len(limits.in_every)
                json_writer.dumps(answers.flow(network, flow, zeros=False, acyclic=True))
                proof = prove_flow(network, state.terminals, flow, acyclic=True)
                paths = decompose(network, state.terminals, flow, proof, 3)
                assert not prove_paths(network, flow, proof.value, paths)
                json_writer.dumps(answers.paths(network, paths))
                cancel_cycles(network.row_offsets, network.head, network.reverse_arc,
                              np.zeros(network.n_arcs, np.int64), Control().slots)
                json_writer.dumps(answers.terminals(network, state.terminals, proof))
                paid = state.terminals.paid_by(cut.source_side)
                json_writer.dumps(answers.cut(network, cut, paid))
                packed_cut = answers.cut(network, cut, paid, packed=True)
                for encoding in ("npz", "arrow"):
                    list(file_writer.pieces(encoding, {"version": 1, "cut": packed_cut}, 1))
            fixed = states[1]
            value = engine.solve(fixed).value
            prober = Prober.of(engine, fixed, fixed.terminals, Scaled(np.array([0, 2])), solve)
            assert prober(Fraction(1, 3)).value >= 0
            for state in states:
                flow = engine.flow(state, acyclic=True)
                order = list(levels(network, state.terminals, flow, Control()))[-1]
                closures = Closures(np.arange(5), np.arange(4), np.abs(flow[:4]))
                for parent in domains(network, flow, order, Control()):
                    trees = Trees(parent, False)
                    closures_cost_the_most(network, state.terminals, order, trees, flow, value, closures)
                closed_alike(network, state.terminals)
                go_another_way(network, flow, np.arange(5), Control())
            wider = Candidates(np.array([1, 3]), np.array([1, 2]), np.array([INFINITE, 5]))
            with suppress(Infeasible):
                cheapest_expansion(network, fixed.terminals, wider, value, 1, flow=engine.flow(fixed, acyclic=False))
            json_writer.dumps(answers.capacities(graph, CapacitiesArgs()))
            every = np.arange(4, dtype=np.int32)
            PairSolver.of(network, every).seat().values(every[:3], every[1:], Control())
            global_cut(network, Control())
            if undirected is True:
                grower = TreeGrower(network, every[1:])
                list(grower.grow(grower.seat(), Control()))
                grower.finish()
                seat = PairSolver.of(network, every).seat()
                for number in range(4):
                    next_round(of_joined(seat.solver.whole, every == 0).whole, 1, number)
                made = forest(seat.solver, every, 1)
                around = edges_around(seat.solver.whole, made).around
                flows = made.pairs[made.made[:1]]
                contraction_failures(*seat.solver.whole[1:], Slots(made.slot, made.up[:1], flows), around)
            least = np.array([1 << 40])
            rows = np.array([4]) if undirected is False else np.empty(0, np.int64)
            plain = Network(edges)
            bounds = LowerBounds.of(plain, states[1].terminals, rows, np.ones(len(rows), np.int64), np.array([1]))
            assert not prove_circulation(plain, bounds, find_circulation(plain, bounds)).failures
            for weights in ("capacity", "one"):
                if weights == "capacity" and plain.n_infinite:
                    continue
                weight, divided = np.ones(4, np.int64), ResidentPartition(Question(2, Fraction(1, 2), weights))
                divided.bring(plain, weight, Control(), unlimited)
                claimed = divided.cut, divided.part_weight
                assert prove_partition(plain, edge_weights(plain, weights), weight, divided.part, 2, claimed).valid
            capped = Terminals.of([0], [3], [1 << 41], [1 << 41])
            assert isinstance(find_circulation(plain, LowerBounds.of(plain, capped, rows, rows, least)), Barrier)
            list(file_writer.pieces("npz", answers.capacities(graph, CapacitiesArgs(encoding="npz")), 1))
path, weight = np.arange(9000, dtype=np.int32), np.ones(9000, np.int64)
chain, divided = Network(EdgeList(9000, path[:-1], path[1:], weight[1:])), ResidentPartition(Question(2, Fraction(1)))
divided.bring(chain, weight, Control(), unlimited)
chain = chain.fork()
chain.set_capacity(np.arange(99), weight[:99] + 1)
divided.bring(chain, weight, Control(), unlimited)
HostPartitioner().holds(divided._graph, divided._books, 100, 0, Control(), unlimited)
pairs = replace(edges, tail=np.array([0, 0, 1, 1, 0], np.int32), head=np.array([2, 3, 2, 3, 2], np.int32),
                capacity=np.full(5, 10), undirected=False)
network = Network(pairs)
engine = CpuEngine(network)
state = engine.open(one_each(network))
engine.solve(state)
found = read_matching(engine, state)
assert not found.failures(network.edge_tail(np.arange(5)), network.edge_head(np.arange(5)))
json_writer.dumps(answers.matched(network, found) | answers.cover(network, found))
ends, costs = Terminals.of([0], [2]), np.array([3, 1, -2, 4, 0])
cheap = cheapest_flow(network, costs, ends, 5)
assert not prove_cheapest(network, costs, ends, cheap.flow, 5, cheap.potential, cheap.sink_potential).failures
rest = cheap.flow - cycles_of(network, cheap.flow)
proof = prove_rest(network, ends, cheap.flow, prove_flow(network, ends, cheap.flow), rest)
assert not prove_paths(network, rest, 5, decompose(network, ends, rest, proof, 3))
tail = np.repeat(np.arange(20000, dtype=np.int32), 4)
wide = EdgeList(20000, tail, np.random.default_rng(1).integers(0, 20000, len(tail), np.int32), np.ones(len(tail), int))
engine = CpuEngine(Network(wide))
state = engine.open(Terminals.of([1], [2]))
engine.solve(state)
assert state.near is not None and engine.certificate(state, complete=False).valid
engine.update(np.arange(9), np.zeros(9, np.int64))
engine.solve(state)
assert engine.certificate(state).valid
new = [f"{kernel.__module__}.{kernel.__name__}{sorted(map(str, signatures - before.get(kernel, set())))}"
       for kernel, signatures in kernels().items() if signatures - before.get(kernel, set())]
assert not new, new
print("nothing new")
"""

KERNELS = """
import ast, importlib, inspect, pkgutil, sys
from types import ModuleType
from numba.core.dispatcher import Dispatcher
import gpu_engine
from gpu_engine.cpu.engine import CpuEngine
from service.worker.warm_up import warm_up

modules = [importlib.import_module(found.name) for found in pkgutil.walk_packages(gpu_engine.__path__, "gpu_engine.")
           if not found.name.startswith("gpu_engine.cuda")]

def is_kernel(node):
    return isinstance(node, ast.FunctionDef) and any("njit" in ast.unparse(each) for each in node.decorator_list)

def named(module, node):
    if isinstance(node, ast.Name):
        return vars(module).get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        holder = vars(module).get(node.value.id)
        return getattr(holder, node.attr, None) if isinstance(holder, ModuleType) else None
    return None

called, every = {}, set()
for module in modules:
    every |= {value for value in vars(module).values() if isinstance(value, Dispatcher)}
    for top in ast.parse(inspect.getsource(module)).body:
        if not is_kernel(top):
            found = (named(module, node) for node in ast.walk(top))
            called |= {kernel: module.__name__ for kernel in found if isinstance(kernel, Dispatcher)}
assert 40 < len(called) < len(every)
warm_up(CpuEngine)
one_way = sorted(
    kernel.py_func.__name__
    for kernel in every
    if "mirror" in inspect.signature(kernel.py_func).parameters and 0 < len(kernel.overloads) < 2
)
assert not one_way, f"compiled for one direction alone: {one_way}"
cold = sorted(f"{kernel.py_func.__module__}.{kernel.py_func.__name__}" for kernel in called if not kernel.overloads)
print("not reached:", *cold)
"""
"""Kernels that others call are compiled with these, or within them."""

OF_A_DEVICE = {
    "gpu_engine.networks.links.swap_capacity",
    "gpu_engine.checks.reductions.is_reduction",
    "gpu_engine.partition.batch._keys",
    "gpu_engine.partition.batch._rows",
    "gpu_engine.partition.survey._changed_weights",
}
"""Called by device engines alone, which have a start of their own."""


def run(program: str) -> str:
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


def test_nothing_is_compiled_after_the_start() -> None:
    assert "nothing new" in run(PROGRAM)


def test_every_kernel_that_is_called_is_reached() -> None:
    told = run(KERNELS)
    assert told.startswith("not reached:")
    assert set(told.split(": ", 1)[-1].split()) - OF_A_DEVICE == set()
