"""The answers about one name, each within its window.

An answer is right for one version that the graph may have had between question and answer, and never older than what
anybody knew before asking.
"""

from collections import defaultdict
from typing import Final

from tests.faults.answers import REFUSALS, answer_faults, may_refuse
from tests.faults.history import BATCH_UNIT, LOAD_UNIT, History, Op
from tests.faults.model import Marks, Model, State

Key = tuple[int, int]
NOTHING_YET: Final[Key] = (-1, 0)
SHOWN: Final = 1000
"""Characters of an answer that a fault quotes."""


class Windows:
    """Judges each answer about one graph, and each copy made of it."""

    def __init__(self, graph: str, ops: list[Op], model: Model, history: History) -> None:
        self._graph, self._model, self._history = graph, model, history
        self._found: list[str] = []
        self._ops = [op for op in ops if history.survives(op)]
        self._before = [op for op in ops if op.graph == graph and not history.survives(op)]
        self._states = model.states[graph]
        self._marked: dict[Marks, list[State]] = defaultdict(list)
        for state in self._states:
            self._marked[state.marks].append(state)
        self._absences = model.absences[graph]
        deletes = [op for op in ops if op.kind == "delete"]
        done = [op.invoked_at for op in deletes if op.acknowledged or op.unknown or history.asked_anew(op)]
        self._deletable_from = min(done, default=float("inf"))

    def faults(self) -> list[str]:
        """In order of asking: `floor` is the latest state anybody had been told of."""
        for op in self._before:
            for state in (self._named(op) if op.acknowledged else [])[:1]:
                came_later = state.possible_from > op.answered_at  # instead of the one of that number
                if op.body["version"] == state.version and not came_later:
                    self._check_answer(op, state)
        answered: list[tuple[float, Key]] = []
        for op in sorted(self._ops, key=lambda op: op.invoked_at):
            floor = max((key for at, key in answered if at < op.invoked_at), default=NOTHING_YET)
            key = self._observed(op, floor)
            if key is not None:
                answered.append((op.answered_at, key))
        for op in self._ops:
            named = self._named(op) if op.client < 0 and op.kind == "capacities" and op.acknowledged else []
            if named and self._states[-1] not in named:
                self._fault("lost", op, f"the end is {named[-1].key}; the log's is {self._states[-1].key}")
        return self._found

    def _fault(self, kind: str, op: Op, text: str) -> None:
        said = str(op.body)[:SHOWN]
        self._found.append(f"{kind}: {op.kind} {op.number or ''} of {self._graph}: {text[:SHOWN]}; {said}")

    def _observed(self, op: Op, floor: Key) -> Key | None:
        """The state an answer is about; None if it tells nothing. Reports answers that are not right."""
        if op.source == self._graph:
            return self._copied(op, floor)
        if op.kind == "copy" and not op.acknowledged:
            self._check_taken(op, floor)
            return None
        if op.code == "unknown_graph" or (op.kind == "delete" and op.acknowledged):
            return self._absence(op, floor)
        if op.code in ("version_conflict", "version_unavailable") or (op.kind == "edges" and op.code in REFUSALS):
            self._check_refusal(op, floor)
        if op.code == "unknown_watch":
            self._check_dropped(op)
        if not op.acknowledged or op.kind == "unwatch":
            return None
        if op.kind in ("snapshot", "matching", "min-cost-flow", "circulation", "partition"):
            return self._by_version(op, floor)
        named = self._named(op)
        if not named:
            if not op.number:  # what is not there of changes is counted elsewhere
                self._fault("wrong", op, "no version has its marks")
            return None
        standing = [state for state in named if self._may_stand(state, op, floor)] or named[-1:]
        state = next((state for state in standing if not answer_faults(op, state)), standing[0])
        self._check_answer(op, state)
        if state.possible_from > op.answered_at:
            self._fault("wrong", op, f"state {state.key} came later")
        if state.key < floor or (op.number and state.key == floor):
            self._fault("wrong", op, f"state {state.key} is older than {floor}, known before")
        if op.min_version is not None and op.body["version"] < op.min_version:
            self._fault("wrong", op, f"older than min_version {op.min_version}")
        return state.key

    def _copied(self, op: Op, floor: Key) -> Key | None:
        """The state of this graph that was copied, which is a question about it."""
        if op.code == "unknown_graph":
            return self._absence(op, floor)
        if not op.acknowledged or op.number not in self._model.made:
            return None
        fits = [state for state in self._model.copied[op.number] if self._may_stand(state, op, floor)]
        if not fits:
            self._fault("wrong", op, f"what was copied is older than {floor}, known before")
            return None
        return fits[0].key

    def _check_taken(self, op: Op, floor: Key) -> None:
        """A copy is refused only if a graph of its name may be there."""
        if op.code == "already_exists" and not self._possible(op, floor):
            self._fault("wrong", op, f"refused, but there was no graph since {floor}")

    def _named(self, op: Op) -> list[State]:
        """The states whose marks the answer carries: several where a graph was copied to one name twice."""
        if op.number:
            return [self._model.made[op.number]] if op.number in self._model.made else []
        if op.kind in ("max-flow", "what-if", "watch"):
            value = op.body["base"]["value"] if op.kind == "what-if" else op.body["value"]
            load, rest = divmod(value, LOAD_UNIT)
            return self._marked.get((load, rest // BATCH_UNIT, op.body["version"]), [])
        if op.kind in ("capacities", "export") and "broken" not in op.body:
            load, batch = op.body["capacity"][0] // LOAD_UNIT, op.body["capacity"][1] // BATCH_UNIT
            named = self._marked.get((load, batch, op.body["version"]), [])
            return [state for state in named if "cost" not in op.body or state.price_mark == op.body["cost"][1]]
        return []

    def _check_answer(self, op: Op, state: State) -> None:
        for text in answer_faults(op, state):
            self._fault("wrong", op, text)

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

    def _may_stand(self, state: State, op: Op, floor: Key) -> bool:
        return state.key >= floor and state.possible_from <= op.answered_at

    def _possible(self, op: Op, floor: Key) -> list[State]:
        return [state for state in self._states if self._may_stand(state, op, floor)]

    def _by_version(self, op: Op, floor: Key) -> Key | None:
        """Judge an answer that carries no marks of all it is made from; two loads may have had its version."""
        found = [state for state in self._possible(op, floor) if state.version == op.body["version"]]
        if not found:
            self._fault("wrong", op, f"no such version since {floor}")
            return None
        if op.kind == "snapshot":
            return found[0].key
        if op.min_version is not None and op.body["version"] < op.min_version:
            self._fault("wrong", op, f"older than min_version {op.min_version}")
        faults = [answer_faults(op, state) for state in found]
        if all(faults):
            self._fault("wrong", op, "; ".join(faults[0]))
        fits = [state.key for state, wrong in zip(found, faults, strict=True) if not wrong]
        return fits[0] if fits else None

    def _check_refusal(self, op: Op, floor: Key) -> None:
        """What was refused for the sake of versions was not to be had at one of those that may have stood."""
        states = self._possible(op, floor)
        if states and floor[0] % 2 == 0 and not any(self._may_refuse(op, state) for state in states):
            versions = sorted({state.version for state in states})
            self._fault("wrong", op, f"refused, but the versions were {versions}")

    def _check_dropped(self, op: Op) -> None:
        """A watch that somebody was told of is gone only if somebody asked for that."""
        same = [other for other in self._ops if other.watch == op.watch and (other.acknowledged or other.unknown)]
        puts = [other for other in same if other.kind == "watch" and other.acknowledged]
        drops = [other for other in same if other.kind == "unwatch" and other.invoked_at < op.answered_at]
        if any(put.answered_at < op.invoked_at for put in puts) and not drops:
            self._fault("lost", op, "nobody has dropped the watch")

    def _may_refuse(self, op: Op, state: State) -> bool:
        """Whether the question may be refused while the graph is in this state."""
        if op.code == "version_conflict":
            return state.version != op.if_match
        if op.code in REFUSALS:
            return may_refuse(op, state)
        if op.target is None:
            return state.version < (op.min_version or 0)
        is_trimmed = op.target < self._model.reach[self._graph, state.load]
        return is_trimmed or state.version < op.target or "corrupt_snapshot" in self._history.faults
