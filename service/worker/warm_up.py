"""What a worker does before it takes commands: every kernel is compiled, or read from the cache, on tiny networks.

Compiling takes seconds in which no other thread runs: a first question, or a first update of its kind, must not.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from gpu_engine.checks.chains import closed_alike
from gpu_engine.checks.circulations import prove_circulation
from gpu_engine.checks.contractions import Slots, contraction_failures
from gpu_engine.checks.costs import prove_cheapest
from gpu_engine.checks.domains import Closures, Trees, closures_cost_the_most
from gpu_engine.checks.flows import prove_flow, prove_paths
from gpu_engine.checks.partitions import prove_partition
from gpu_engine.checks.scans import first_broken
from gpu_engine.checks.throughput import prove_throughput
from gpu_engine.circulations.solver import find_circulation
from gpu_engine.closures.detours import go_another_way
from gpu_engine.closures.domains import domains
from gpu_engine.closures.nested import levels
from gpu_engine.control import Control
from gpu_engine.engine import Engine, FlowState
from gpu_engine.footprint import unlimited
from gpu_engine.formats import pack, unpack
from gpu_engine.matching import read_matching
from gpu_engine.mincost.cycles import cycles_of
from gpu_engine.mincost.expansion import Candidates, cheapest_expansion
from gpu_engine.mincost.potentials import potentials
from gpu_engine.mincost.problem import problem_of
from gpu_engine.mincost.successive import sent
from gpu_engine.networks.bipartite import one_each
from gpu_engine.networks.bounds import LowerBounds
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import grow
from gpu_engine.networks.marks import Marks
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.updates import CapacityTable
from gpu_engine.pairs.around import edges_around
from gpu_engine.pairs.cut_tree import TreeGrower
from gpu_engine.pairs.drawing import next_round, of_joined
from gpu_engine.pairs.forest import forest, split
from gpu_engine.pairs.global_cut import global_cut
from gpu_engine.pairs.solver import PairSolver
from gpu_engine.parametric.probes import Prober, Scaled
from gpu_engine.parametric.spans import SpanProber
from gpu_engine.partition.buckets import bucketed, link_weights
from gpu_engine.partition.contract import drawn_together, parts_of
from gpu_engine.partition.problem import Question, edge_weights
from gpu_engine.partition.resident import ResidentPartition
from gpu_engine.partition.survey import changed_marks
from gpu_engine.paths import decompose
from gpu_engine.select import run_rare_kernels, unit_flow
from gpu_engine.trials import Changes
from gpu_engine.types import INFINITE
from service import packed
from service.packed import Columns
from service.protocol import MaxFlowArgs
from service.worker import answers, file_writer, json_writer
from service.worker.graph import OpenEngine
from service.worker.questions.terminals import read_terminals

NAMES = ("s", "a", "b", "t", *map(str, range(252)))
"""Labels of the network that is solved: it has enough vertices that a proof looks only at what an update changed."""

EDGES = EdgeList(
    len(NAMES),
    np.array([0, 0, 1, 2], np.int32),
    np.array([1, 2, 3, 3], np.int32),
    np.array([3, 2, 2, 3], np.int64),
    edge_ids=["sa", "sb", "at", "bt"],
    vertex_labels=NAMES,
)
OPPOSITE = replace(
    EDGES,
    tail=np.array([0, 0, 1, 3], np.int32),
    head=np.array([1, 2, 3, 1], np.int32),
    undirected=np.array([1, 0, 0, 1], bool),
)
"""Two of its edges share a link, and not all of them are directed."""

COMPLETE = EdgeList(
    5,
    np.array([0, 0, 0, 1, 1, 2], np.int32),
    np.array([1, 2, 3, 2, 3, 3], np.int32),
    np.arange(1, 7),
    undirected=True,
)
"""All but the last of its vertices are linked with three others."""

PAIRS = replace(EDGES, tail=np.array([0, 0, 1, 1], np.int32), head=np.array([2, 3, 2, 3], np.int32))


def warm_up(open_engine: OpenEngine) -> None:
    """Compile every host kernel. Seconds at first, then from the cache."""
    warm_up_engine(open_engine)
    warm_up_others()


def warm_up_engine(open_engine: OpenEngine) -> None:
    """The kernels of an engine: two thirds of the time."""
    for edges in (EDGES, OPPOSITE):
        _question(Network(unpack(pack(edges))), open_engine)
    _growth(Network(EDGES), open_engine)
    _matching(Network(PAIRS), open_engine)
    _wider(Network(EDGES), open_engine)
    run_rare_kernels(Network(EDGES), Terminals.of([0], [3]))


def warm_up_others() -> None:
    """The kernels that no engine is needed for, so that another process can compile them at the same time."""
    _pairs()
    for edges, path in ((EDGES, [0, 2]), (OPPOSITE, [0, 1, 2])):
        _answers(Network(unpack(pack(edges))), path)
    _updates(Network(EDGES))
    _cheapest(Network(EDGES))
    _circulations(Network(EDGES))
    _partitions(Network(EDGES))


def _question(network: Network, open_engine: OpenEngine) -> None:
    engine = open_engine(network)
    args = MaxFlowArgs(sources=["s"], sinks=["t"], supply=["9"], demand=["9"])
    pairs = Terminals.of([0], [3]), read_terminals(network, args), Terminals.of([3], [0])  # the last have no flow
    states = [engine.open(terminals) for terminals in pairs]
    for state in states:
        engine.solve(state)
        engine.certificate(state)
    for capacity in (1, 5, INFINITE, 2):
        engine.update(np.array([0, 3]), np.array([capacity, 3]))
        for state in states:
            engine.solve(state)
            engine.certificate(state, complete=False)
    for trials in engine.fork(states[0]).trials(1):
        trials.run(Changes.closing(np.array([0, 1]), np.array([0])), Control())
    nothing = np.empty(0, np.int64)
    engine.fork(states[1]).overlay(nothing, nothing, pairs[0])  # the same without caps
    for state in states:
        engine.flow(state)
        cut = engine.cut(state)
        json_writer.dumps(answers.cut(network, cut, cut.paid(state.terminals)))
        engine.bottlenecks(state)
        engine.certificate(state)
        engine.close(state)


def _answers(network: Network, path: list[int]) -> None:
    """A flow of 1 over these edges is shortened, proved, told as paths, and written."""
    ends, flow = Terminals.of([0], [3]), unit_flow(network, path)
    proof = prove_flow(network, ends, flow, acyclic=True)
    capacity = network.arc_capacity()
    assert first_broken(network.reverse_arc, capacity, capacity) < 0
    prove_throughput(network, flow, np.zeros(1, np.int32), np.ones(1, np.int64))
    paths = decompose(network, ends, flow, proof, top=9)
    prove_paths(network, flow, proof.value, paths)
    json_writer.dumps(answers.paths(network, paths))
    carried = answers.terminals(network, ends, proof)
    answer = {"flow": answers.flow(network, flow, zeros=True, acyclic=True), "terminals": carried}
    json_writer.dumps(answer)
    list(file_writer.pieces("npz", {"version": 1, **answer}, network.decimals))


def _updates(network: Network) -> None:
    """The amounts and edges of a PATCH are read."""
    table = CapacityTable(network)
    named = {"edges": network.edge_ids.of(np.arange(2)), "amounts": ["1", "2"]}
    ends: dict[str, Sequence[str]] = {"tail": ["s"], "head": ["a"]}
    by_name, by_ends = (packed.unpack(packed.pack(OrderedDict(columns))) for columns in (named, ends))
    amounts = by_name["amounts"]
    assert not isinstance(amounts, np.ndarray)
    for operation in (
        Columns("set", by_name["edges"], None, None, amounts),
        Columns("scale", by_name["edges"], None, None, amounts),
    ):
        table.resolve([operation])
        table.resolve([operation], rounding="nearest")
    table.resolve([Columns("close", None, by_ends["tail"], by_ends["head"], None)])


def _growth(network: Network, open_engine: OpenEngine) -> None:
    engine = open_engine(network)
    state = engine.open(Terminals.of([0], [3]))
    engine.solve(state)
    ends = np.array([0, 4], np.int32), np.array([4, 3], np.int32)
    engine.grow(grow(network, Structure(1, ["new"], *ends, np.zeros(2, np.bool_), ["new", "newer"])))
    engine.solve(state)
    engine.close(state)


def _cheapest(network: Network) -> None:
    """What is compiled for a cheapest flow, and for its proof; so much cannot flow."""
    ends = Terminals.of([0], [3])
    problem = problem_of(network, np.zeros(4, np.int64), ends, 0)
    found, _ = potentials(problem.n_vertices, problem.tail, problem.head, problem.cost, Control())
    sent(problem, np.zeros(len(problem.tail), np.int64), 9, 0, Control(), unlimited)
    flow = np.zeros(4, np.int64)
    prove_cheapest(network, problem.cost[:4], ends, flow, 0, found[:-2], 0)
    cycles_of(network, flow)


def _wider(network: Network, open_engine: OpenEngine) -> None:
    """What more would flow if edges were wider, by a factor or for money, and what less without them."""
    engine, ends, rows = open_engine(network), Terminals.of([0], [3]), np.array([1, 2])
    state = engine.open(ends)
    value = engine.solve(state).value

    def solve(engine: Engine, state: FlowState, _: Terminals) -> int:
        return engine.solve(state).value

    probe = SpanProber(Prober.of(engine, state, ends, Scaled(np.array([0, 1])), solve))
    for factor in (0, 2, 1):
        probe(Fraction(factor))
    candidates = Candidates(rows, np.array([1, 2]), np.array([INFINITE, 1]))
    cheapest_expansion(network, ends, candidates, value, 1, flow=engine.flow(state, acyclic=False))
    flow = engine.flow(state, acyclic=True)
    level = list(levels(network, ends, flow, Control()))[-1]
    closures = Closures(np.arange(2), rows[:1], flow[rows[:1]])
    for parent in domains(network, flow, level, Control()):
        closures_cost_the_most(network, ends, level, Trees(parent, True), flow, value, closures)
    go_another_way(network, flow, rows, Control())
    closed_alike(network, ends)
    engine.close(state)


def _pairs() -> None:
    network = Network(replace(EDGES, capacity=np.array([3, 2, INFINITE, 3], np.int64), undirected=True))
    ends, control = np.array([0, 3], np.int32), Control()
    seat = PairSolver.of(network, ends).seat()
    seat.values(ends[:1], ends[1:], control)
    seat.desk.memory[2] = 0  # the search is given up, and the pair solved from zero
    for made_of, terminals in ((network, ends), (Network(COMPLETE), np.arange(4, dtype=np.int32))):
        grower = TreeGrower(made_of, terminals)
        cutting = grower.seat()
        cutting.desk.memory[2] = 0
        for _ in grower.grow(cutting, control):
            pass
        grower.finish()
    whole, made = seat.solver.whole, forest(seat.solver, ends, 0)
    edges = edges_around(whole, made)
    assert edges is not None
    contraction_failures(*whole[1:], Slots(made.slot, made.up[:1], made.pairs[:1]), edges.around)
    split(made, 0, 3, 3, ends[:1], False)
    global_cut(network, control)
    for number in range(4):  # as few looks do not draw anything together
        next_round(of_joined(whole, np.zeros(4, np.bool_)).whole, 1, number)


def _circulations(network: Network) -> None:
    """One that is there, and one that is not."""
    for least in (4, 5):
        rows, amounts = np.array([0]), np.array([1])
        bounds = LowerBounds.of(network, Terminals.of([0], [3]), rows, amounts, np.array([0]), np.array([least]))
        found = find_circulation(network, bounds)
        if isinstance(found, np.ndarray):
            prove_circulation(network, bounds, found)


def _partitions(network: Network) -> None:
    """From nothing, which starts no process for so few vertices for each part, and brought up to date: with another
    vertex, and with one that weighs too much; and a network of very few vertices."""
    n, m = network.n_vertices, network.n_edges
    ends = np.array([0, n], np.int32), np.array([n, 3], np.int32)
    grown = grow(network, Structure(1, ["new"], *ends, np.zeros(2, np.bool_), ["new", "newer"])).network.fork()
    grown.set_capacity(np.array([m, m + 1]), np.array([1, 2]))
    for question in (Question(100, Fraction(1)), Question(100, Fraction(1), "one")):
        found, weight = ResidentPartition(question), np.ones(n, np.int64)
        found.bring(network, weight, Control(), unlimited)
        weight = np.ones(n + 1, np.int64)
        weight[0] = 20 * n
        found.bring(grown, weight, Control(), unlimited)
        edge_weight = edge_weights(grown, question.weights)
        prove_partition(grown, edge_weight, weight, found.part, 100, (found.cut, found.part_weight))
    changed_marks(Marks(9, np.zeros(9, np.bool_)), Marks(9, np.ones(9, np.bool_), 9))
    few = Network(EdgeList(4, EDGES.tail, EDGES.head, EDGES.capacity))
    ResidentPartition(Question(2, Fraction(0))).bring(few, np.ones(4, np.int64), Control(), unlimited)
    links = link_weights(few.n_arcs, few.edge_arc, few.reverse_arc, few.capacity)
    buckets = bucketed(few.row_offsets, few.head, links)
    levels, _, weight = drawn_together(buckets, np.ones(4, np.int64), np.ones(4, np.bool_), 1, 4)
    parts_of(np.zeros(len(weight), np.int32), levels[0].group)


def _matching(network: Network, open_engine: OpenEngine) -> None:
    engine = open_engine(network)
    state = engine.open(one_each(network))
    engine.solve(state)
    json_writer.dumps(answers.matched(network, read_matching(engine, state)))
    engine.close(state)
