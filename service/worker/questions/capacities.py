"""A page of the edges with their capacities."""

from service.protocol import CapacitiesArgs, Envelope
from service.store.catalogue import check_version
from service.store.jobs.record import Result
from service.worker import answers
from service.worker.copies import Copies
from service.worker.result_writer import written_as
from service.worker.running.results import Results
from service.worker.running.task import Task


class CapacitiesPage:
    """Answers the command CAPACITIES."""

    def __init__(self, copies: Copies, results: Results) -> None:
        self._copies = copies
        self._results = results

    def __call__(self, task: Task) -> Result:
        args = CapacitiesArgs.model_validate(task.command.args)
        graph = self._copies.ensure(task.command.graph, limited=True)
        check_version(graph.name, graph.version, args.if_match, graph.generation)
        page, envelope = answers.capacities(graph, args), Envelope(version=graph.version, generation=graph.generation)
        return written_as(args.encoding, graph.network.decimals, self._results, page, envelope)
