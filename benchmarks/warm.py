"""Warm against cold, same engine: apply a batch of updates and re-solve.

The flow state is never rebuilt: after each batch its inverse is applied and solved, so the capacities come back and
the state lives on through all batches of all cells. What is measured of a batch: `Engine.update`, then
`Engine.solve`. Not in these times: the certificate, checked after every batch and every inverse; the inverse itself,
a column of its own; and the cold solve of a twin engine with the same capacities, whose value must be the same
(for the first ``cold_batches`` of a cell; ``ratio`` and ``worst`` are of those times: median cold over median warm,
and the slowest warm batch over median cold).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from benchmarks.answers import check, check_certificate
from benchmarks.batches import Change, Drawn, Population, batch_sizes, new_capacities, populations
from benchmarks.cold import describe, open_engine
from benchmarks.instances import Instance
from benchmarks.results import Row
from benchmarks.timing import timed
from gpu_engine.engine import Engine, FlowState
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.types import EdgeArray, UnitArray


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure in each cell."""

    batches: int = 20
    cold_batches: int = 5
    seed: int = 1
    engine: str = "cpu"
    drawn: tuple[Drawn, ...] = tuple(Drawn)
    changes: tuple[Change, ...] = tuple(Change)


@dataclass(slots=True)
class Cell:
    """What the batches of one cell took."""

    update_us: list[float] = field(default_factory=list)
    solve_us: list[float] = field(default_factory=list)
    undo_us: list[float] = field(default_factory=list)
    cold_ms: list[float] = field(default_factory=list)
    certificate_ms: list[float] = field(default_factory=list)
    modes: Counter[str] = field(default_factory=Counter)
    undo_modes: Counter[str] = field(default_factory=Counter)

    def summary(self) -> Row:
        """Medians, and the spread where it matters."""
        total_us = [update + solve for update, solve in zip(self.update_us, self.solve_us, strict=True)]
        cold_us = median(self.cold_ms) * 1e3
        return {
            "batches": len(total_us),
            "update_us_median": median(self.update_us),
            "solve_us_median": median(self.solve_us),
            "solve_us_p90": float(np.percentile(self.solve_us, 90)),
            "total_us_median": median(total_us),
            "undo_us_median": median(self.undo_us),
            "cold_ms_median": median(self.cold_ms),
            "ratio": cold_us / median(total_us),
            "worst": max(total_us) / cold_us,
            "modes": dict(self.modes),
            "undo_modes": dict(self.undo_modes),
            "certificate_ms_median": median(self.certificate_ms),
            "certificates_valid": len(self.certificate_ms),
        }


def measure(instance: Instance, edges: EdgeList, plan: Plan) -> Iterator[Row]:
    """One row for each cell (drawn, change, size). Raises `WrongAnswer` for a wrong value or certificate."""
    warm = Pair(*open_engine(edges, plan.engine))
    cold = Pair(*open_engine(edges, plan.engine))
    for pair in (warm, cold):
        pair.engine.solve(pair.state, cold=True)
    drawn_from = populations(warm.engine, warm.state)
    for drawn in plan.drawn:
        population = drawn_from[drawn]
        sizes = batch_sizes(edges.n_edges, len(population.rows), fine=plan.engine != "cpu")
        for label, size in sizes.items():
            for change in plan.changes:
                cell = measure_cell(warm, cold, population, size, change, plan)
                yield (
                    describe(instance, edges)
                    | {
                        "arcs": warm.engine.network.n_arcs,
                        "engine": warm.engine.name,
                        "drawn": str(drawn),
                        "change": str(change),
                        "size": label,
                        "k": size,
                    }
                    | cell.summary()
                )


@dataclass(frozen=True, eq=False, slots=True)
class Pair:
    """An engine and its one flow state."""

    engine: Engine
    state: FlowState


def measure_cell(warm: Pair, cold: Pair, population: Population, size: int, change: Change, plan: Plan) -> Cell:
    """All batches of a cell; the capacities are the same after it as before."""
    rng = np.random.default_rng([plan.seed, size, list(Change).index(change)])
    cell = Cell()
    for i in range(plan.batches):
        batch = population.draw(rng, size)
        before = warm.engine.network.capacity[batch]
        after = new_capacities(rng, change, before)
        update_us, solve_us, mode, value = apply(warm, batch, after, cell)
        cell.update_us.append(update_us)
        cell.solve_us.append(solve_us)
        cell.modes[mode] += 1
        if i < plan.cold_batches:
            cell.cold_ms.append(solve_twin(cold, batch, before, after, value))
        undo_us = apply(warm, batch, before, cell)
        cell.undo_us.append(undo_us[0] + undo_us[1])
        cell.undo_modes[undo_us[2]] += 1
    return cell


def apply(warm: Pair, batch: EdgeArray, capacity: UnitArray, cell: Cell) -> tuple[float, float, str, int]:
    """Update, solve, check; return update and solve microseconds, mode and value."""
    _, update_ms = timed(lambda: warm.engine.update(batch, capacity))
    report, solve_ms = timed(lambda: warm.engine.solve(warm.state))
    certificate, certificate_ms = timed(lambda: warm.engine.certificate(warm.state))
    check_certificate(certificate, report.value)
    cell.certificate_ms.append(certificate_ms)
    return update_ms * 1e3, solve_ms * 1e3, str(report.mode), report.value


def solve_twin(cold: Pair, batch: EdgeArray, before: UnitArray, after: UnitArray, value: int) -> float:
    """Milliseconds of a cold solve at the updated capacities, which are taken back."""
    cold.engine.update(batch, after)
    report, elapsed_ms = timed(lambda: cold.engine.solve(cold.state, cold=True))
    check(report.value == value, f"cold says {report.value}, warm {value}")
    cold.engine.update(batch, before)
    return elapsed_ms


def measure_drift(instance: Instance, edges: EdgeList, plan: Plan, batches: int = 1000, size: int = 100) -> Row:
    """One row: does a state that has been repaired ``batches`` times still repair as fast? No inverses here."""
    warm = Pair(*open_engine(edges, plan.engine))
    warm.engine.solve(warm.state)
    population = populations(warm.engine, warm.state)[Drawn.FAVOURED]
    rng = np.random.default_rng([plan.seed, batches])
    first = np.array(warm.engine.network.capacity)
    cell = Cell()
    for _ in range(batches):
        batch = population.draw(rng, min(size, len(population.rows)))
        # From the first capacities, so that they do not wander off.
        update_us, solve_us, mode, _ = apply(warm, batch, new_capacities(rng, Change.MIXED, first[batch]), cell)
        cell.update_us.append(update_us + solve_us)
        cell.modes[mode] += 1
    hundred = max(1, batches // 10)
    early, late = median(cell.update_us[:hundred]), median(cell.update_us[-hundred:])
    return describe(instance, edges) | {
        "engine": warm.engine.name,
        "batches": batches,
        "k": size,
        "first_us_median": early,
        "last_us_median": late,
        "late_over_early": late / early,
        "modes": dict(cell.modes),
        "certificates_valid": len(cell.certificate_ms),
    }
