"""Holds a history against what was committed.

Every acknowledged batch, load and delete is committed once; every answer is right for one version that the graph
may have had between question and answer, and never older than what anybody knew before asking.
"""

from collections import Counter
from dataclasses import dataclass, field

from tests.faults.aof import Committed
from tests.faults.history import BATCH_UNIT, LOAD_UNIT, History, Op
from tests.faults.job_checks import check_jobs, check_log
from tests.faults.matchings import matching_faults
from tests.faults.model import Model, State, build

Key = tuple[int, int]
NOTHING_YET: Key = (-1, 0)
SHOWN = 1000
"""Characters of an answer that a fault quotes."""


@dataclass
class Verdict:
    faults: list[str] = field(default_factory=list)
    """Each begins with "lost", "doubled", "wrong", "refused", "hung" or "died"."""
    counts: Counter[str] = field(default_factory=Counter)


def check(history: History, committed: Committed) -> Verdict:
    """Judge one history whose commands have all come to an end."""
    model = build(history, committed)
    verdict = Verdict(list(model.faults))
    verdict.counts["commits"] = len(model.of_batch)
    verdict.counts["loads"] = len(model.of_load)
    for op in history.ops:
        verdict.counts["questions"] += 1
        verdict.counts["acknowledged"] += op.acknowledged
        verdict.counts[f"acknowledged {op.kind}"] += op.acknowledged
        _check_done(op, model, history, verdict)
        if _survives(op, history):
            verdict.faults += check_jobs(op, committed)
    _check_deletes(history, committed, verdict)
    verdict.faults += check_log(history, committed)
    if history.certificate_failures:
        verdict.faults.append(f"wrong: {history.certificate_failures} answers could not be proven")
    if history.statuses[500]:
        verdict.faults.append(f"refused: {history.statuses[500]} answers were 500")
    _count(history, committed, verdict.counts)
    for graph in sorted({op.graph for op in history.ops}):
        ops = [op for op in history.ops if op.graph == graph]
        _Windows(graph, ops, model, history, verdict).run()
    return verdict


def _count(history: History, committed: Committed, counts: Counter[str]) -> None:
    """What the history had in it: a check that nothing ever reaches shows nothing."""
    for op in history.ops:
        counts["jobs"] += len(set(op.jobs))
        counts["cancels accepted"] += op.stopped
        counts["cancels too late"] += bool(op.cancels) and not op.stopped
        counts["asked again"] += len(op.again)
        counts["asked again, same answer"] += sum(look.status < 300 for look in op.again)
        counts["timed out"] += op.code == "timeout"
        counts["busy"] += op.status in BUSY
    counts["large"] += any(shape.is_large for shape in history.shapes.values())
    counts["answers"] += history.statuses.total()
    counts["cancels in the log"] += len(committed.cancelled)


def _survives(op: Op, history: History) -> bool:
    """Whether what was acknowledged must still be there: no cut of the log came after."""
    return all(op.invoked_at > cut.ended_at for cut in history.cuts)


ALLOWED = {"unknown_graph", "version_conflict", "version_unavailable"}
BUSY = (429, 507)
"""Refused for now, which a client without a key is told too."""


def _is_allowed(op: Op) -> bool:
    """Whether what was refused may be."""
    if op.code == "timeout":
        return op.limit_s is not None and op.answered_at - op.invoked_at >= op.limit_s
    return op.code in ALLOWED or op.status in BUSY or (op.code == "cancelled" and bool(op.cancels))


