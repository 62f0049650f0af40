"""The body of PATCH capacities: one operation, or a batch of them."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from gpu_engine.networks.rounding import Rounding
from gpu_engine.text.counted import counted
from service.errors import ServiceError
from service.models.body import Body
from service.models.columns import AmountColumn, Amounts, IdColumn, Ids, refuse_infinite, refuse_negative
from service.models.faults import ColumnFault
from service.models.flat import Kind
from service.packed import PACKED_ROWS, pack
from service.protocol import Operation, PatchArgs, Wanted

MAX_OPERATIONS = 10_000
"""Operations in one `batch`; rows have their own limit."""

COLUMNS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(("edges", "tail", "head"), "ids"),
    **dict.fromkeys(("set", "add", "scale"), "amounts"),
}

OnMissing = Literal["error", "skip"]
"""What becomes of names that the graph does not have: they are refused, or left out."""

OF_BATCH: Final = frozenset({"batch", "on_missing", "rounding"})
"""Members that stand beside operations, not in them."""

EXAMPLES: dict[str, Any] = {
    "set": {"value": {"edges": ["a", "c"], "set": [4, 1.5]}},
    "add": {"value": {"edges": [17, 4], "add": [-2, 3]}},
    "scale": {"value": {"edges": [17, 4], "scale": [0.5, 2], "rounding": "down"}},
    "close": {"value": {"edges": [17], "op": "close"}},
    "by end points": {"value": {"tail": ["A", "B"], "head": ["B", "C"], "set": [4, 5]}},
    "batch": {
        "value": {
            "batch": [{"edges": [17], "op": "close"}, {"edges": [4], "set": ["inf"]}],
            "on_missing": "skip",
        }
    },
}


class RowAmounts(Body):
    """Amounts for rows of a graph, which are named somehow."""

    set: Amounts | None = None
    add: Amounts | None = None
    scale: Amounts | None = None

    VERBS: ClassVar[tuple[str, ...]] = ("set", "add", "scale")
    """Members of which one says what to do."""
    ROWS: ClassVar[tuple[str, str]] = ("edge", "edges")
    """What a row is, and several are."""
    COLUMNS: ClassVar[Mapping[str, Kind]] = COLUMNS
    """Members that may be long."""
    PLACES: ClassVar[tuple[str, ...]] = ("decimals",)
    """Keys of an Arrow schema's metadata that say what whole numbers count; the first that is there counts."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.check_operation()
        return self

    def check_operation(self) -> None:
        """Check that rows are named in one way, with one verb and as many amounts as rows; raises ValueError."""
        self.check_names()
        verbs = [verb for verb in self.VERBS if getattr(self, verb) is not None]
        if len(verbs) != 1:
            given = " and ".join(f"`{verb}`" for verb in verbs) or "none"
            known = ", ".join(f"`{verb}`" for verb in self.VERBS[:-1])
            raise ValueError(f"say what to do by one of {known} or `{self.VERBS[-1]}`, not {given}")
        if self.amounts is not None:
            if len(self.amounts) != self.n_rows:
                amounts = counted(len(self.amounts), "amount")
                raise ColumnFault(f"{amounts} for {counted(self.n_rows, *self.ROWS)}", field=self.verb)
            self.check_amounts(self.amounts)

    def check_names(self) -> None:
        """Raise ValueError unless the rows are named in one way."""
        raise NotImplementedError

    def check_amounts(self, amounts: AmountColumn) -> None:
        """Raise ColumnFault for the rows of an amount that no row can have."""

    @property
    def names(self) -> dict[str, IdColumn | None]:
        """The columns that name the rows, as an `Operation` has them. Those that are there are of one length."""
        raise NotImplementedError

    @property
    def amounts(self) -> AmountColumn | None:
        return next((a for a in (self.set, self.add, self.scale) if a is not None), None)

    @property
    def verb(self) -> str:
        """The member that says what to do."""
        return next(verb for verb in self.VERBS if getattr(self, verb) is not None)

    @property
    def op_name(self) -> str:
        """What is to be done."""
        return self.verb

    @property
    def n_rows(self) -> int:
        return next((len(column) for column in self.names.values() if column is not None), 0)

    def operation(self) -> Operation:
        """The operation as a worker gets it. Its columns have just been validated, and are not validated again."""
        columns: dict[str, Any] = self.names | {"amounts": self.amounts}
        if self.n_rows >= PACKED_ROWS:
            return Operation.model_construct(op=self.op_name, packed=pack(columns))
        return Operation.model_construct(op=self.op_name, **columns)


