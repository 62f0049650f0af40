"""Counts in words that people read."""


def counted(count: int, one: str, many: str = "") -> str:
    """``1 row``, ``2 rows``: the count, and `one` or `many`, which is `one` with an s unless it is given."""
    return f"{count} {one if count == 1 else many or f'{one}s'}"
