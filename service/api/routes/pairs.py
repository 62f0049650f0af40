"""/v1/graphs/{name}/pairs, /gomory-hu-tree and /global-min-cut."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.accept import encoding_of, rows_form
from service.api.backend import Context, GraphName
from service.api.bodies.pair_tasks import global_cut_task, pairs_task, tree_task
from service.api.openapi import ACCEPTED, FORMS, KEY_IGNORED, PREFER, PROBLEMS, ROW_FORMS, request_body
from service.api.questions import answer_question
from service.api.replies.rows import as_they_come
from service.models.pairs import (
    GLOBAL_EXAMPLES,
    PAIRS_EXAMPLES,
    TREE_EXAMPLES,
    CutTreeBody,
    CutTreeInfo,
    GlobalCutBody,
    GlobalCutInfo,
    PairsBody,
    PairsInfo,
)
from service.protocol import Kind

router = APIRouter(prefix="/v1/graphs/{name}", tags=["flows"], responses={**PROBLEMS, **ACCEPTED})

PAIRS: Final = request_body(PairsBody, PAIRS_EXAMPLES, PREFER, KEY_IGNORED)
TREE: Final = request_body(CutTreeBody, TREE_EXAMPLES, PREFER, KEY_IGNORED, required=False)
GLOBAL: Final = request_body(GlobalCutBody, GLOBAL_EXAMPLES, PREFER, KEY_IGNORED, required=False)


@router.post("/pairs", response_model=PairsInfo, responses=ROW_FORMS, openapi_extra=PAIRS)
async def pairs(name: GraphName, request: Request, backend: Context) -> Response:
    """The maximum flows of many pairs of vertices. None of them is kept, and updates do not wait."""
    lines, encoding = rows_form(request.headers)
    task = pairs_task(backend.settings.max_question_rows, lines=lines, encoding=encoding)
    wait = as_they_come(request, backend, name) if lines else None
    return await answer_question(request, backend, Kind.PAIRS, name, task, wait)


@router.post("/gomory-hu-tree", response_model=CutTreeInfo, responses=FORMS, openapi_extra=TREE)
async def gomory_hu_tree(name: GraphName, request: Request, backend: Context) -> Response:
    """A tree that holds a minimum cut of every two vertices, of all or of some, in an undirected graph."""
    task = tree_task(backend.settings.max_question_rows, encoding_of(request.headers))
    return await answer_question(request, backend, Kind.GOMORY_HU_TREE, name, task)


@router.post("/global-min-cut", response_model=GlobalCutInfo, responses=FORMS, openapi_extra=GLOBAL)
async def global_min_cut(name: GraphName, request: Request, backend: Context) -> Response:
    """The cheapest cut that divides the graph at all: the least minimum cut of any two vertices."""
    return await answer_question(
        request, backend, Kind.GLOBAL_MIN_CUT, name, global_cut_task(encoding_of(request.headers))
    )
