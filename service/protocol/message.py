"""What messages have in common."""

from typing import Final, Literal, Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict, PlainSerializer

from service.protocol.media import Encoding

Rounding: TypeAlias = Literal["error", "nearest", "down", "up"]
"""The names of `gpu_engine.networks.rounding`, which this module may not import."""

Wanted: TypeAlias = int | str | list[int | str]
"""Versions that a graph may be at: ``7`` of any graph that has the name, ``"9f3c02aa-7"`` of one load of it."""

InOrder: Final = PlainSerializer(sorted, return_type=list[str])
"""Writes a set sorted: the order a process keeps its strings in differs from that of every other process."""


class Message(BaseModel):
    """Written by any process, an equal message is the same JSON text: fields as declared, sets sorted."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def to_json(self) -> bytes:
        return self.model_dump_json().encode()


class Arguments(Protocol):
    """A `Message`, or the JSON of one that another process has checked and written."""

    def to_json(self) -> bytes: ...


class AnswerArgs(Message):
    """Of a command whose answer has amounts."""

    encoding: Encoding = "json"
    """In which form the worker writes its answer."""

    @property
    def strings(self) -> bool:
        """Whether amounts are to be decimal strings."""
        return self.encoding == "strings"

    def unsaid(self) -> set[str]:
        """Members that are left out of the message, as they say nothing: workers of the release before can read it."""
        return {"encoding"} if self.encoding == "json" else set()

    def to_json(self) -> bytes:
        return self.model_dump_json(exclude=self.unsaid()).encode()
