"""What an Idempotency-Key stands for is the same in every process, whatever order that process keeps its sets in."""

import json
import os
import subprocess
import sys

import pytest

from service.api.replies.answers import digest, digest_of_args
from service.protocol import (
    ARGS,
    CapacitiesArgs,
    CapacityExpansionArgs,
    CirculationArgs,
    ClosureStudyArgs,
    Command,
    CutTreeArgs,
    DeleteArgs,
    EdgesArgs,
    EdgesOperation,
    EmptyArgs,
    ExportArgs,
    GlobalCutArgs,
    Kind,
    LoadArgs,
    MatchingArgs,
    MaxFlowArgs,
    Message,
    MinCostFlowArgs,
    MoveArgs,
    Operation,
    PairsArgs,
    ParametricArgs,
    PartitionArgs,
    PatchArgs,
    RestoreArgs,
    Scenario,
    UnwatchArgs,
    VerticesArgs,
    WatchArgs,
    WhatIfArgs,
)

EXAMPLES: dict[Kind, Message] = {
    Kind.LOAD: LoadArgs(blob="b", if_match="*"),
    Kind.DELETE: DeleteArgs(if_match=3),
    Kind.PATCH: PatchArgs(batch=[Operation(op="set", edges=["a", "b"], amounts=["1", "2.5"])], on_missing="skip"),
    Kind.MAX_FLOW: MaxFlowArgs(sources=["s"], fields=frozenset({"value", "cut", "flow"}), time_limit_s=1.5),
    Kind.MATCHING: MatchingArgs(left=["Ann"], fields=frozenset({"size", "matching", "cover"}), min_version=2),
    Kind.MIN_CUT: MaxFlowArgs(sinks=["t"], supply=["3"], fields=frozenset({"value", "cut"})),
    Kind.WHAT_IF: WhatIfArgs(
        sources=["s"], scenarios=[Scenario(id="a", sources=["u"])], fields=frozenset({"value", "cut"})
    ),
    Kind.CLOSURE_STUDY: ClosureStudyArgs(sources=["s"], candidates=[["a"], ["b", "c"]], most=None),
    Kind.PAIRS: PairsArgs(among=["s", "t"], fields=frozenset({"value", "cut", "flow"}), most=9),
    Kind.GOMORY_HU_TREE: CutTreeArgs(terminals=[1, 2], fields=frozenset({"tree", "groups"}), most=9),
    Kind.GLOBAL_MIN_CUT: GlobalCutArgs(time_limit_s=1.5),
    Kind.DRY_RUN: PatchArgs(batch=[Operation(op="close", edges=["a", "b"])], on_missing="skip"),
    Kind.DRY_RUN_COSTS: PatchArgs(batch=[Operation(op="set", edges=[1], amounts=["2"])], if_match=4),
    Kind.DRY_RUN_VERTICES: PatchArgs(batch=[Operation(op="scale", edges=["u"], amounts=["2"])], if_match=4),
    Kind.DRY_RUN_EDGES: EdgesArgs(batch=[EdgesOperation(op="insert", vertices=["w"], vertex_capacity=["5"])]),
    Kind.RESTORE: RestoreArgs(version=7, if_match=9),
    Kind.MOVE: MoveArgs(to="gpu-1"),
    Kind.PATCH_COSTS: PatchArgs(batch=[Operation(op="add", edges=[1, 2], amounts=["-1", "2.5"])], solve="none"),
    Kind.PATCH_LOWER: PatchArgs(batch=[Operation(op="set", edges=["a", "b"], amounts=["0", "2.5"])]),
    Kind.DRY_RUN_LOWER: PatchArgs(batch=[Operation(op="add", edges=["a"], amounts=["2.5"])]),
    Kind.PATCH_VERTICES: PatchArgs(batch=[Operation(op="set", edges=["u", "v"], amounts=["1", "inf"])]),
    Kind.PATCH_EDGES: EdgesArgs(batch=[EdgesOperation(op="delete", edges=["a", "b"])], if_match=4),
    Kind.MIN_COST_FLOW: MinCostFlowArgs(sources=["s"], value="6", fields=frozenset({"value", "cost", "flow"})),
    Kind.PARAMETRIC: ParametricArgs(edges=["d", "e"], first="0", last="7/6"),
    Kind.CAPACITY_EXPANSION: CapacityExpansionArgs(raise_by="2", edges=["a"], price=["1.5"]),
    Kind.CIRCULATION: CirculationArgs(edges=["a"], lower=["1.5"], min_demand=["2"], sinks=["t"]),
    Kind.PARTITION: PartitionArgs(k=8, epsilon="0.05", vertices=["a"], vertex_weight=[3]),
    Kind.CAPACITIES: CapacitiesArgs(offset=3),
    Kind.VERTICES: CapacitiesArgs(offset=3, limit=2),
    Kind.EXPORT: ExportArgs(format="arrow"),
    Kind.SNAPSHOT: EmptyArgs(),
    Kind.WATCH: WatchArgs(watch="main", sources=["s"], supply=["2.5"]),
    Kind.UNWATCH: UnwatchArgs(watch="main"),
}
SEEDS = ("0", "1", "2", "3")
"""Of three strings: two of these seeds at least keep them in another order."""


