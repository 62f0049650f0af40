"""The cheapest way to let more flow. Nothing is widened: the answer says what to add."""

import time
from functools import partial

import numpy as np

from gpu_engine.errors import CostOverflow, EngineError, Infeasible, InvalidNetwork
from gpu_engine.mincost.expansion import Candidates, Expansion, TooMuch, cheapest_expansion
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.units import read_decimal, to_units, write_decimal, write_units
from gpu_engine.networks.validate import largest_cost
from gpu_engine.text.literals import read_literals
from gpu_engine.types import INFINITE, MAX_DECIMALS, UnitArray
from service.protocol import CapacityExpansionArgs, Envelope, Kind
from service.store.jobs.record import Result
from service.worker import answers
from service.worker.columns import listed
from service.worker.copies import Copies
from service.worker.graph import Answer, Graph, NotProven
from service.worker.json_writer import Raw
from service.worker.questions.edges import read_edges
from service.worker.questions.terminals import read_terminals, read_unit, read_units
from service.worker.result_writer import written_as
from service.worker.running.results import Results
from service.worker.running.task import Task
from service.worker.solving import Solver
from service.worker.time_limit import time_limit


class CapacityExpansion:
    """Answers the command CAPACITY_EXPANSION.

    The maximum flow of today comes first, from its flow state, which is warm. What to add is found from it.
    """

    def __init__(self, copies: Copies, solver: Solver, results: Results) -> None:
        self._copies = copies
        self._solver = solver
        self._results = results

    def __call__(self, task: Task) -> Result:
        args = CapacityExpansionArgs.model_validate(task.command.args)
        with time_limit(task.control, args.time_limit_s):
            return self._answer(task, args)

    def _answer(self, task: Task, args: CapacityExpansionArgs) -> Result:
        began = time.perf_counter()
        graph = self._copies.at_least(task.command.graph, args.min_version)
        network, terminals = graph.network, read_terminals(graph.network, args)
        more = read_unit(network, args.raise_by, args.rounding, "/raise_by")
        candidates, places = _candidates(graph, args)
        maximum, _, timings_ms = self._solver.ask(
            task, graph, terminals, lambda _: {}, began, complete=True, kind=Kind.MAX_FLOW
        )
        solving_since = time.perf_counter()
        found = self._cheapest(task, graph, terminals, candidates, maximum.report.value, more)
        ended = time.perf_counter()
        timings_ms |= {"min_cost": 1e3 * (ended - solving_since)}
        timings_ms["total"] = timings_ms.get("queue", 0.0) + 1e3 * (ended - began)
        self._solver.hold(graph, 2 * found.add.nbytes)
        whole = _shown(graph, candidates, found, maximum, network.decimals + places)
        whole["timings_ms"] = answers.rounded(timings_ms)
        envelope = Envelope(version=graph.version, generation=graph.generation)
        return written_as(args.encoding, network.decimals, self._results, whole, envelope, task.control)

    def _cheapest(
        self, task: Task, graph: Graph, terminals: Terminals, candidates: Candidates, value: int, more: int
    ) -> Expansion:
        """What to add, proven. Raises `Infeasible`, and `NotProven` for a fault of the solver."""
        room = partial(self._copies.residents.take, graph.name)

        def solve() -> Expansion:
            flow = graph.engine.flow(graph.states[terminals.key].state, task.control, acyclic=False)
            return cheapest_expansion(graph.network, terminals, candidates, value, more, task.control, room, flow)

        try:
            found = self._solver.giving_way(graph, solve, but=graph.states.get(terminals.key))
        except TooMuch as error:
            decimals = graph.network.decimals
            wanted, most = (write_units(units, decimals) for units in (value + more, error.most))
            detail = f"a value of {wanted} is asked for, and with all that may be added the maximum is {most}"
            hint = "the `bottlenecks` of max-flow say which edges limit it"
            raise Infeasible(f"{detail}: {hint}", field="/raise_by") from None
        if not found.proof.valid:
            self._solver.count_failure()
            raise NotProven(f"the expansion could not be proven: {'; '.join(found.proof.failures)}")
        return found


def _candidates(graph: Graph, args: CapacityExpansionArgs) -> tuple[Candidates, int]:
    """The edges that may be widened, and the decimals of their prices. Closed ones stay closed, whatever is added.

    Raises `UnknownEdge`, `InvalidNetwork`, `CapacityOverflow`, `CostOverflow`.
    """
    rows = read_edges(graph, args.edges)
    price, places = _prices(graph.network, args.price)
    most = np.full(len(rows), INFINITE)
    if args.max_add is not None:
        most = read_units(graph.network, args.max_add, args.rounding, "/max_add")
    return Candidates(rows, price, np.where(graph.table.closed[rows], 0, most)), places


def _prices(network: Network, literals: list[str]) -> tuple[UnitArray, int]:
    """int64[k], in units of as many decimals as the longest has. Raises `InvalidNetwork`, `CostOverflow`."""
    each = [len(text.partition(".")[2].rstrip("0")) for text in literals]
    places = max(each, default=0)
    if places > MAX_DECIMALS:
        rows = [row for row, own in enumerate(each) if own > MAX_DECIMALS]
        raise InvalidNetwork(f"a price has at most {MAX_DECIMALS} decimals, not {places}", rows, field="/price")
    try:
        price = read_literals(literals, places, lambda i: to_units(read_decimal(literals[i], i), places, i))
    except EngineError as error:
        raise CostOverflow(error.message, error.rows, field="/price") from None
    beyond = np.flatnonzero(price > largest_cost(network.n_vertices))
    if len(beyond):
        limit = write_decimal(largest_cost(network.n_vertices), places)
        raise CostOverflow(f"a price is beyond {limit}", beyond[:10].tolist(), field="/price")
    return price, places


def _shown(graph: Graph, candidates: Candidates, found: Expansion, maximum: Answer, places: int) -> dict[str, object]:
    network, widened = graph.network, np.flatnonzero(found.add)
    value = answers.amount(network, found.proof.terminals.value)
    price, bound = (Raw(write_decimal(units, places)) for units in (found.proof.cost, found.proof.dual_bound))
    return answers.about(graph) | {
        "value": value,
        "maximum": answers.amount(network, maximum.report.value),
        "price": price,
        "edges": answers.labels(network.edge_ids, listed(candidates.rows[widened])),
        "add": answers.amounts(network, found.add, listed(widened)),
        "mode": "warm" if found.from_flow else "cold",
        "engine": "cpu" if found.from_flow else "or-tools",
        "reason": "from the maximum flow along cheapest paths" if found.from_flow else "solved from zero",
        "certificate": {
            "valid": found.proof.valid,
            "complete": True,
            "value": value,
            "flow_across_cut": answers.amount(network, maximum.certificate.flow_across_cut),
            "cost": price,
            "dual_bound": bound,
        },
        "counters": dict(maximum.report.counters),
    }
