"""CSV tables: names or indices, exact decimals, refusals with the line."""

import numpy as np
import pytest

from gpu_engine.errors import CapacityOverflow, InvalidNetwork, TooLarge
from gpu_engine.formats import Limits, read_csv, write_csv
from gpu_engine.types import INFINITE

TABLE = b"tail,head,capacity\na,b,1.5\nb,c,inf\na,c,2\n"


def test_text_is_numbered_as_it_appears() -> None:
    edges = read_csv(TABLE)
    assert edges.vertex_labels == ["a", "b", "c"]
    assert edges.tail.tolist() == [0, 1, 0]
    assert edges.head.tolist() == [1, 2, 2]
    assert edges.capacity.tolist() == [15, INFINITE, 20]
    assert edges.decimals == 1


def test_dense_integers_are_indices_and_others_are_names() -> None:
    assert read_csv(b"tail,head,capacity\n0,2,1\n1,2,1\n").vertex_labels is None
    edges = read_csv(b"tail,head,capacity\n900,7,1\n7,12,1\n")
    assert np.asarray(edges.vertex_labels).tolist() == [7, 12, 900]
    assert edges.tail.tolist() == [2, 0]


@pytest.mark.parametrize("written", ["007", "00", "-0", "-07", "+7", "7.0", "7e0"])
def test_what_is_not_written_as_integers_are_is_text(written: str) -> None:
    """A postal code keeps its zeros, and 7 is another vertex than 007."""
    edges = read_csv(f"tail,head,capacity,id\n{written},7,1,{written}\n7,0,1,7\n".encode())
    assert edges.vertex_labels == [written, "7", "0"]
    assert edges.edge_ids == [written, "7"]


@pytest.mark.parametrize("name", [2**63 - 1, -(2**63), 10**18])
def test_integers_of_64_bits_are_integers(name: int) -> None:
    """Identifiers of places and of records often have 19 digits."""
    edges = read_csv(f"tail,head,capacity,id\n{name},7,1,{name}\n".encode())
    assert np.asarray(edges.vertex_labels).tolist() == sorted([name, 7])
    assert np.asarray(edges.edge_ids).tolist() == [name]
    wider = read_csv(b"tail,head,capacity,id\n9223372036854775808,7,1,-9223372036854775809\n")
    assert (wider.vertex_labels, wider.edge_ids) == (["9223372036854775808", "7"], ["-9223372036854775809"])


def test_optional_columns_in_any_order() -> None:
    edges = read_csv(b'undirected,capacity,id,head,tail\ntrue,1,"x,y",1,0\n0,2,z,1,0\n')
    assert edges.edge_ids == ["x,y", "z"]
    assert np.asarray(edges.undirected).tolist() == [True, False]
    for name in ("edge_ids", "id"):
        assert np.asarray(read_csv(f"tail,head,capacity,{name}\n0,1,1,70\n".encode()).edge_ids).tolist() == [70]


@pytest.mark.parametrize("change", [(b"\n", b"\r\n"), (b"a,c,2\n", b"a,c,2"), (b"tail", b"\xef\xbb\xbftail")])
def test_line_ends_and_byte_order_mark_do_not_matter(change: tuple[bytes, bytes]) -> None:
    assert read_csv(TABLE.replace(*change)).capacity.tolist() == [15, INFINITE, 20]


@pytest.mark.parametrize("written", ["inf", "Inf", "INF", "Infinity", "infinity", '"Inf"'])
@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n\r\n  \n"])
def test_infinity_of_other_programs_and_blank_lines_at_the_end(written: str, end: str) -> None:
    edges = read_csv(f"tail,head,capacity\nInf,b,1.5\nb,c,{written}{end}".encode())
    assert edges.capacity.tolist() == [15, INFINITE]
    assert edges.vertex_labels == ["Inf", "b", "c"]


@pytest.mark.parametrize("written", ["-inf", "+inf", "infinit", " inf", "nan", "∞"])
def test_what_is_not_written_as_infinity_is_none(written: str) -> None:
    with pytest.raises(InvalidNetwork, match="line 2: capacity is "):
        read_csv(f"tail,head,capacity\na,b,{written}\n".encode())


