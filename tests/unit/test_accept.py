"""The `Accept` header: which of the forms on offer a caller gets."""

import pytest
from starlette.datastructures import Headers

from service.api.accept import MAX_RANGES, encoding_of, preferred, wants_page
from service.errors import ServiceError

NPZ, ARROW, JSON = "application/x-npz", "application/vnd.apache.arrow.stream", "application/json"
STRINGS = "application/json; numbers=string"


def accept(*values: str) -> Headers:
    return Headers(raw=[(b"accept", value.encode()) for value in values])


@pytest.mark.parametrize(
    ("values", "encoding"),
    [
        ([], "json"),
        ([""], "json"),
        (["*/*"], "json"),
        (["application/*"], "json"),
        ([NPZ], "npz"),
        ([NPZ.upper()], "npz"),
        ([ARROW], "arrow"),
        ([f"{NPZ}, {ARROW};q=0.9"], "npz"),
        ([f"{NPZ};q=0.8, {ARROW} ; q=0.9"], "arrow"),
        ([NPZ, f"{ARROW};q=0.9"], "npz"),
        ([f"{JSON}, {NPZ}"], "json"),
        ([f"{NPZ}, {JSON};q=0.5"], "npz"),
        ([f"{NPZ}, */*"], "npz"),
        ([f"*/*, {JSON};q=0.1"], "npz"),
        ([f"*/*;q=0.1, {ARROW};q=0.2"], "arrow"),
        ([f"application/*;q=0.3, {JSON};q=0, {NPZ};q=0"], "arrow"),
        (["text/html, application/xhtml+xml, */*;q=0.8"], "json"),
        ([f"{JSON};charset=utf-8"], "json"),
        ([f"{NPZ};q=nan, {JSON};q=0.1"], "json"),
        ([f"{NPZ};q=2, {JSON};q=0.001"], "json"),
        ([", ,"], "json"),
        ([STRINGS], "strings"),
        (['application/json ; Numbers="string";q=0.5'], "strings"),
        ([f"{JSON}, {STRINGS}"], "strings"),
        ([f"{STRINGS};q=0.2, {JSON}"], "json"),
        ([f"{JSON};numbers=text, */*;q=0.1"], "json"),
        ([f"{NPZ};q=0.1, {STRINGS};q=0"], "npz"),
    ],
)
def test_the_form_that_is_preferred(values: list[str], encoding: str) -> None:
    assert encoding_of(accept(*values)) == encoding


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("text/html", ""),
        ("json", ""),
        (f"{JSON};q=0", ""),
        (f"{JSON};numbers=strings", "did you mean 'application/json; numbers=string'?"),
        (f"{NPZ};numbers=string", ""),
        ("*/*;q=0", ""),
        (f"{NPZ};q=0, {ARROW};q=0.000, {JSON};q=0.0", ""),
        ("application/npz", f"did you mean {NPZ}?"),
        ("application/vnd.apache.arrow.file", f"did you mean {ARROW}?"),
        ("application/x-npy", "did you mean 'application/x-npz'?"),
        (", ".join([*(f"text/x-{i}" for i in range(MAX_RANGES)), JSON]), ""),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(value: str, hint: str) -> None:
    with pytest.raises(ServiceError) as refused:
        encoding_of(accept(value))
    assert (refused.value.code, refused.value.status) == ("not_acceptable", 406)
    assert all(offered in refused.value.detail for offered in (NPZ, ARROW, JSON))
    assert hint in refused.value.detail
    assert refused.value.where.members()["header"] == "Accept"


def test_one_form_alone() -> None:
    assert preferred(accept("application/*"), (NPZ,)) == NPZ
    with pytest.raises(ServiceError, match="there are application/x-npz"):
        preferred(accept(JSON), (NPZ,))


@pytest.mark.parametrize(
    ("values", "page"),
    [
        (["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"], True),
        (["image/png, Text/HTML;q=0.9"], True),
        ([f"{JSON};q=0.5, text/html;q=0.6"], True),
        ([], False),
        (["*/*"], False),
        (["text/html;q=0"], False),
        (["text/html;q=0, */*"], False),
        ([f"{JSON}, text/html"], False),
        ([f"{JSON}, text/html;q=0.9"], False),
        (["application/x-text/html"], False),
    ],
)
def test_who_gets_a_page(values: list[str], page: bool) -> None:
    assert wants_page(accept(*values)) == page
