"""/v1/webhooks: addresses that the events of graphs are sent to."""

import asyncio
import time
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from service.api.backend import Backend, Context
from service.api.bodies.receive import read_body, refuse_body
from service.api.guards.access import Caller, CallerOf
from service.api.headers import idempotency_key, require_json
from service.api.openapi import IDEMPOTENCY_KEY, PROBLEMS, request_body
from service.api.replies.answers import json_response
from service.api.routes.graphs import MAX_SMALL_BODY_BYTES
from service.errors import ServiceError
from service.models.body import parse_body
from service.models.webhooks import (
    EXAMPLES,
    WEBHOOK_NAME,
    DeliveryInfo,
    DeliveryList,
    SecretInfo,
    WebhookBody,
    WebhookInfo,
    WebhookList,
)
from service.store.feed.record import TYPES
from service.store.hooks.asked import Asked
from service.store.hooks.record import Delivery, Webhook, new_secret
from service.store.lost_data import refuse_if_lost
from service.webhooks.targets import Forbidden, addresses_of, checked_url, hosts_of

router = APIRouter(prefix="/v1/webhooks", tags=["feed"], responses=PROBLEMS)

CHANGED: Final = "other requests changed this webhook at the same time: send the request again"

RESOLVE_S: Final = 2.0
"""Time to resolve the host when a webhook is made. It is resolved again at each try, whatever comes of that."""

KEYED: Final[dict[str, Any]] = {"parameters": [IDEMPOTENCY_KEY]}

HookId: TypeAlias = Annotated[str, Path(pattern=WEBHOOK_NAME, examples=["pager"])]
DeliveryId: TypeAlias = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,160}$")]


async def _known(webhook: HookId, backend: Context, caller: CallerOf) -> Webhook:
    found = await backend.hooks.get(webhook)
    if found is None or not _sees(caller, found):
        raise ServiceError("unknown_webhook", f"there is no webhook {webhook!r}")
    return found


def _sees(caller: Caller, hook: Webhook) -> bool:
    return all(caller.sees(graph) for graph in hook.graphs)


Known: TypeAlias = Annotated[Webhook, Depends(_known)]


@router.put(
    "/{webhook}",
    response_model=WebhookInfo,
    responses={201: {"description": "Created, with its `secret`", "model": WebhookInfo}},
    openapi_extra=request_body(WebhookBody, EXAMPLES, IDEMPOTENCY_KEY),
)
async def put_webhook(webhook: HookId, request: Request, backend: Context, caller: CallerOf) -> Response:
    """Send the events of these graphs there, from now on. One that was there keeps its secret, and is enabled."""
    require_json(request)
    async with read_body(request, MAX_SMALL_BODY_BYTES, backend.budget, backend.parsers.threads) as raw:
        body = parse_body(WebhookBody, raw.view())
        asked, repeated = await _asked(request, backend, caller, webhook, b"PUT " + bytes(raw.view()))
    hidden = [graph for graph in body.graphs if not caller.sees(graph)]
    if hidden:
        raise ServiceError("forbidden", f"the key is good for graphs named {caller.prefix}...")
    before = await backend.hooks.get(webhook)
    if before is not None and not _sees(caller, before):
        raise ServiceError("already_exists", f"there is a webhook {webhook!r}: choose another name")
    if repeated is not None:
        return await _put_answer(backend, _same(repeated, before), made=repeated.made)
    refuse_if_lost(backend.settings)
    await _check_target(backend, body.url)
    types: list[str] = [kind for kind in TYPES if body.types is None or kind in body.types]
    hook = Webhook(
        id=webhook, url=body.url, graphs=body.graphs, types=types, secret=new_secret(), created_at=time.time()
    )
    if before is not None:
        kept = {"secret", "old_secret", "rotated_at", "created_at"}
        hook = hook.model_copy(update=before.model_dump(include=kept))
    cursors = {graph: (await backend.feed.place(graph, None)).after for graph in body.graphs}
    most = backend.settings.max_webhooks
    asked = asked and asked.model_copy(update={"made": before is None, "created_at": hook.created_at})
    if not await backend.hooks.put(hook, before, most, cursors, asked):
        if before is None and await backend.hooks.count() >= most:
            raise ServiceError("too_large", f"there are {most} webhooks, the most there may be (max_webhooks)")
        raise ServiceError("worker_unavailable", CHANGED, retry_after_s=1)
    await _until_written(backend, webhook, hook)
    return await _put_answer(backend, hook, made=before is None)


def _same(repeated: Asked, hook: Webhook | None) -> Webhook:
    """The webhook that a request under a key was about. Raises idempotency_conflict if it is gone, and if another one
    has its id: whoever made that has its secret."""
    if hook is None or not repeated.is_about(hook):
        raise ServiceError("idempotency_conflict", "the webhook that this Idempotency-Key was used for is gone")
    return hook


async def _put_answer(backend: Backend, hook: Webhook, *, made: bool) -> Response:
    shown = await _shown(backend, hook)
    if made:
        return json_response(shown.model_copy(update={"secret": hook.secret}), 201)
    return json_response(shown.model_dump(exclude={"secret"}))


async def _asked(
    request: Request, backend: Backend, caller: Caller, hook_id: str, what: bytes
) -> tuple[Asked | None, Asked | None]:
    """What the request's Idempotency-Key is to stand for, and what it stands for already: then nothing is done again.

    Raises idempotency_conflict if that is something else.
    """
    key = idempotency_key(request.headers)
    if key is None:
        return None, None
    asked = Asked.of(key, caller.key_id, what)
    before = await backend.hooks.asked(hook_id, asked)
    if before is not None and before.digest != asked.digest:
        raise ServiceError("idempotency_conflict", "the Idempotency-Key was used for something else of this webhook")
    return asked, before


