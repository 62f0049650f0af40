"""Maximum matching and minimum vertex cover of a bipartite graph."""

import time
from functools import partial

from service.protocol import Envelope, MatchingArgs
from service.store.jobs.record import Result
from service.worker import answers
from service.worker.copies import Copies
from service.worker.graph import Solved
from service.worker.questions import matchings
from service.worker.result_writer import written_as
from service.worker.running.results import Results
from service.worker.running.task import Task
from service.worker.solving import Parts, Solver
from service.worker.time_limit import time_limit


class Matching:
    """Answers the command MATCHING."""

    def __init__(self, copies: Copies, solver: Solver, results: Results) -> None:
        self._copies = copies
        self._solver = solver
        self._results = results

    def __call__(self, task: Task) -> Result:
        args = MatchingArgs.model_validate(task.command.args)
        with time_limit(task.control, args.time_limit_s):
            return self._answer(task, args)

    def _answer(self, task: Task, args: MatchingArgs) -> Result:
        began = time.perf_counter()
        graph = self._copies.at_least(task.command.graph, args.min_version)
        envelope = Envelope(version=graph.version, generation=graph.generation)
        network = matchings.left_to_right(graph, args.left)
        write = partial(written_as, args.encoding, network.decimals, self._results)
        if not network.n_live_edges:
            return write(matchings.without_edges(graph, args.fields), envelope, task.control)
        terminals = matchings.sides(graph, network)

        def ask() -> Parts:
            copied = network is not graph.network
            asked = matchings.copy_on(self._copies.engine(graph.name, network), graph) if copied else graph

            def read(solved: Solved) -> Parts:
                if not args.fields - {"size"}:
                    return {}
                self._copies.residents.take(graph.name, matchings.working_memory(network))
                found = matchings.read_proven(asked, solved, task.control, self._solver.count_failure)
                return matchings.fields(network, found, args.fields)

            answer, parts, timings_ms = self._solver.ask(task, asked, terminals, read, began, complete=True)
            return answers.matching(asked, answer, timings_ms) | parts

        parts = self._solver.giving_way(graph, ask)  # to the copy as well
        self._solver.hold(graph, matchings.answer_bytes(network))
        return write(parts, envelope, task.control)
