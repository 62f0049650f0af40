"""RFC 9457 problem details, as every refusal is answered."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from service.errors import STATUS


class ProblemInfo(BaseModel):
    type: Literal["about:blank"] = "about:blank"
    title: str
    status: int
    code: str = Field(json_schema_extra={"enum": [*sorted(STATUS)]})
    detail: str
    rows: list[Any] = Field(default=[], description="What is at fault, at most ten: edge ids, rows or vertices.")
    request_id: str | None = None
