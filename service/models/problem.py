"""RFC 9457 problem details, as every refusal is answered."""

from typing import Literal

from pydantic import BaseModel, Field

from service.errors import STATUS


class ProblemInfo(BaseModel):
    type: Literal["about:blank"] = "about:blank"
    title: str
    status: int
    code: str = Field(json_schema_extra={"enum": [*sorted(STATUS)]})
    detail: str
    rows: list[int] = Field(default=[], description="Rows at fault of the columns as they were sent, from 0.")
    lines: list[int] | None = Field(default=None, description="Lines at fault of a body of text, from 1.")
    edges: list[int | str] | None = Field(
        default=None, description="Ids of the edges at fault, as the caller names them."
    )
    vertices: list[int | str] | None = Field(
        default=None, description="The vertices at fault, as the caller names them."
    )
    field: str | None = Field(default=None, description="JSON pointer of the member, or `/` and the column, at fault.")
    operation: int | None = Field(default=None, description="Place in `batch` of the operation at fault, from 0.")
    parameter: str | None = Field(default=None, description="The parameter of path or query at fault.")
    header: str | None = Field(default=None, description="The header at fault.")
    request_id: str | None = None
