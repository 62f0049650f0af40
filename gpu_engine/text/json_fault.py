"""What is wrong with a text that is not JSON, in words that name no program."""

import codecs
import json
from typing import Final

HINTS: Final = (
    ("//", "JSON has no comments"),
    ("/*", "JSON has no comments"),
    ("#", "JSON has no comments"),
    ("'", "JSON has its texts in double quotes"),
    ("True", "JSON has true, in lower case"),
    ("False", "JSON has false, in lower case"),
    ("None", "JSON has null"),
    ("\0", "it seems to be UTF-16, and JSON is UTF-8"),
)
UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""What PowerShell and some editors begin a file with."""


def json_fault(error: ValueError) -> str:
    """One sentence with the place. Of other errors than those two it says what `json` raises them for."""
    if isinstance(error, json.JSONDecodeError):
        if not error.doc.strip():
            return "not JSON: the body is empty"
        rest = error.doc[error.pos : error.pos + 8].lstrip()
        hint = next((f"; {hint}" for beginning, hint in HINTS if rest.startswith(beginning)), "")
        return f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}{hint}"
    if isinstance(error, UnicodeDecodeError):
        hint = "; it begins like UTF-16" if error.object.startswith(UTF_16) else ""
        return f"not JSON: it is no UTF-8 at byte {error.start}{hint}"
    return "not JSON we read: an integer of thousands of digits"
