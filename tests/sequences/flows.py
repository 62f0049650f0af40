"""Questions for one flow: each answer is held against the oracles."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

from tests.sequences.graph import UNLIMITED, Ends, Graph, Name
from tests.sequences.oracles import Cuts, Program, Widening, cuts, maximum
from tests.sequences.sequence import Answer, Run


def max_flow(run: Run) -> None:
    rng, (ends, body) = run.rng, run.draw_ends()
    value = maximum(run.graph, ends)
    near, acyclic = rng.choice(["sources", "sinks"]), rng.random() < 0.7
    body |= {"cut": {"near": near}, "flow": {"zeros": rng.random() < 0.3, "acyclic": acyclic}}
    body["fields"] = ["value", "cut", "flow", "bottlenecks"] + ["paths"] * acyclic
    if value == UNLIMITED:
        run.ask("/max-flow", body, "unbounded")
        return
    answer = run.ask("/max-flow", body)
    run.check(run.got(answer["value"]) == value, "the value", value)
    check_flow(run, ends, answer, value)
    columns = ("pays", "source_pays", "sink_pays", "vertex_pays")
    paid = sum(run.got(units) for column in columns for units in answer["cut"].get(column, []))
    run.check(paid == value, "what the cut pays", paid, value)
    if not run.graph.has_vertex_capacities:
        found = cuts(run.graph, ends)
        check_cut(run, answer["cut"], found.least if near == "sources" else found.greatest)
        check_bottlenecks(run, ends, answer["bottlenecks"], found, value)
    if acyclic:
        check_paths(run, answer["paths"], value)


def check_flow(run: Run, ends: Ends, answer: Answer, value: int) -> None:
    graph = run.graph
    balance, inflow = dict.fromkeys(graph.vertices, 0), dict.fromkeys(graph.vertices, 0)
    for name, amount in zip(answer["flow"]["edges"], answer["flow"]["amount"], strict=True):
        edge, units = graph.edges[name], run.got(amount)
        run.check(-edge.capacity * edge.undirected <= units <= edge.capacity, "a flow beyond a capacity", name)
        if not edge.is_loop:
            balance[edge.tail] -= units
            balance[edge.head] += units
            inflow[edge.head if units > 0 else edge.tail] += abs(units)
    told = answer["terminals"]
    supplied = dict(zip(told["sources"], map(run.got, told["supplied"]), strict=True))
    delivered = dict(zip(told["sinks"], map(run.got, told["delivered"]), strict=True))
    for vertex, units in supplied.items():
        run.check(0 <= units <= ends.supply[vertex], "a supply beyond its cap", vertex)
        balance[vertex] += units
        inflow[vertex] += units
    for vertex, units in delivered.items():
        run.check(0 <= units <= ends.demand[vertex], "a demand beyond its cap", vertex)
        balance[vertex] -= units
    run.check(not any(balance.values()) and sum(delivered.values()) == value, "conservation", balance, delivered)
    over = [vertex for vertex, most in graph.vertices.items() if most is not None and inflow[vertex] > most]
    run.check(not over, "a flow beyond the capacity of a vertex", over)


def check_cut(run: Run, cut: Answer, side: set[Any]) -> None:
    run.check(set(cut["source_side"]) == side, "the nearest cut", side)
    run.check(set(cut["sink_side"]) == set(run.graph.vertices) - side, "the other side of the cut")
    crossing = {
        name
        for name, edge in run.graph.edges.items()
        if edge.capacity
        and (
            (edge.tail in side and edge.head not in side)
            or (edge.undirected and edge.head in side and edge.tail not in side)
        )
    }
    run.check(set(cut["edges"]) == crossing, "the edges of the cut", crossing)


def check_bottlenecks(run: Run, ends: Ends, told: Answer, found: Cuts, value: int) -> None:
    in_every = {name for name, is_so in zip(told["edges"], told["in_every"], strict=True) if is_so}
    wanted = {name for name, edge in run.graph.edges.items() if not edge.is_loop and found.in_every(edge)}
    run.check(in_every == wanted, "the edges in every minimum cut", wanted)
    for name in run.some_edges(4):
        edge, less = run.graph.edges[name], run.graph.copy()
        if 0 < edge.capacity < UNLIMITED:
            less.change(name, edge.own - 1)
            limits = maximum(less, ends) < value
            run.check(limits == (name in told["edges"]), "whether an edge limits the flow", name)


def check_paths(run: Run, paths: Answer, value: int) -> None:
    carried = sum(map(run.got, paths["amount"])) + run.got(paths["rest"])
    run.check(carried == value, "what paths carry", carried, value)
    for row, (at, last) in enumerate(zip(paths["source"], paths["sink"], strict=True)):
        for name in paths["edges"][paths["offsets"][row] : paths["offsets"][row + 1]]:
            edge = run.graph.edges[name]
            run.check(edge.joins(at, edge.head if at == edge.tail else edge.tail), "a path breaks", row, name)
            at = edge.head if at == edge.tail else edge.tail
        run.check(at == last, "a path ends elsewhere", row)


def min_cost_flow(run: Run) -> None:
    if not run.costs or run.knows_capacities:
        return
    ends, body = run.draw_ends()
    most = maximum(run.graph, ends)
    value = run.rng.randint(0, 20) if most == UNLIMITED or run.rng.random() < 0.4 else most
    body |= {"value": run.put(value), "lower": "ignore", "fields": ["cost", "flow", "dual", "paths"]}
    if value > most:
        run.ask("/min-cost-flow", body, "infeasible")
        return
    cost = Program(run.graph, ends).least_cost(value)
    if cost == float("-inf"):
        run.ask("/min-cost-flow", body, "unbounded")
        return
    answer = run.ask("/min-cost-flow", body)
    units = Fraction(str(answer["cost"])) * 10**run.decimals
    run.check(cost is not None and abs(float(units) - cost) < 1e-6, "the least cost", cost)
    check_flow(run, ends, answer, value)


def capacity_expansion(run: Run) -> None:
    ends, body = run.draw_ends()
    names, value = run.some_edges(5), maximum(run.graph, ends)
    if run.knows_capacities or not names or value == UNLIMITED:
        return
    more = run.rng.randint(0, 6)
    widened = {
        name: Widening(run.rng.randint(0, 5), run.rng.choice([UNLIMITED, run.rng.randint(0, 6)])) for name in names
    }
    body |= {"raise_by": run.put(more), "edges": names, "price": [each.price for each in widened.values()]}
    body["max_add"] = run.puts([each.most for each in widened.values()])
    price = Program(run.graph, ends).least_cost(value + more, priced=False, widened=widened)
    if price is None:
        run.ask("/capacity-expansion", body, "infeasible")
        return
    answer = run.ask("/capacity-expansion", body)
    units = Fraction(str(answer["price"])) * 10**run.decimals
    run.check(abs(float(units) - price) < 1e-6, "the least price", price)
    wider = run.graph.copy()
    for name, add in zip(answer["edges"], answer["add"], strict=True):
        wider.change(name, wider.edges[name].own + run.got(add))
    run.check(maximum(wider, ends) >= value + more, "what can flow then")


def circulation(run: Run) -> None:
    if run.knows_capacities:
        return
    rng, (ends, body) = run.rng, run.draw_ends()
    lower = {name: edge.lower for name, edge in run.graph.edges.items()}
    directed = [name for name in run.some_edges(3) if not run.graph.edges[name].undirected]
    if directed and rng.random() < 0.6:
        lower = {name: rng.randint(0, 4) for name in directed}
        body |= {"edges": directed, "lower": run.puts(list(lower.values()))}
    least: dict[Name, int] = {}
    for name, caps in (("min_supply", ends.supply), ("min_demand", ends.demand)):
        if rng.random() < 0.5:
            some = {vertex: rng.randint(0, min(5, most)) for vertex, most in caps.items()}
            body[name] = run.puts(list(some.values()))
            least |= some
    answer = run.ask("/circulation", body | {"fields": ["flow"]})
    cost = Program(run.graph, ends).least_cost(None, priced=False, lower=lower, least_of=least)
    run.check(answer["feasible"] == (cost is not None), "whether there is a circulation")


def parametric(run: Run) -> None:
    ends, body = run.draw_ends()
    names = run.some_edges(4)
    if run.knows_capacities or not names or maximum(run.graph, ends) == UNLIMITED:
        return
    last = run.rng.choice(["2", "7/3", "3"])
    answer = run.ask("/parametric", body | {"edges": names, "to": last})
    told = answer["segments"]
    begins, ends_at = ([Fraction(str(at)) for at in told[column]] for column in ("from", "to"))
    run.check([*begins, Fraction(last)] == [Fraction(0), *ends_at], "segments that follow each other", told)
    constants, rates = ([Fraction(str(x)) * 10**run.decimals for x in told[column]] for column in ("constant", "rate"))
    run.check(all(a > b for a, b in pairwise(rates)), "a concave curve", told)
    for begin, end, constant, rate in zip(begins, ends_at, constants, rates, strict=True):
        for factor in (begin, (begin + end) / 2, (begin + 2 * end) / 3, end):
            value = Fraction(maximum(*multiplied(run.graph, ends, names, factor)), factor.denominator)
            run.check(value == constant + rate * factor, "the curve", str(factor), str(value))


def multiplied(graph: Graph, ends: Ends, names: list[Name], factor: Fraction) -> tuple[Graph, Ends]:
    """With the edges of these names multiplied, in whole numbers: all amounts times the denominator."""
    times, after = factor.denominator, graph.copy()
    for name, edge in graph.edges.items():
        if edge.own < UNLIMITED:
            after.change(name, edge.own * (factor.numerator if name in names else times))
    supply, demand = (
        {vertex: most if most >= UNLIMITED else most * times for vertex, most in caps.items()}
        for caps in (ends.supply, ends.demand)
    )
    return after, Ends(supply, demand)
