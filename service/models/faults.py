"""What is wrong with a body in words that a caller of the API knows, with the member at fault as a JSON pointer."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError

from gpu_engine.errors import ROWS_SHOWN, pointer
from gpu_engine.text.near import did_you_mean
from service.errors import ServiceError

QUOTED: Final = re.compile(r"'([^']*)'")
SUBJECT: Final = re.compile(r"^(Input|List|String|Dictionary|Value) should")

TEXTS: Final = {
    "missing": "is missing",
    "list_type": "should be an array",
    "model_type": "should be an object, as in {}",
    "dict_type": "should be an object, as in {}",
    "int_type": "should be a whole number, not in quotes and without a fraction",
    "int_from_float": "should be a whole number",
    "float_type": "should be a finite number, not in quotes",
    "bool_type": "should be true or false",
    "bool_parsing": "should be true or false",
    "string_type": "should be text",
}
"""What is said of the kinds of error whose own text speaks of Python."""


LONGEST_EXAMPLE: Final = 40
"""Characters of a text that is shown once more, in the array that it should stand in."""


class ColumnFault(ValueError):
    """A column is not valid. Raised by validators, who do not know where in the body the column stands."""

    def __init__(
        self, detail: str, rows: Sequence[object] = (), *, code: str = "invalid_body", field: str = ""
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.rows = rows
        self.field = field
        """The name of the member at fault, where a whole object was looked at."""

    def refusal(self, *path: object) -> ServiceError:
        """The refusal that the caller gets; `path` leads to the column."""
        place = (*path, self.field) if self.field else path
        detail = f"{_dotted(place)}: {self.detail}" if place else self.detail
        operation = place[1] if len(place) > 1 and place[0] == "batch" else None
        return ServiceError(self.code, detail, self.rows, field=pointer(*place) or None, operation=operation)


def refusal(model: type[BaseModel], error: ValidationError) -> ServiceError:
    """The refusal of a body: a column at fault with its rows, else each member at fault, at most ten."""
    items = error.errors(include_url=False)
    for item in items:
        fault = item.get("ctx", {}).get("error")
        if isinstance(fault, ColumnFault):
            return fault.refusal(*item["loc"])
    texts: dict[tuple[int | str, ...], list[str]] = {}
    for item in items[:ROWS_SHOWN]:
        texts.setdefault(_place(model, item), []).append(_text(model, item))
    told = [f"{_dotted(place) or 'the body'}: {'; or '.join(said)}" for place, said in texts.items()]
    place = next(iter(texts))
    operation = place[1] if len(place) > 1 and place[0] == "batch" else None
    return ServiceError("invalid_body", "; ".join(told), field=pointer(*place) or None, operation=operation)


def text_of(kind: str, message: str, given: object) -> str:
    """One error of pydantic without its Python; for a choice with what was probably meant."""
    plain = SUBJECT.sub("should", message.removeprefix("Value error, ")).replace(" after validation", "")
    if kind in ("literal_error", "enum"):
        plain += did_you_mean(given, QUOTED.findall(message))
    if kind == "list_type" and isinstance(given, str) and len(given) <= LONGEST_EXAMPLE:
        return f"should be an array, as in {json.dumps([given])}"
    return TEXTS.get(kind, plain)


def _text(model: type[BaseModel], item: Any) -> str:
    if item["type"] == "extra_forbidden":
        name, known = item["loc"][-1], _members(model, item["loc"][:-1])
        there = f"; there {'is' if len(known) == 1 else 'are'} {', '.join(known)}"
        return f"there is no such member{did_you_mean(name, known, there)}"
    if item["type"] == "too_long" and (choices := _choices(model, item["loc"])):
        return _one_too_many(item["input"], choices)
    return text_of(item["type"], item["msg"], item.get("input"))


def _one_too_many(given: Sequence[object], choices: Sequence[str]) -> str:
    """Of a list that is longer than there are choices, which says less than what stands in it."""
    unknown = next((one for one in given if one not in choices), None)
    if unknown is None:
        return "names something twice"
    there = f"; there {'is' if len(choices) == 1 else 'are'} {', '.join(choices)}"
    return f"{json.dumps(unknown)[:LONGEST_EXAMPLE]} is no choice{did_you_mean(unknown, choices, there)}"


def _choices(model: type[BaseModel], path: Sequence[object]) -> list[str]:
    """The texts that the list at `path` may have; none for other lists."""
    field = model.model_fields.get(str(path[0])) if len(path) == 1 else None
    parts = [part for union in get_args(field.annotation if field else None) for part in get_args(union)]
    return [choice for part in parts if get_origin(part) is Literal for choice in get_args(part)]


def _place(model: type[BaseModel], item: Any) -> tuple[int | str, ...]:
    """Where in the body it is: without the kinds that pydantic adds for a member which may be of several."""
    *path, last = item["loc"] or (0,)
    if item["type"] == "extra_forbidden":
        return (*_steps(model, path), last)
    return _steps(model, item["loc"])


def _steps(model: type[BaseModel], path: Sequence[int | str]) -> tuple[int | str, ...]:
    found: list[int | str] = []
    here: type[BaseModel] | None = model
    for step in path:
        fields = {} if here is None else {field.alias or name: field for name, field in here.model_fields.items()}
        if isinstance(step, int) or step in fields:
            found.append(step)
        if isinstance(step, str) and step in fields:
            here = next(iter(_models(fields[step].annotation)), None)
    return tuple(found)


def _members(model: type[BaseModel], path: Sequence[object]) -> list[str]:
    """The names of the members of the object that `path` leads to."""
    for step in path:
        if isinstance(step, str) and step in model.model_fields:
            model = next(iter(_models(model.model_fields[step].annotation)), model)
    return [field.alias or name for name, field in model.model_fields.items()]


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The models in a type such as ``list[Model] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def _dotted(path: Sequence[object]) -> str:
    return ".".join(str(part)[:100] for part in path)
