"""What an amount is in the description of the API; `columns` reads them, and the worker writes them."""

from typing import Annotated, Any, Final

from pydantic import WithJsonSchema
from typing_extensions import TypeAliasType

AMOUNT_TEXT: Final = r"^([Ii][Nn][Ff]([Ii][Nn][Ii][Tt][Yy])?|[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)$"

Amount = TypeAliasType(
    "Amount",
    Annotated[
        Any,
        WithJsonSchema(
            {
                "title": "Amount",
                "description": 'Exact, of any number of digits; "inf" is unlimited. Answers have numbers, and "inf".',
                "anyOf": [{"type": "number"}, {"type": "string", "pattern": AMOUNT_TEXT}],
            }
        ),
    ],
)
