"""Bodies of pairs, gomory-hu-tree and global-min-cut as work for a parser process."""

from functools import partial

from gpu_engine.formats.reading import json_bytes
from service.api.bodies.tasks import ArgsTask
from service.models.body import parse_body
from service.models.pairs import CutTreeBody, GlobalCutBody, PairsBody
from service.protocol import CutTreeArgs, Encoding, GlobalCutArgs, PairsArgs


def pairs_task(max_rows: int, *, lines: bool, encoding: Encoding) -> ArgsTask:
    """A question with so many pairs at most, answered in ``lines`` or as one object."""
    return ArgsTask(partial(_pairs_args, max_rows, lines, encoding), _twice, may_be_read_here=True)


def tree_task(max_rows: int, encoding: Encoding) -> ArgsTask:
    """A question for a tree of so many terminals at most."""
    return ArgsTask(partial(_tree_args, max_rows, encoding), _twice, may_be_read_here=True)


def global_cut_task(encoding: Encoding) -> ArgsTask:
    return ArgsTask(partial(_global_args, encoding), _twice, may_be_read_here=True)


def _pairs_args(max_rows: int, lines: bool, encoding: Encoding, body: memoryview) -> PairsArgs:
    asked = parse_body(PairsBody, body or b"{}").pairs_args(max_rows, lines=lines)
    return asked.model_copy(update={"encoding": encoding})


def _tree_args(max_rows: int, encoding: Encoding, body: memoryview) -> CutTreeArgs:
    return parse_body(CutTreeBody, body or b"{}").args(max_rows, encoding)


def _global_args(encoding: Encoding, body: memoryview) -> GlobalCutArgs:
    return parse_body(GlobalCutBody, body or b"{}").args(encoding)


def _twice(body: memoryview) -> int:
    """What its columns take, and what they are written out again to."""
    return 2 * json_bytes(body)
