"""The short way to the routes of one graph, for requests without a query: found by method and path, and called.

The framework compares a request with one route after the other, resolves parameters by inspection, and keeps stacks of
contexts that no route of a graph uses; together that takes longer than all that the service itself does for a
question. What is checked stays the same: here the caller, the name and what nobody would read, in the route all else.
Whatever could be refused or answered otherwise by the framework goes the long way: a query, another method, a name that
is none.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.guards.access import authorise
from service.api.guards.unread import refuse_unread
from service.models.graphs import is_graph_name

GRAPHS: Final = "/v1/graphs/"
ONE_GRAPH: Final = f"{GRAPHS}{{name}}"
GIVEN: Final = frozenset({"name", "request", "backend", "caller"})
"""Parameters of a route that are known without the framework. All others must have a default."""

Endpoint: TypeAlias = Callable[..., Awaitable[Response]]
Handler: TypeAlias = Callable[[Request, Exception], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Way:
    """One route, and what its function is given."""

    route: APIRoute
    endpoint: Endpoint
    takes: frozenset[str]


class Direct:
    """Calls the routes of one graph; passes all else on. Raises what no handler of the application is for."""

    def __init__(self, app: ASGIApp, routes: Iterable[object], handlers: Mapping[Any, Any]) -> None:
        self._app = app
        self._ways = ways(routes)
        self._handlers = handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        way = self._way(scope)
        if way is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = way.route
        request = Request(scope, receive)
        try:
            caller = await authorise(request)
            await refuse_unread(request)
            state = scope["state"]
            known = {"request": request, "backend": state["backend"], "caller": caller, **scope["path_params"]}
            response = await way.endpoint(**{name: known[name] for name in way.takes})
        except Exception as error:
            handler = self._handler(error)
            if handler is None:
                raise
            response = await handler(request, error)
        await response(scope, receive, send)

    def _way(self, scope: Scope) -> Way | None:
        """The route of a request that can take the short way, with the name of the graph left in the scope."""
        if scope["type"] != "http" or scope["query_string"] or scope.get("root_path"):
            return None
        path: str = scope["path"]
        if not path.startswith(GRAPHS):
            return None
        name, slash, rest = path[len(GRAPHS) :].partition("/")
        way = self._ways.get((scope["method"], slash + rest))
        if way is None or not is_graph_name(name):
            return None
        scope["path_params"] = {"name": name}
        return way

    def _handler(self, error: Exception) -> Handler | None:
        """The handler of the nearest of the error's classes that has one, as the framework chooses."""
        found = (self._handlers[kind] for kind in type(error).__mro__ if kind in self._handlers)
        return next(found, None)


def ways(routes: Iterable[object]) -> dict[tuple[str, str], Way]:
    """The routes of one graph that can be called as they are, by method and by what follows the graph's name."""
    found: dict[tuple[str, str], Way] = {}
    for route in routes:
        if not isinstance(route, APIRoute) or not route.path.startswith(ONE_GRAPH):
            continue
        rest = route.path.removeprefix(ONE_GRAPH)
        signature, resolved = inspect.signature(route.endpoint), route.dependant
        parameters = signature.parameters
        needed = {name for name, parameter in parameters.items() if parameter.default is parameter.empty}
        others = (*route.dependencies, *resolved.header_params, *resolved.cookie_params, *resolved.body_params)
        if "{" in rest or ":" in rest or not needed <= GIVEN or others or signature.return_annotation is not Response:
            continue
        for method in route.methods or ():
            found[method, rest] = Way(route, route.endpoint, GIVEN & parameters.keys())
    return found


def install(app: FastAPI, routes: Iterable[object]) -> None:
    """Put the short way before the framework's own: behind all layers that are added from now on."""
    app.add_middleware(Direct, routes=list(routes), handlers=app.exception_handlers)
