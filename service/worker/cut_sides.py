"""The two sides of a cut, as they are answered."""

from gpu_engine.networks.network import Network
from gpu_engine.types import BoolArray
from service.worker.columns import FlagColumn, NameColumn, each, marked


def cut_sides(network: Network, source_side: BoolArray, *, packed: bool) -> dict[str, object]:
    """The vertices on either side of a cut, of which ``source_side`` bool[n] says one.

    ``packed``: as bits, as `service.worker.answers.cut` says.
    """
    there, vertices = network.there, network.vertex_labels
    source_side, sink_side = source_side & there, ~source_side & there
    if not packed:
        lists = {"source_side": marked(source_side), "sink_side": marked(sink_side)}
        return {side: NameColumn(vertices, rows, side) for side, rows in lists.items()}
    answer: dict[str, object] = {
        "n_vertices": network.n_vertices,
        "source_side": FlagColumn(source_side, "sides", "bits"),
    }
    if len(network.deleted_vertices):  # deleted vertices are on neither side
        answer["sink_side"] = FlagColumn(sink_side, "sides", "bits")
    if vertices.column is not None:
        answer["vertices"] = NameColumn(vertices, each(source_side), "sides")
    return answer
