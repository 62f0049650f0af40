"""Choosing a reader by media type or suffix, and the kinds of source all readers take."""

import io
from pathlib import Path

import pytest

from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats import (
    MEDIA_TYPES,
    SUFFIXES,
    read,
    read_file,
    write_arrow,
    write_csv,
    write_dimacs,
    write_npz,
)
from gpu_engine.formats import write_json as write_columnar_json
from gpu_engine.generators import generate

EDGES = generate("rlg", seed=1, rows=3, columns=3)
WRITTEN = {
    "application/json": write_columnar_json(EDGES),
    "application/vnd.apache.arrow.stream": write_arrow(EDGES),
    "application/x-npz": write_npz(EDGES),
    "text/x-dimacs": write_dimacs(EDGES),
    "text/csv": write_csv(EDGES),
}


@pytest.mark.parametrize("media_type", WRITTEN)
def test_read_by_media_type(media_type: str) -> None:
    edges = read(WRITTEN[media_type], media_type.upper() + "; charset=utf-8")
    assert edges.capacity.tolist() == EDGES.capacity.tolist()


@pytest.mark.parametrize("media_type", WRITTEN)
def test_read_from_path_file_and_views(media_type: str, tmp_path: Path) -> None:
    data = WRITTEN[media_type]
    suffix = next(suffix for suffix, named in SUFFIXES.items() if named == media_type)
    path = tmp_path / f"network{suffix}"
    path.write_bytes(data)
    sources = [data, bytearray(data), memoryview(data), path, str(path), io.BytesIO(data)]
    for source in sources:
        assert read(source, media_type).n_edges == EDGES.n_edges
    assert read_file(path).n_edges == EDGES.n_edges


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
@pytest.mark.parametrize("data", [b"", b"\0", b"\0" * 64, b"PK\x03\x04", b"\x93NUMPY\x01\x00", b"\xff" * 64])
def test_rubbish_is_refused_by_every_reader(media_type: str, data: bytes) -> None:
    with pytest.raises(InvalidNetwork):
        read(data, media_type)


def test_unknown_kinds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidNetwork, match="media type"):
        read(b"", "application/pickle")
    with pytest.raises(InvalidNetwork, match="suffix"):
        read_file(tmp_path / "network.pkl")


def test_every_suffix_has_a_reader() -> None:
    assert set(SUFFIXES.values()) == set(MEDIA_TYPES)


ASCII_TEXTS = {
    "text/x-dimacs": "p max 3 1\r\na 1 2 5\r\n",
    "text/x-matrix-market": "%%MatrixMarket matrix coordinate integer general\r\n3 3 1\r\n1 2 5\r\n",
    "text/x-adjacency-matrix": "0 5\r\n0 0\r\n",
}


@pytest.mark.parametrize("media_type", ASCII_TEXTS)
def test_texts_as_editors_of_windows_write_them(media_type: str) -> None:
    text = ASCII_TEXTS[media_type]
    assert read(text.encode("utf-8-sig"), media_type).capacity.tolist() == [5]
    with pytest.raises(InvalidNetwork, match="line 1: byte 255 is not ASCII, but the text begins like UTF-16: save it"):
        read(b"\xff\xfe" + text.encode("utf-16-le"), media_type)
    with pytest.raises(InvalidNetwork, match="line 2: byte 195 is not ASCII"):
        read(text.replace("\n", "\né", 1).encode("utf-8-sig"), media_type)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("media_type", ["text/x-dimacs", "text/x-matrix-market"])
def test_comments_may_be_in_any_encoding(media_type: str, encoding: str) -> None:
    mark = "c" if "dimacs" in media_type else "%"
    first, _, rest = ASCII_TEXTS[media_type].partition("\n")
    text = f"{first}\n{mark} Straßen von Zürich\n{mark}é\n{rest}{mark} ä"
    assert read(text.encode(encoding), media_type).capacity.tolist() == [5]
    with pytest.raises(InvalidNetwork, match=r"line [45]: byte \d+ is not ASCII"):
        read(text.replace("1 2 5", "1 2 ä").encode(encoding), media_type)
    with pytest.raises(InvalidNetwork, match="line 2: byte 0 is no text"):
        read(text.replace("ß", "\0").encode(encoding), media_type)


def test_the_first_line_of_a_matrix_is_no_comment() -> None:
    text = ASCII_TEXTS["text/x-matrix-market"].replace("general", "généràl")
    with pytest.raises(InvalidNetwork, match="line 1: only integer"):
        read(text.encode(), "text/x-matrix-market")
