"""What NetworkX learns of its backend `headrace` whenever it is imported.

It stands apart from the client, as this package imports nothing: who has the client installed and does not ask the
service pays nothing for it.
"""

FUNCTIONS: dict[str, str] = {
    "maximum_flow": "Multigraphs have a dict of their keys for each pair of nodes.",
    "maximum_flow_value": "",
    "minimum_cut": "Where several cuts are minimum it may be another than that of NetworkX.",
    "minimum_cut_value": "",
    "max_flow_min_cost": "",
    "network_simplex": "",
    "capacity_scaling": "`heap` changes nothing.",
    "min_cost_flow": "",
    "min_cost_flow_cost": "",
    "gomory_hu_tree": "Any of the cut trees. By priority it runs if it stands in `backend_priority.gomory_hu_tree`.",
    "stoer_wagner": "`heap` changes nothing.",
    "hopcroft_karp_matching": "",
    "eppstein_matching": "",
}
"""What the backend answers, and what its answers have that those of NetworkX have not."""


def get_info() -> dict[str, object]:
    """The entry point `networkx.backend_info`."""
    return {
        "backend_name": "headrace",
        "project": "headrace",
        "package": "headrace",
        "short_summary": "Asks a Headrace service, which keeps the graph in memory and proves each answer.",
        "default_config": {"kept_graphs": 8},
        "functions": {name: {"additional_docs": docs} if docs else {} for name, docs in FUNCTIONS.items()},
    }