def _check_done(op: Op, model: Model, history: History, verdict: Verdict) -> None:
    """Committed if acknowledged, not if refused."""
    if op.status is not None and op.status >= 400 and not op.unknown and not _is_allowed(op):
        verdict.faults.append(f"refused: {op.kind} {op.number} of {op.graph}: {op.status} {op.body}")
        return
    if (
        (op.unknown or op.status in BUSY)
        and (op.key is not None or op.number == 0)
        and op.answered_at - op.invoked_at > 30
    ):
        verdict.faults.append(f"hung: {op.kind} {op.number} of {op.graph} after {op.tries} tries: {op.body}")
    if op.kind not in ("put", "patch"):
        return
    state = (model.of_load if op.kind == "put" else model.of_batch).get(op.number)
    if op.acknowledged and state is None:
        if _survives(op, history):
            verdict.faults.append(f"lost: {op.kind} {op.number} of {op.graph}")
        else:
            verdict.counts["cut off"] += 1
    elif state is not None and not op.acknowledged and not op.unknown and _survives(op, history):
        verdict.faults.append(f"wrong: {op.kind} {op.number} was refused with {op.code} and yet committed")
    elif state is not None and op.acknowledged and op.kind == "patch":
        said = op.body["version"]
        if said != state.version and _survives(op, history):
            verdict.faults.append(f"wrong: batch {op.number} is version {state.version}, not {said}")


def _check_deletes(history: History, committed: Committed, verdict: Verdict) -> None:
    """No graph was removed that nobody asked to delete, and each acknowledged DELETE removed one."""
    removed = Counter(graph for graph, _ in committed.removals)
    for graph in {op.graph for op in history.ops}:
        deletes = [op for op in history.ops if op.kind == "delete" and op.graph == graph]
        sure = sum(op.acknowledged for op in deletes)
        maybe = sum(op.unknown for op in deletes)
        if removed[graph] > sure + maybe:
            verdict.faults.append(f"lost: {graph} was removed {removed[graph]} times, {sure} to {maybe} asked for")
        if removed[graph] < sure and not history.cuts:
            verdict.faults.append(f"lost: {sure} deletes of {graph} acknowledged, {removed[graph]} done")


