"""NetworkX's backend `headrace`: the entry point `networkx.backends` names this package, which needs NetworkX.

Each function has the name and the parameters that it has in NetworkX, and answers and raises as that does. The address
of the service and the key are those of the environment, `HEADRACE_URL` and `HEADRACE_API_KEY`.
"""

from headrace._nx.convert import NetworkXGraph, convert_from_nx, convert_to_nx
from headrace._nx.costs import capacity_scaling, max_flow_min_cost, min_cost_flow, min_cost_flow_cost, network_simplex
from headrace._nx.flows import maximum_flow, maximum_flow_value, minimum_cut, minimum_cut_value
from headrace._nx.matchings import eppstein_matching, hopcroft_karp_matching
from headrace._nx.running import can_run
from headrace._nx.trees import gomory_hu_tree, stoer_wagner

__all__ = [
    "NetworkXGraph",
    "can_run",
    "capacity_scaling",
    "convert_from_nx",
    "convert_to_nx",
    "eppstein_matching",
    "gomory_hu_tree",
    "hopcroft_karp_matching",
    "max_flow_min_cost",
    "maximum_flow",
    "maximum_flow_value",
    "min_cost_flow",
    "min_cost_flow_cost",
    "minimum_cut",
    "minimum_cut_value",
    "network_simplex",
    "stoer_wagner",
]
