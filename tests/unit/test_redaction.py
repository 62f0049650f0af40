"""Secrets are cut out of the log in time that grows with the text, and no faster."""

import time
from collections.abc import Callable

import pytest

from service.telemetry import redaction
from service.telemetry.redaction import LONGEST, redacted

ATTACKED_BYTES = 64 * 1024
SECONDS = 0.5
"""Linear work on such a text takes a few milliseconds; quadratic work took 3 to 33 s."""

ATTACKS = ["a", "/", ":", " ", "@", "a@", "://", "a://", "://a:", "/a://a:", "://a:b@", "://a:b ", "hr_"]


def seconds_of(call: Callable[[], object]) -> float:
    """Of the processor: what else the machine does is not counted."""
    began = time.process_time()
    call()
    return time.process_time() - began


@pytest.mark.parametrize("piece", [*ATTACKS, "hr_0123456789ab_", "?ssl_password="])
@pytest.mark.parametrize("end", ["", " ", "@", " @", "\n"])
def test_redaction_is_linear(piece: str, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "LONGEST", 1 << 20)  # or the cut would hide what is slow
    text = piece * (ATTACKED_BYTES // len(piece)) + end
    assert seconds_of(lambda: redacted(text)) < SECONDS


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("to redis://app:p4ss@host:6379/0 now", "to redis://app:***@host:6379/0 now"),
        ("redis://:p4ss@host", "redis://:***@host"),
        ("redis://app:p4:s/s@host", "redis://app:***@host"),
        ("redis://app:p4@ss@host", "redis://app:***@host"),
        ("http://a/b,redis://app:p4ss@host", "http://a/b,redis://app:***@host"),
        ("x://y\tredis://app:p4ss@host\nz@w", "x://y\tredis://app:***@host\nz@w"),
        ("no@url redis://host:6379 a@b", "no@url redis://host:6379 a@b"),
        ("rediss://h/0?db=1&password=p4ss@w&ssl_password=p?4 @x", "rediss://h/0?db=1&password=***&ssl_password=*** @x"),
        ("redis://app:@host", "redis://app:@host"),
        ("unix://headrace@/run/x.sock", "unix://headrace@/run/x.sock"),
        ("http://127.0.0.1:8080/docs", "http://127.0.0.1:8080/docs"),
        ("", ""),
        ("no secret", "no secret"),
        ("a@b", "a@b"),
        (" a  b ", " a  b "),
    ],
)
def test_passwords_in_urls(text: str, left: str) -> None:
    assert redacted(text) == left


@pytest.mark.parametrize("shown", range(1, 60))
def test_a_secret_that_is_cut_through_stays_secret(shown: int) -> None:
    """Wherever the cut falls, no part of a password or of a key is left."""
    for text in (f"redis://app:{40 * 'Q'}@host", f"redis://h?password={40 * 'Q'}", f"hr_0123456789ab_{43 * 'Q'}"):
        assert "Q" not in redacted((LONGEST - shown) * " " + text)


def test_a_long_text_says_how_much_was_left_out() -> None:
    left = redacted("x" * (LONGEST + 7))
    assert left == "x" * LONGEST + "... (7 characters left out)"
    assert redacted("x" * LONGEST) == "x" * LONGEST
