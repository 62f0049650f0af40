"""uvicorn's HTTP protocol with the bounds it lacks: bytes and time of a request's head, and the time an answer takes.

One request at a time: the parser gets a connection's bytes up to the end of one request, and what comes behind it when
that one is answered. So answers go out in order, also the refusal of what is no HTTP, and a request behind another
cannot take its answer away. What is no HTTP is answered as problem+json too.
"""

import asyncio
import socket
import time
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import Any, Final

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.api.http.chunks import Chunks, Refused
from service.api.http.closing import close_unless_begun, hang_up, id_of_refused, refusal, reset
from service.api.http.connections import Place, ServerConfig
from service.api.http.cookies import ours
from service.api.http.corked import Corked
from service.api.http.heads import end_of_head, is_in_chunks, no_http
from service.api.http.timer import Timer
from service.api.http.unchunked import without_chunks

MAX_HEAD_BYTES: Final = 64 * 1024
"""Request line and headers together."""

MAX_URL_BYTES: Final = 4 * 1024
"""Longest URL of a request. The longest that is of use here has a few hundred bytes."""

MAX_HEADERS: Final = 128
"""Headers of a request. All are looked through for each one that is read, and each takes far more memory than bytes."""

HEAD_TIMEOUT_S: Final = 20.0
"""Time for the end of a head to come. It begins with the connection, with the first byte of a later request, or with an
answer that came before the end of its body."""

UNSENT_BYTES: Final = 128 * 1024
"""Bytes of an answer that wait in the kernel while the reader takes none. The rest waits here, where it is counted."""

WRITE_TIMEOUT_S: Final = 30.0
"""Time for a reader to take what was handed over at once: `service.api.replies.sending.PIECE_BYTES` at most."""

PIECE_BYTES: Final = 4 * 1024
"""Bytes of a chunked body that the parser gets at a time: it calls back for each chunk, and a chunk may be one byte."""

HALF_CLOSED_S: Final = 10.0
"""How long an answer may take to begin for a caller who has closed its side of the connection, and may be gone."""

TURN_S: Final = 0.001
"""When the parser has been at work for so long, the event loop turns, and other connections come first."""

BLANK_BYTES: Final = 4 * 1024
"""How many of the `MAX_HEAD_BYTES` each empty line before a request counts for, since each costs a call of the
parser."""

MAX_UNREAD_BYTES: Final = 1024 * 1024
"""A connection is closed when more than this of a body comes after its answer, or of anything after a refusal."""

UNHEARD: Final = b"x-forwarded-for"
"""A header that the service does not use, and that the framework would parse."""


class Part(Enum):
    """The part of a request that the next bytes of a connection belong to."""

    HEAD = "head"
    BODY = "body"
    CHUNKS = "chunks"
    AHEAD = "ahead"
    """The next request; it waits until the present one is answered."""
    OVER = "over"
    """Nothing: the bytes are dropped, because the connection ends with a refusal."""


class Flow(FlowControl):
    """The flow control of a connection, which reads nothing more while some of what was read is not parsed."""

    held = False

    def hold(self, held: bool) -> None:
        """Read nothing more from the connection while this is True."""
        self.held = held
        if held:
            self.pause_reading()

    def resume_reading(self) -> None:
        if not self.held:
            super().resume_reading()


