"""The exception of each code that the service answers."""

from collections.abc import Mapping, Sequence
from typing import Any

from headrace._errors import NOWHERE, ApiError

BY_CODE: Mapping[str, type[ApiError]] = {kind.code: kind for kind in ApiError.__subclasses__()}


def api_error(
    code: str,
    status: int,
    detail: str,
    rows: Sequence[object] = (),
    retry_after_s: float | None = None,
    request_id: str | None = None,
    where: Mapping[str, Any] = NOWHERE,
) -> ApiError:
    """The exception of `code`; a plain `ApiError` for a code of a newer service."""
    kind = BY_CODE.get(code, ApiError)
    return kind(
        detail, code=code, status=status, rows=rows, retry_after_s=retry_after_s, request_id=request_id, where=where
    )
