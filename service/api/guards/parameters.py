"""Query parameters that nobody reads are refused: `?dryrun=true` that is dropped in silence would be a real change.

So is a parameter that is there twice, of which only one would count, and not the same one for a proxy as for us; and a
whole number that only Python reads as one, such as 1_0.
"""

import re
from typing import Final

from fastapi import Request
from fastapi.routing import APIRoute

from gpu_engine.text.near import did_you_mean
from service.api.replies.signposts import query_parameters
from service.errors import ServiceError

WHOLE: Final = re.compile(r"-?[0-9]+")


async def refuse_unknown_parameters(request: Request) -> None:
    """Raises invalid_request. Probes, pages and metrics take any, as proxies and scrapers add some."""
    route: APIRoute = request.scope["route"]
    path = route.path
    if not request.scope["query_string"] or not path.startswith("/v1/"):
        return
    known = query_parameters(route)
    given = request.query_params.multi_items()
    names = [name for name, _ in given]
    for place, (name, value) in enumerate(given):
        if name not in known:
            there = f"; there {'is' if len(known) == 1 else 'are'} {', '.join(known) or 'none'}"
            hint = did_you_mean(name, list(known), there)
            detail = f"there is no query parameter {name[:100]!r} for {request.method} {path}{hint}"
            raise ServiceError("invalid_request", detail, parameter=name[:100])
        if name in names[:place]:  # of a few that are known: the first unknown name ends this
            raise ServiceError("invalid_request", f"the query parameter {name!r} is there twice", parameter=name)
        if known[name] and not WHOLE.fullmatch(value):
            detail = f"query.{name}: should be a whole number, in digits alone"
            raise ServiceError("invalid_request", detail, parameter=name)
