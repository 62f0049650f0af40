"""Assign drivers to loads, then repair the plan when one falls ill. Start the service first: `headrace serve`."""

from headrace import Client

CAN_DRIVE = {"Ann": ["L1", "L2"], "Bob": ["L1"], "Cy": ["L2", "L3"], "Dee": ["L3"]}

rows = [(driver, load) for driver, loads in CAN_DRIVE.items() for load in loads]

with Client() as hr:
    shift = hr.put_graph(
        "shift",
        tail=[driver for driver, _ in rows],
        head=[load for _, load in rows],
        capacity=[1] * len(rows),
        edge_ids=[f"{driver} {load}" for driver, load in rows],
    )
    print("planned:", shift.matching().pairs)
    shift.close([f"Ann {load}" for load in CAN_DRIVE["Ann"]])
    plan = shift.matching()
    print("Ann is ill:", plan.pairs)
    cover = (*plan.cover.left, *plan.cover.right) if plan.cover else ()
    print(f"{plan.size} loads are driven, and no plan has more: each edge that is left has an end among {cover}")