class _Windows:
    """The answers about one name, each within its window."""

    def __init__(self, graph: str, ops: list[Op], model: Model, history: History, verdict: Verdict) -> None:
        self._graph, self._model, self._history, self._verdict = graph, model, history, verdict
        self._ops = [op for op in ops if _survives(op, history)]
        self._before = [op for op in ops if not _survives(op, history)]
        self._states = model.states[graph]
        self._absences = model.absences[graph]
        deletes = [op.invoked_at for op in ops if op.kind == "delete" and (op.acknowledged or op.unknown)]
        self._deletable_from = min(deletes, default=float("inf"))

    def run(self) -> None:
        """In order of asking: `floor` is the latest state anybody had been told of."""
        for op in self._before:
            state = self._named(op, strict=False) if op.acknowledged else None
            if state is not None and op.body["version"] == state.version:  # not cut off, and done again later
                self._check_answer(op, state)
        answered: list[tuple[float, Key]] = []
        for op in sorted(self._ops, key=lambda op: op.invoked_at):
            floor = max((key for at, key in answered if at < op.invoked_at), default=NOTHING_YET)
            key = self._observed(op, floor)
            if key is not None:
                answered.append((op.answered_at, key))
        final = [op for op in self._ops if op.client < 0 and op.kind == "capacities" and op.acknowledged]
        for op in final:
            state = self._named(op, strict=True)
            if state is not None and state is not self._states[-1]:
                self._fault("lost", op, f"the end is {state.key}; the log's is {self._states[-1].key}")

    def _fault(self, kind: str, op: Op, text: str) -> None:
        said = str(op.body)[:SHOWN]
        self._verdict.faults.append(f"{kind}: {op.kind} {op.number or ''} of {self._graph}: {text}; {said}")

    def _observed(self, op: Op, floor: Key) -> Key | None:
        """The state an answer is about; None if it tells nothing. Reports answers that are not right."""
        if op.code == "unknown_graph" or (op.kind == "delete" and op.acknowledged):
            return self._absence(op, floor)
        if op.code in ("version_conflict", "version_unavailable"):
            self._check_refusal(op, floor)
        if not op.acknowledged:
            return None
        if op.kind in ("snapshot", "matching"):
            return self._by_version(op, floor)
        state = self._named(op, strict=True)
        if state is None:
            return None
        self._check_answer(op, state)
        if state.possible_from > op.answered_at:
            self._fault("wrong", op, f"state {state.key} came later")
        if state.key < floor or (op.kind in ("patch", "put") and state.key == floor):
            self._fault("wrong", op, f"state {state.key} is older than {floor}, known before")
        if op.min_version is not None and op.body["version"] < op.min_version:
            self._fault("wrong", op, f"older than min_version {op.min_version}")
        return state.key

    def _named(self, op: Op, *, strict: bool) -> State | None:
        """The state whose marks the answer carries."""
        if op.kind == "patch":
            return self._model.of_batch.get(op.number)
        if op.kind == "put":
            return self._model.of_load.get(op.number)
        if op.kind not in ("max-flow", "capacities"):
            return None
        if op.kind == "max-flow":
            load, batch = divmod(op.body["value"], LOAD_UNIT)
        else:
            load, batch = op.body["capacity"][0] // LOAD_UNIT, op.body["capacity"][1]
        state = self._model.of_load.get(load)
        if batch >= BATCH_UNIT:
            state = self._model.of_batch.get(batch // BATCH_UNIT)
        if state is None or state.put.number != load or state.version != op.body["version"]:
            if strict:
                self._fault("wrong", op, f"no version has load {load}, batch {batch // BATCH_UNIT}")
            return None
        return state

    def _check_answer(self, op: Op, state: State) -> None:
        if op.kind == "max-flow":
            effective = state.effective
            cut = int(effective[op.body["cut"]["edges"]].sum())
            if not op.body["value"] == cut == state.value or not op.body["certificate"]["valid"]:
                self._fault("wrong", op, f"the value is {state.value}, the cut {cut}")
        elif op.kind == "capacities":
            own, closed = state.own.tolist(), state.closed.tolist()
            if op.body["capacity"] != own or op.body["closed"] != closed:
                self._fault("wrong", op, f"capacities are {own[:50]}, {closed[:50]}")
        elif op.kind == "patch":
            for solved in op.body["flow_states"]:
                right = state.matching if solved["kind"] == "matching" else state.value
                if solved["value"] not in (None, right):
                    self._fault("wrong", op, f"the value of a {solved['kind']} is {right}")

    def _absence(self, op: Op, floor: Key) -> Key | None:
        """The first time without a graph that the answer may be about."""
        absences = [(2 * place + 1, 0) for place in self._absences]
        possible = [key for key in absences if key >= floor and self._deletable_from <= op.answered_at]
        if floor == NOTHING_YET:
            return NOTHING_YET if op.kind != "delete" else None
        if not possible:
            self._fault("lost", op, f"there was a graph, in state {floor}")
            return None
        return possible[0]

    def _possible(self, op: Op, floor: Key) -> list[State]:
        return [s for s in self._states if s.key >= floor and s.possible_from <= op.answered_at]

    def _by_version(self, op: Op, floor: Key) -> Key | None:
        """Of an answer that carries no marks; two loads may have had its version."""
        found = [state for state in self._possible(op, floor) if state.version == op.body["version"]]
        if not found:
            self._fault("wrong", op, f"no such version since {floor}")
            return None
        if op.kind == "snapshot":
            return found[0].key
        faults = [matching_faults(op.body, state) for state in found]
        if all(faults):
            self._fault("wrong", op, "; ".join(faults[0]))
        fits = [state.key for state, wrong in zip(found, faults, strict=True) if not wrong]
        return fits[0] if fits else None

    def _check_refusal(self, op: Op, floor: Key) -> None:
        versions = [state.version for state in self._possible(op, floor)]
        wanted = op.if_match if op.code == "version_conflict" else op.min_version
        fits = [v != wanted if op.code == "version_conflict" else v < (wanted or 0) for v in versions]
        if versions and not any(fits) and floor[0] % 2 == 0:
            self._fault("wrong", op, f"refused, but the versions were {sorted(set(versions))}")
