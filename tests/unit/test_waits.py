"""A wait for a reply ends with its caller."""

import asyncio
from typing import Any

import pytest
from starlette.requests import Request

from service.api.replies import waits
from service.api.replies.waits import while_there

END = {"type": "http.disconnect"}
BODY = {"type": "http.request", "body": b"", "more_body": False}


async def ask(after_s: float, gone_s: float, wait_s: float) -> tuple[Any, list[str], float]:
    """What comes of a wait for a reply that is there after a while, by a caller who goes after another."""
    told: list[str] = []
    began = asyncio.get_running_loop().time()
    messages = [BODY]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await asyncio.sleep(gone_s)
        return END

    async def wait(job_id: str, wait_s: float) -> str | None:
        left_s = began + after_s - asyncio.get_running_loop().time()
        try:
            await asyncio.sleep(min(left_s, wait_s))
        except asyncio.CancelledError:
            told.append("cancelled")
            raise
        return job_id if left_s <= wait_s else None

    found = await while_there(Request({"type": "http", "headers": []}, receive), wait, "j", wait_s)
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert left == []
    return found, told, asyncio.get_running_loop().time() - began


@pytest.mark.parametrize(
    ("after_s", "gone_s", "wait_s", "found", "told"),
    [
        (0.01, 60.0, 60.0, "j", []),
        (0.3, 60.0, 60.0, "j", []),
        (60.0, 60.0, 0.3, None, []),
        (60.0, 60.0, 0.01, None, []),
        (60.0, 0.1, 60.0, None, ["cancelled"]),
    ],
)
def test_a_wait_ends_with_its_caller(
    monkeypatch: pytest.MonkeyPatch, after_s: float, gone_s: float, wait_s: float, found: str | None, told: list[str]
) -> None:
    """It held a place among the open requests until it was over: a client that asked each second had all of them."""
    monkeypatch.setattr(waits, "UNWATCHED_S", 0.05)
    came, heard, took_s = asyncio.run(ask(after_s, gone_s, wait_s))
    assert (came, heard) == (found, told)
    assert took_s < 30
