"""Load a network, solve, update and solve again. Start the service first: `headrace serve`."""

from headrace import Client

#      3        4
#   s ---> a -------> t
#    \                ^
#   2 \       2      /
#      +---> b -----+

with Client() as hr:
    roads = hr.put_graph(
        "quickstart",
        tail=["s", "s", "a", "b"],
        head=["a", "b", "t", "t"],
        capacity=[3, 2, 4, 2],
        edge_ids=["s-a", "s-b", "a-t", "b-t"],
    )
    flow = roads.max_flow("s", "t", fields=["value", "cut", "flow"])
    assert flow.cut is not None
    print(f"{flow.value} through {roads}, certificate valid: {flow.certificate.valid}, cut {flow.cut.edges}")
    update = roads.patch(edges=["s-a"], set=[6])
    for state in update.flow_states:
        print(f"version {update.version}: {state.old_value} -> {state.value} ({state.mode})")
    print(f"b-t closed: {roads.close(['b-t']).flow_states[0].value}")