def test_header_alone_is_an_empty_network() -> None:
    edges = read_csv(b"tail,head,capacity\n")
    assert (edges.n_vertices, edges.n_edges) == (0, 0)


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        ((b"b,c,inf", b"b,c"), 3, "3 columns expected"),
        ((b"b,c,inf", b"b,c,1,2"), 3, "3 columns expected"),
        ((b"b,c,inf", b"b,c,-1"), 3, "capacity is negative"),
        ((b"b,c,inf", b"b,c,nan"), 3, "capacity is not a number"),
        ((b"b,c,inf", b"b,c,"), 3, "capacity is empty"),
        ((b"b,c,inf", b",c,1"), 3, "tail is empty"),
        ((b"b,c,inf", b"b,c,true"), 3, "capacity is not a number"),
        ((b"b,c,inf", b"b,c,0.1234567891"), 3, "more than 9 decimals"),
        ((b"tail,head", b"from,to"), 1, "the header is tail,head,capacity"),
        ((b"tail,head", b"tail, head"), 1, "' head' is not 'head': a blank beside a comma belongs to the field"),
        ((b"tail,head", b"tail,tail,head"), 1, "the header is tail,head,capacity"),
    ],
)
def test_refuses_with_the_line(change: tuple[bytes, bytes], line: int, message: str) -> None:
    with pytest.raises(InvalidNetwork, match=message) as refusal:
        read_csv(TABLE.replace(*change))
    assert refusal.value.where.lines == [line]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_the_line_is_that_of_the_file_where_fields_have_line_breaks(end: bytes) -> None:
    rows = [b"tail,head,capacity,id", b'a,"b\n\nc",3,1', b'"d\n",e,4,2', b"f,g,much,3", b"h,i,5,2"]
    with pytest.raises(InvalidNetwork, match=r"^line 7: capacity is not a number") as caught:
        read_csv(end.join(rows))
    assert caught.value.where.lines == [7]
    with pytest.raises(InvalidNetwork, match="edge id 2 occurs more than once") as caught:
        read_csv(end.join(rows[:3] + rows[4:]))
    assert caught.value.where.lines == [5, 7]


def test_bytes_that_are_not_utf8_are_refused_with_the_line() -> None:
    with pytest.raises(InvalidNetwork) as refusal:
        read_csv(TABLE.replace(b"b,c,inf", b"b,\xff\xfe"))
    assert refusal.value.where.lines == [3]


@pytest.mark.parametrize("text", [b"", b"\n", b"\xff\xfe", b"tail,head,capacity\n\xff,b,1\n", b"tail"])
def test_what_is_no_table_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidNetwork):
        read_csv(text)


def test_flags_must_be_true_or_false() -> None:
    with pytest.raises(InvalidNetwork, match="line 2: undirected"):
        read_csv(b"tail,head,capacity,undirected\n0,1,1,yes\n")


def test_overflow_and_limits() -> None:
    with pytest.raises(CapacityOverflow, match="line 3"):
        read_csv(TABLE.replace(b"inf", b"1e30"))
    with pytest.raises(TooLarge):
        read_csv(TABLE, Limits(max_edges=2))
    with pytest.raises(TooLarge):
        read_csv(TABLE, Limits(max_vertices=2))


def test_written_table() -> None:
    assert write_csv(read_csv(TABLE)).decode().splitlines() == [
        "tail,head,capacity",
        '"a","b","1.5"',
        '"b","c","inf"',
        '"a","c","2.0"',
    ]


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n1,4,b\n"])
def test_a_backslash_at_the_end_of_a_quoted_field_is_part_of_it(end: str) -> None:
    edges = read_csv(b'tail,capacity,head\n"C:\\",3,"D:\\"' + end.encode())
    assert list(edges.vertex_labels or ())[:2] == ["C:\\", "D:\\"]


def test_two_double_quotes_behind_a_backslash_are_one() -> None:
    edges = read_csv(b'tail,head,capacity\n"a\\""x",b,3\n')
    assert list(edges.vertex_labels or ()) == ['a\\"x', "b"]


@pytest.mark.parametrize("row", ['"a"x,b,3', 'a,"b" ,3', '"a""b"c,d,1', 'a,"b\nc"d,1'])
def test_a_field_that_goes_on_behind_its_quotes_is_refused(row: str) -> None:
    """It would name another vertex: `"a"x` was `ax`."""
    line = 4 if "\n" in row else 3
    with pytest.raises(InvalidNetwork, match=f"line {line}: a field goes on behind the double quotes"):
        read_csv(f"tail,head,capacity\na,b,1\n{row}\n".encode())


def test_a_double_quote_within_a_field_without_them_is_part_of_it() -> None:
    edges = read_csv(b'tail,head,capacity\n5"x,b,1\n"a, ""q"" ",b,2\n')
    assert list(edges.vertex_labels) == ['5"x', "b", 'a, "q" ']