@router.get("", response_model=WebhookList, response_model_exclude_none=True)
async def list_webhooks(backend: Context, caller: CallerOf) -> Response:
    """The webhooks all of whose graphs the key is good for, by id."""
    hooks = [await _shown(backend, hook) for hook in await backend.hooks.all() if _sees(caller, hook)]
    return json_response({"webhooks": [hook.model_dump(exclude={"secret"}) for hook in hooks]})


@router.get("/{webhook}", response_model=WebhookInfo)
async def get_webhook(hook: Known, backend: Context) -> Response:
    """One webhook, and how many deliveries wait."""
    return json_response((await _shown(backend, hook)).model_dump(exclude={"secret"}))


@router.delete("/{webhook}", status_code=204, openapi_extra=KEYED)
async def delete_webhook(webhook: HookId, request: Request, backend: Context, caller: CallerOf) -> Response:
    """Send nothing there any more; what waits is dropped."""
    asked, repeated = await _asked(request, backend, caller, webhook, b"DELETE")
    if repeated is None:
        await _known(webhook, backend, caller)
        refuse_if_lost(backend.settings)
        await backend.hooks.remove(webhook, asked)
        await _until_written(backend, webhook, None)
    return Response(status_code=204)


@router.post("/{webhook}:rotate", response_model=SecretInfo, openapi_extra=KEYED)
async def rotate_webhook(hook: Known, request: Request, backend: Context, caller: CallerOf) -> Response:
    """A new secret. For a day the one before signs as well, so that receivers can be changed meanwhile."""
    await refuse_body(request)
    asked, repeated = await _asked(request, backend, caller, hook.id, b"rotate")
    if repeated is not None:  # which `hook` may have been read before
        known = _same(repeated, await _known(hook.id, backend, caller))
        return json_response(SecretInfo(secret=known.secret))
    refuse_if_lost(backend.settings)
    rotated = hook.rotated(time.time())
    asked = asked and asked.model_copy(update={"created_at": hook.created_at})
    if not await backend.hooks.put(rotated, hook, backend.settings.max_webhooks, {}, asked):
        raise ServiceError("worker_unavailable", CHANGED, retry_after_s=1)
    await _until_written(backend, hook.id, rotated)
    return json_response(SecretInfo(secret=rotated.secret))


@router.get("/{webhook}/deliveries", response_model=DeliveryList)
async def list_deliveries(
    hook: Known, backend: Context, status: Annotated[Literal["pending", "dead"], Query()] = "pending"
) -> Response:
    """What waits, in the order of the next tries, or what was given up, the newest first. What arrived is not kept."""
    found = await backend.hooks.deliveries(hook.id, status)
    return json_response(DeliveryList(deliveries=[_delivery(one) for one in found]))


@router.post("/{webhook}/deliveries/{delivery}:redeliver", response_model=DeliveryInfo, openapi_extra=KEYED)
async def redeliver(
    hook: Known, delivery: DeliveryId, request: Request, backend: Context, caller: CallerOf
) -> Response:
    """Try a delivery now, and give it all its time again."""
    await refuse_body(request)
    asked, repeated = await _asked(request, backend, caller, hook.id, b"redeliver " + delivery.encode())
    if repeated is not None and repeated.answer is not None:  # it may have arrived since
        return Response(repeated.answer, media_type="application/json")
    found, now = await backend.hooks.delivery(hook.id, delivery), time.time()
    if found is not None:
        again = found.model_copy(update={"status": "pending", "created_at": now, "next_at": now, "attempts": 0})
        answer = _delivery(again)
        asked = asked and asked.model_copy(update={"answer": answer.model_dump_json()})
        if await backend.hooks.redeliver(hook.id, again, asked):
            return json_response(answer)
    raise ServiceError("unknown_webhook", f"webhook {hook.id!r} has no delivery {delivery!r} that waits or is dead")


async def _until_written(backend: Backend, hook_id: str, hook: Webhook | None) -> None:
    """Return once it is with the kernel of Redis that the webhook is as it is here; None: that there is none."""

    async def is_there() -> bool:
        return await backend.hooks.get(hook_id) == hook

    await backend.dispatcher.until_written(is_there)


async def _check_target(backend: Backend, text: str) -> None:
    """Raises invalid_body for a URL that nothing would be sent to. A name that is not known yet is let pass."""
    trusted = hosts_of(backend.settings.webhook_hosts)
    try:
        url = checked_url(text, trusted)
        async with asyncio.timeout(RESOLVE_S):
            await addresses_of(url, trusted, backend.names)
    except Forbidden as error:
        raise ServiceError("invalid_body", f"url: {error}", field="/url") from None
    except (OSError, UnicodeError):  # which TimeoutError is as well
        return


async def _shown(backend: Backend, hook: Webhook) -> WebhookInfo:
    pending, dead = await backend.hooks.counts(hook.id)
    said = hook.model_dump(exclude={"secret", "old_secret", "rotated_at"})
    return WebhookInfo(**said, pending=pending, dead=dead)


def _delivery(found: Delivery) -> DeliveryInfo:
    return DeliveryInfo.model_validate(found.model_dump(exclude={"body"}))
