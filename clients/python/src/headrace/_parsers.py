"""How the results of jobs are read, by the kind of the job."""

from collections.abc import Callable, Mapping
from typing import Any

from headrace import _records as records
from headrace import _results as results
from headrace._flows import MaxFlowResult
from headrace._matchings import MatchingResult
from headrace._min_cost import MinCostFlowResult
from headrace._structures import StructureResult
from headrace._vertices import VertexCapacities

RESULTS: Mapping[str, Callable[[Any], Any]] = {
    "load": results.GraphInfo.from_json,
    "patch": results.PatchResult.from_json,
    "patch-costs": results.PatchResult.from_json,
    "patch-lower": results.PatchResult.from_json,
    "patch-vertices": results.PatchResult.from_json,
    "vertices": VertexCapacities.from_json,
    "patch-edges": StructureResult.from_json,
    "restore": results.PatchResult.from_json,
    "max-flow": MaxFlowResult.from_json,
    "min-cut": MaxFlowResult.from_json,
    "matching": MatchingResult.from_json,
    "min-cost-flow": MinCostFlowResult.from_json,
    "capacities": results.Capacities.from_json,
    "snapshot": records.Snapshot.from_json,
}


def parser_of(kind: str) -> Callable[[Any], Any]:
    """How to read the result of a job of this kind; of one that is not known here it is left as JSON."""
    return RESULTS.get(kind, lambda body: body)