def test_arguments_are_no_more_than_arguments() -> None:
    """They are written by a process that has read a stranger's bytes."""

    class Forged:
        def to_json(self) -> bytes:
            return b'{}, "graph": "another", "kind": "delete", "id": "of another", "idempotency_key": "k"'

    command = Command(id="1", kind=Kind.PATCH, graph="mine", reply_to="r", created_at=1.0)
    said = command.model_dump()
    assert Command.model_validate_json(command.carrying(Forged()).to_json()).model_dump() == said


def digests() -> dict[str, str]:
    return {kind.value: digest_of_args(kind, args) for kind, args in EXAMPLES.items()}


def in_another_process(seed: str) -> tuple[dict[str, str], list[str]]:
    """The digests, and the order in which that process keeps a set."""
    code = (
        "import json; from tests.unit.test_digests import digests; "
        "print(json.dumps([digests(), list(frozenset({'value', 'cut', 'flow'}))]))"
    )
    environment = os.environ | {"PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    made, order = json.loads(done.stdout)
    return made, order


def test_every_kind_is_tried() -> None:
    assert EXAMPLES.keys() == ARGS.keys()


def test_digests_are_the_same_in_every_process() -> None:
    found = [in_another_process(seed) for seed in SEEDS]
    assert len({tuple(order) for _, order in found}) > 1, "the seeds prove nothing"
    for made, _ in found:
        assert made == digests()


@pytest.mark.parametrize("kind", Kind)
def test_what_was_left_out_counts_as_its_default(kind: Kind) -> None:
    """So a field that a later release adds does not change the digest of a request that does not use it."""
    written = json.loads(EXAMPLES[kind].model_dump_json(exclude_defaults=True))
    again = ARGS[kind].model_validate(written | {"fields": written["fields"][::-1]} if "fields" in written else written)
    assert digest_of_args(kind, again) == digest_of_args(kind, EXAMPLES[kind])


def test_other_questions_have_other_digests() -> None:
    made = [*digests().values(), digest_of_args(Kind.MAX_FLOW, MaxFlowArgs()), digest_of_args(Kind.LOAD, EmptyArgs())]
    assert len(set(made)) == len(made)


def test_a_digest_is_of_all_that_was_sent() -> None:
    """Bodies of the same length, the same bytes in other parts, another kind."""
    asked = [
        digest(Kind.PATCH, b"ab", b"c"),
        digest(Kind.PATCH, b"ab", b"d"),
        digest(Kind.PATCH, b"a", b"bc"),
        digest(Kind.PATCH, b"abc"),
        digest(Kind.LOAD, b"ab", b"c"),
        digest(Kind.PATCH, memoryview(b"ba"), b"c"),
    ]
    assert len(set(asked)) == len(asked)
    assert digest(Kind.PATCH, memoryview(b"ab"), b"c") == asked[0]


def test_what_says_nothing_new_is_written_as_before() -> None:
    """Workers of the release before refuse members that they do not know."""
    written = json.loads(EXAMPLES[Kind.PATCH_EDGES].to_json())
    assert written["batch"][0].keys() == EdgesOperation.model_fields.keys() - {"vertex_capacity", "x", "y", "lower"}
    new = EdgesArgs(batch=[EdgesOperation(op="insert", vertices=["w"], vertex_capacity=["3"], x=[1.5], y=[2])])
    assert EdgesArgs.model_validate_json(new.to_json()) == new
    assert json.loads(new.to_json())["batch"][0]["x"] == [1.5]
    assert "all" not in json.loads(VerticesArgs(offset=3).to_json())
    assert json.loads(VerticesArgs(all=True).to_json())["all"] is True
