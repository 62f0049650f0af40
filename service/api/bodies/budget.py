"""Bytes of memory that one API process spends on a purpose: counted before they are spent, and never over a limit."""

import threading
from types import TracebackType
from typing import Self

from service.errors import ServiceError


class ByteBudget:
    """Counts bytes for event loop and threads alike. What is over the limit is refused, not waited for."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._used_bytes = 0
        self._lock = threading.Lock()

    @property
    def used_bytes(self) -> int:
        return self._used_bytes

    def take(self, n_bytes: int) -> None:
        """Raises rate_limited, whose caller is to come back."""
        with self._lock:
            if self._used_bytes + n_bytes > self.limit_bytes:
                raise ServiceError("rate_limited", "too many bytes of bodies in flight", retry_after_s=1)
            self._used_bytes += n_bytes

    def give_back(self, n_bytes: int) -> None:
        with self._lock:
            self._used_bytes -= n_bytes


class Hold:
    """What one request has of a budget; all of it goes back when the block ends."""

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self.n_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.settle(0)

    def take(self, n_bytes: int) -> None:
        """Raises too_large if there will never be room for this one request, rate_limited if there is none now."""
        needed = self.n_bytes + n_bytes
        if needed > self._budget.limit_bytes:
            limit = self._budget.limit_bytes
            raise ServiceError("too_large", f"this takes {needed} bytes of memory; a process has {limit} for it")
        self._budget.take(n_bytes)
        self.n_bytes = needed

    def settle(self, n_bytes: int) -> None:
        """Hold exactly so much."""
        if n_bytes > self.n_bytes:
            self.take(n_bytes - self.n_bytes)
        else:
            self._budget.give_back(self.n_bytes - n_bytes)
            self.n_bytes = n_bytes