class EdgeNames(Body):
    """Edges named by `edges`, or by `tail` and `head`."""

    edges: Ids | None = None
    tail: Ids | None = None
    head: Ids | None = None


class EdgeAmounts(RowAmounts, EdgeNames):
    """Amounts for edges. What names them is looked at first, and so it is a base of its own, the last one."""

    def check_names(self) -> None:
        if (self.edges is None) == (self.tail is None and self.head is None):
            raise ValueError("name the edges by `edges`, or by `tail` and `head`")
        if (self.tail is None) != (self.head is None):
            raise ValueError("`tail` and `head` come together")
        if self.tail is not None and self.head is not None and len(self.tail) != len(self.head):
            raise ColumnFault(f"`tail` has {counted(len(self.tail), 'row')}, `head` has {len(self.head)}", field="head")

    @property
    def names(self) -> dict[str, IdColumn | None]:
        return {"edges": self.edges, "tail": self.tail, "head": self.head}


class OperationBody(EdgeAmounts):
    """One operation on edges named by `edges`, or by `tail` and `head`."""

    set: Amounts | None = Field(default=None, description='The new capacities; "inf" for unlimited.')
    add: Amounts | None = Field(default=None, description="Added to the edges' own capacities; may be negative.")
    scale: Amounts | None = Field(default=None, description="Multiplied with the edges' own capacities.")
    op: Literal["close", "reopen"] | None = None

    VERBS: ClassVar[tuple[str, ...]] = ("set", "add", "scale", "op")

    def check_amounts(self, amounts: AmountColumn) -> None:
        check_capacities(self, amounts)

    @property
    def op_name(self) -> str:
        return self.op or self.verb


def check_capacities(operation: RowAmounts, amounts: AmountColumn) -> None:
    """Raise ColumnFault for the rows of an amount that no capacity can be set to, raised by or scaled by."""
    if operation.add is None:
        refuse_negative(amounts, "a capacity" if operation.set is not None else "a factor", operation.verb)
    if operation.set is None:
        refuse_infinite(amounts, "what is added" if operation.add is not None else "a factor", operation.verb)


class Batch(RowAmounts):
    """What the body of a PATCH has beside its operations."""

    on_missing: OnMissing = "error"
    rounding: Rounding = Field(
        default="error", description="What becomes of a result of more decimals than the graph's."
    )

    def check_operation(self) -> None:
        if self.operations is None:
            super().check_operation()
        elif self.model_fields_set - OF_BATCH:
            raise ValueError("`batch` stands alone: put the operation into it")

    @property
    def operations(self) -> Sequence[RowAmounts] | None:
        """Those of `batch`; None if the body is an operation itself."""
        raise NotImplementedError

    @classmethod
    def from_columns(cls, columns: dict[str, Any]) -> Self:
        """A batch of one operation whose columns are checked already; raises invalid_body on their lengths."""
        body = cls.model_construct(**columns)
        try:
            body.check_operation()
        except ColumnFault as fault:
            raise fault.refusal() from None
        except ValueError as error:
            raise ServiceError("invalid_body", str(error)) from None
        return body

    def args(
        self,
        *,
        if_match: Wanted | None,
        solve: Literal["all", "none"],
        max_rows: int,
        rounding: Rounding | None = None,
        on_missing: OnMissing | None = None,
    ) -> PatchArgs:
        """What the worker gets; raises too_large when the batch has more than `max_rows` rows in all.

        A `rounding` and an `on_missing` that stand beside the body count for more than the body's own.
        """
        operations: Sequence[RowAmounts] = [self] if self.operations is None else self.operations
        n_rows = sum(operation.n_rows for operation in operations)
        if n_rows > max_rows:
            raise ServiceError(
                "too_large",
                f"a PATCH has at most {max_rows} rows (HEADRACE_MAX_PATCH_ROWS), not {n_rows}: send several",
            )
        return PatchArgs.model_construct(
            batch=[operation.operation() for operation in operations],
            on_missing=self.on_missing if on_missing is None else on_missing,
            rounding=self.rounding if rounding is None else rounding,
            if_match=if_match,
            solve=solve,
        )


class PatchBody(OperationBody, Batch):
    """One operation, or several in `batch`, applied in order, all or nothing."""

    batch: list[OperationBody] | None = Field(default=None, max_length=MAX_OPERATIONS)

    @property
    def operations(self) -> Sequence[RowAmounts] | None:
        return self.batch
