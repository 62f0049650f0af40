"""Scenarios that are asked for their value alone: small changes of capacity are tried together, a block at a time."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from gpu_engine.control import Control
from gpu_engine.errors import EngineError
from gpu_engine.networks.network import Network
from gpu_engine.trials import Changes, Trials
from gpu_engine.types import EdgeArray, UnitArray
from service.errors import ServiceError
from service.packed import unpacked
from service.protocol import Scenario, WhatIfArgs
from service.worker import answers, json_writer
from service.worker.graph import Answer
from service.worker.questions.supposed import Supposed
from service.worker.running.rows import TEXTS_KEPT, Maker

CLOSED: UnitArray = np.zeros(1, np.int64)


@dataclass(slots=True)
class TriedRows:
    """Makes rows on one thread. What cannot be tried, or is wrong, is left to the maker of any row."""

    args: WhatIfArgs
    base: Answer
    others: Maker
    supposed: Supposed
    trials: Trials
    _text: Callable[[int, bool], bytes] = field(init=False)
    """`said_of`, of which `TEXTS_KEPT` are kept; most rows say the same."""

    def __post_init__(self) -> None:
        said = partial(said_of, self.supposed.graph.network, self.base.report.value, self.args.strings)
        self._text = lru_cache(TEXTS_KEPT)(said)

    def __call__(self, block: range, control: Control) -> Iterator[bytes]:
        with self.supposed.lock:
            changes = self._changes(block)
        tried = self.trials.run(Changes.of(list(changes.values())), control)
        outcomes = zip(tried.done.tolist(), tried.value.tolist(), tried.warm.tolist(), strict=True)
        done = {
            number: (value, warm) for number, (is_done, value, warm) in zip(changes, outcomes, strict=True) if is_done
        }
        for number in block:
            if number in done:
                yield self._named(number) + self._text(*done[number])
            else:
                with self.supposed.lock:
                    row = b"".join(self.others(range(number, number + 1), control))
                yield row

    def _changes(self, block: range) -> dict[int, tuple[EdgeArray, UnitArray]]:
        """Which edges get which capacities in the scenarios that say it without a fault, and nothing else."""
        found: dict[int, tuple[EdgeArray, UnitArray]] = {}
        simple = [number for number in block if _is_a_closure(self.args.scenarios[number])]
        rows = self._closed(simple)
        for number, row in zip(simple, rows.tolist(), strict=True):
            if row >= 0:
                found[number] = np.array([row]), CLOSED
        for number in block:
            scenario = self.args.scenarios[number]
            if number not in found and not _is_more_than_edges(scenario) and (change := self._change(scenario)):
                found[number] = change
        return found

    def _closed(self, numbers: list[int]) -> EdgeArray:
        """int64[k]: the edge that each of these scenarios closes, -1 where there is none of that name."""
        batches = [self.args.scenarios[n].batch or [] for n in numbers]
        names: list[Any] = [edge for batch in batches for operation in batch for edge in operation.edges or ()]
        if len({type(name) for name in names}) != 1:  # mixed names are looked up one by one
            return np.full(len(numbers), -1, np.int64)
        return self.supposed.graph.table.named(names)

    def _change(self, scenario: Scenario) -> tuple[EdgeArray, UnitArray] | None:
        """None: its refusal is found out by the maker of any row."""
        graph = self.supposed.graph
        try:
            batch = [unpacked(operation) for operation in scenario.batch or ()]
            change = graph.table.resolve(batch, on_missing=self.args.on_missing, rounding=self.args.rounding)
            graph.engine.check_update(change.rows, change.effective)
        except (EngineError, ServiceError, MemoryError):
            return None
        return change.rows, change.effective

    def _named(self, number: int) -> bytes:
        name = self.args.scenarios[number].id
        return (f'{{"row":{number},' if name is None else f'{{"row":{number},"id":{json.dumps(name)},').encode()


def said_of(network: Network, base: int, strings: bool, value: int, warm: bool) -> bytes:
    """What a row says of its ``value``, in units as the ``base`` is."""
    amount = answers.amount(network, value)
    text = json_writer.dumps(
        {
            "value": amount,
            "change": answers.amount(network, value - base),
            "mode": "warm" if warm else "unchanged",
            "certificate": {"valid": True, "complete": False, "value": amount, "flow_across_cut": amount},
        },
        strings=strings,
    )
    return f"{text[1:]}\n".encode()


def _is_more_than_edges(scenario: Scenario) -> bool:
    """Whether it says anything of terminals or of vertices."""
    terminals = scenario.sources, scenario.sinks, scenario.supply, scenario.demand
    return any(given is not None for given in (*terminals, scenario.vertex_batch))


def _is_a_closure(scenario: Scenario) -> bool:
    """Whether all it says is that one edge of this name is closed."""
    if scenario.batch is None or len(scenario.batch) != 1 or _is_more_than_edges(scenario):
        return False
    (only,) = scenario.batch
    by_ends = only.tail is not None or only.head is not None
    return only.op == "close" and not by_ends and only.amounts is None and len(only.edges or ()) == 1
