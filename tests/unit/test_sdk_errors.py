"""The client's exceptions mirror the codes of docs/api.md and leave nothing of httpx outside."""

import copy
import inspect
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import headrace
import httpx
import pytest
from headrace import _connecting, _errors
from headrace._codes import api_error

API = Path(__file__).parents[2] / "docs" / "api.md"


def documented_codes() -> list[tuple[str, int]]:
    table = API.read_text().partition("| code | status | when |")[2]
    return [(code, int(status)) for code, status in re.findall(r"^\| ([a-z_]+) \| (\d{3}) \|", table, re.M)]


def test_the_table_was_found() -> None:
    assert len(documented_codes()) >= 18


@pytest.mark.parametrize(("code", "status"), documented_codes())
def test_every_documented_code_has_its_class(code: str, status: int) -> None:
    error = api_error(code, status, "why", [17])
    assert type(error) is not headrace.ApiError
    assert (error.code, error.status, error.detail, error.rows) == (code, status, "why", [17])
    assert getattr(headrace, type(error).__name__) is type(error)


def test_a_code_of_a_newer_service_is_an_api_error() -> None:
    error = api_error("flux_capacitor", 418, "why")
    assert type(error) is headrace.ApiError
    assert error.code == "flux_capacitor"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_a_refusal_gets_to_another_process_as_it_is(again: Callable[[headrace.ApiError], headrace.ApiError]) -> None:
    error = api_error("unknown_edge", 404, "why", [17], 1.5, "4bf92f", {"edges": ["a"], "field": "/edges"})
    error.add_note("street 17")
    there = again(error)
    assert type(there) is headrace.UnknownEdge
    assert (str(there), vars(there)) == (str(error), vars(error))


def test_the_tree_in_the_docstring_is_complete() -> None:
    drawn = set(re.findall(r"\+-- (\w+)", inspect.getdoc(_errors) or "")) | {"HeadraceError"}
    defined = {
        name
        for name, value in vars(_errors).items()
        if inspect.isclass(value) and issubclass(value, headrace.HeadraceError)
    }
    assert drawn == defined


def request_errors(kind: type[httpx.RequestError] = httpx.RequestError) -> list[type[httpx.RequestError]]:
    return [kind, *(leaf for child in kind.__subclasses__() for leaf in request_errors(child))]


@pytest.mark.parametrize("kind", request_errors())
def test_every_request_error_of_httpx_is_translated(kind: type[httpx.RequestError]) -> None:
    with pytest.raises(headrace.TransportError), _connecting.translated():
        raise kind("gone")


def test_public_names() -> None:
    modules = {"csgraph", "igraph", "maxflow"}  # are there once somebody has imported them
    public = {name for name in vars(headrace) if not name.startswith("_")} - modules
    assert public == set(headrace.__all__)