class BoundedProtocol(HttpToolsProtocol):
    """Answers the requests of one connection, one after the other."""

    config: ServerConfig
    flow: Flow

    def __init__(self, *args: Any, place: Place | None = None, **kwargs: Any) -> None:
        """`place` is the place of the TLS handshake, if there was one."""
        super().__init__(*args, **kwargs)
        self.place = place
        self._part = Part.HEAD
        self._head_bytes = 0
        self._begun = False
        """Whether the head has begun: empty lines before it do not count."""
        self._body_left = 0
        """Bytes that a body of a known length has still to come."""
        self._past_parser = False
        """Whether the parser takes this request for a change of protocol, so that its body does not go through it."""
        self._chunks = Chunks()
        self._tail = b""
        """The latest bytes that the parser got, where an `END` may have begun."""
        self._ahead = b""
        """Bytes that have come and are not parsed yet."""
        self._has_turn_to_come, self._unread_bytes = False, 0
        self._head_timer, self._write_timer = Timer(self.loop), Timer(self.loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # the server gives it no other kind
        super().connection_made(transport)
        self.flow = Flow(transport)
        # Then pause_writing says that the reader has not taken all. With 0, TLS of uvloop says so even if it has.
        transport.set_write_buffer_limits(high=1, low=0)
        with suppress(OSError):  # of a caller who has gone already
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        if self.place is None:
            self.place = self.config.connections.enter(transport)
        else:
            self.place.goes_to(transport)
        if self.place is None:
            transport.abort()
        else:
            self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_timer.stop()
        self.resume_writing()
        if self.place is not None:
            self.place.leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        if self._part is Part.AHEAD and not self.cycle.keep_alive:
            return  # nothing will be answered after this one
        if self._part is Part.OVER:
            self._pass_over(data)
            return
        self._ahead = self._ahead + data if self._ahead else data
        if not self._has_turn_to_come:
            self._read()

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's always closes
        """Whether a caller who sends nothing more is still answered, as one of `nc -N` is: what was asked whole, and is
        no stream whose reader can only be known to be gone by this. TLS has no such ends."""
        if self._part is not Part.AHEAD or self.cycle.chunked_encoding or not self.transport.can_write_eof():
            return False
        self.scope["extensions"]["headrace"]["has_left"] = True
        self.cycle.keep_alive = False  # which closes the connection when it is answered
        self._head_timer.start(HALF_CLOSED_S, partial(close_unless_begun, self.cycle, self.transport))
        return True

    def pause_writing(self) -> None:
        super().pause_writing()
        if not self._write_timer.is_running:
            self._write_timer.start(WRITE_TIMEOUT_S, self._give_up_reader)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._write_timer.stop()

    def on_message_begin(self) -> None:
        if self._part is not Part.HEAD:
            raise Refused("a request goes on after its end")
        self._begun = True
        super().on_message_begin()
        self.scope["extensions"] = {"headrace": {"abort": partial(reset, self.transport)}}

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MAX_URL_BYTES:
            raise Refused(f"the URL is over {MAX_URL_BYTES} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == UNHEARD or self._part is not Part.HEAD:  # behind a body in chunks
            return
        if name.lower() == b"cookie":
            value = ours(value)
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            raise Refused(f"there are more than {MAX_HEADERS} headers")

    def on_headers_complete(self) -> None:
        in_chunks = is_in_chunks(self.url, self.headers, self.parser.get_http_version())
        self._body_left = int(dict(self.headers).get(b"content-length", b"0"))
        changes = self.parser.should_upgrade()
        if changes and in_chunks:
            raise Refused("a body in chunks goes with no offer of another protocol")
        super().on_headers_complete()
        if self.scope["http_version"] == "1.0":
            without_chunks(self.cycle)
        self._corked = Corked(self.transport, self.loop)
        self.cycle.transport = self._corked  # type: ignore[assignment]  # all that a cycle uses
        self._head_timer.stop()
        self._part = Part.CHUNKS if in_chunks else Part.BODY
        self._past_parser = changes and self._body_left > 0
        self._chunks = Chunks()
        self._unread_bytes = 0
        if self.place is not None:
            self.place.busy()

    def on_message_complete(self) -> None:
        if self._past_parser and self._body_left:
            return  # the parser, which sees no body, believes that the request is over
        super().on_message_complete()
        if self.cycle.response_complete:
            self._next()
        else:
            self._part = Part.AHEAD

    def on_response_complete(self) -> None:
        self._corked.flush()  # before anything that is written past it, such as a refusal of what comes behind
        super().on_response_complete()
        self._unset_keepalive_if_required()  # which it has set, not knowing what is `_ahead`
        self.cycle.body.clear()
        if self.transport.is_closing():
            return
        if self._part is Part.AHEAD:
            self._next()
            self._read()
        else:  # an early refusal: the rest of the body is passed over
            self._start_head_timer()
            if self.place is not None:
                self.place.free()

    def _read(self) -> None:
        """Give the parser what has come, up to the end of one request. The rest waits until that one is answered."""
        began, self._has_turn_to_come = time.perf_counter(), False
        data, at = self._ahead, 0
        while at < len(data) and self._part not in (Part.AHEAD, Part.OVER) and not self.transport.is_closing():
            if at and time.perf_counter() - began > TURN_S:
                self._has_turn_to_come = True
                self.config.turns.wait(self._read)
                break
            try:
                end = self._end_of_part(data, at)
            except Refused as why:
                self._refuse(str(why))
                break
            self._feed(data[at:end])
            at = end
        self._ahead = b"" if self._part is Part.OVER else data[at:]
        self.flow.hold(bool(self._ahead))
        if self.cycle is None or len(self.cycle.body) <= HIGH_WATER_LIMIT:
            self.flow.resume_reading()
        if self._part is Part.HEAD and not self.transport.is_closing():
            self._await_head()

    def _end_of_part(self, data: bytes, at: int) -> int:
        """How far `data` can be parsed without going beyond the end of this request. Raises `Refused`."""
        if self._part is Part.BODY:
            return min(len(data), at + self._body_left)
        if self._part is Part.CHUNKS:
            return self._chunks.advance(data, at, PIECE_BYTES)
        return end_of_head(self._tail, data, at)

    def _feed(self, piece: bytes) -> None:
        if self._part is Part.HEAD:
            self._head_bytes += len(piece)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(f"the head is over {MAX_HEAD_BYTES} bytes")
                return
        elif self.cycle.response_complete:
            self._pass_over(piece)
            if self.transport.is_closing():
                return
        if self._part is Part.BODY:
            self._body_left -= len(piece)
            if self._past_parser:
                self.on_body(piece)
                if not self._body_left:
                    self.on_message_complete()
                return
        self._tail = piece[-3:] if len(piece) > 2 else (self._tail + piece)[-3:]
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            pass  # whoever offers another protocol is answered in this one
        except httptools.HttpParserError as error:
            why = error.__context__
            self._refuse(str(why) if isinstance(why, Refused) else no_http(error))
            return
        if self._part is Part.HEAD and not self._begun:
            self._head_bytes += BLANK_BYTES
        if self._part is Part.CHUNKS and self._chunks.is_over:
            self._refuse("a body in chunks goes on after its end")

    def _pass_over(self, piece: bytes) -> None:
        self._unread_bytes += len(piece)
        if self._unread_bytes > MAX_UNREAD_BYTES:
            self.transport.close()

    def _refuse(self, why: str) -> None:
        """Answer 400, unless the request has been answered already, and hang up."""
        begun = None if self._part is Part.HEAD else self.cycle
        request_id = id_of_refused(self.headers if self._begun else (), begun)
        self.config.refusals.tell(why, request_id)
        if begun is not None and begun.response_started:
            self.transport.close()
            return
        if begun is not None:
            begun.disconnected = True  # whoever reads the body need not wait for the rest
            begun.message_event.set()
        self._part, self._unread_bytes = Part.OVER, 0
        self._head_timer.stop()
        self.transport.write(refusal(why, request_id, self.server_state.default_headers))
        hang_up(self.transport, self._head_timer)

    def _next(self) -> None:
        """Begin the head of the next request, as this one is over."""
        self._part = Part.HEAD
        self._head_bytes, self._begun = 0, False
        if self.place is not None:
            self.place.free()

    def _await_head(self) -> None:
        self._unset_keepalive_if_required()
        if not self._head_bytes:
            self._head_timer.stop()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        elif not self._head_timer.is_running:
            self._start_head_timer()

    def _give_up_reader(self) -> None:
        self.config.refusals.tell(f"a reader has not taken its answer for {WRITE_TIMEOUT_S:g} s")
        reset(self.transport)

    def _start_head_timer(self) -> None:
        self._head_timer.start(HEAD_TIMEOUT_S, self.transport.close)
