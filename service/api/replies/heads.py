"""HEAD is answered wherever GET is, with the head of the same answer."""

from typing import Final

from anyio import CancelScope
from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

OF_HEAD: Final = "of_head"
FOUND: Final = ("route", "endpoint", "path_params")
"""What is found out about a request on the way, for the layers around."""


def is_of_head(request: Request) -> bool:
    """Whether nobody will read the body of the answer, so that it need not be made."""
    return bool(getattr(request.state, OF_HEAD, False))


class Heads:
    """Takes HEAD for GET, so that all behind it know one method; and ends what makes an answer once its head is there,
    so that no stream is run for nobody. The head is sent when that has ended: whoever has it finds its place free."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})[OF_HEAD] = True
        asked = {**scope, "method": "GET"}
        heads: list[Message] = []
        with CancelScope() as work:

            async def keep_head(message: Message) -> None:
                if message["type"] == "http.response.start":
                    heads.append(message)
                    work.cancel()

            try:
                await self._app(asked, receive, keep_head)
            finally:
                scope.update({name: asked[name] for name in FOUND if name in asked})
        for head in heads:
            await send(head)
            await send({"type": "http.response.body", "body": b""})
