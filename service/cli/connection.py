"""How commands reach the service: the options they share, and how each failure ends them.

Exit statuses: 1, the service refused, and the line begins with the code of docs/api.md; 2, the command was not written
as it should be; 3, no service answers; 4, the answer did not come in time.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, TypeAlias

import typer

if TYPE_CHECKING:
    from headrace import Client


DEFAULT_URL: Final = "http://127.0.0.1:8080"
REFUSED, MISWRITTEN, NOT_REACHED, TOO_LATE = 1, 2, 3, 4
WHOLE_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
AMOUNT: Final = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]{1,9})?|inf(?:inity)?", re.IGNORECASE)
"""Python takes more for a number: `1_0` for ten, and digits of other scripts."""
FACTOR: Final = re.compile(
    r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]{1,9})?|[0-9]{1,40}/(?!0+$)[0-9]{1,40}", re.IGNORECASE
)
FIRST_S: Final = 1.0
"""How long a service that has not answered yet is tried: somebody is waiting at a terminal."""

Url: TypeAlias = Annotated[str, typer.Option(envvar="HEADRACE_URL", help="Where the service listens.")]
Key: TypeAlias = Annotated[
    str | None, typer.Option(envvar="HEADRACE_API_KEY", show_envvar=True, help="API key, if the service wants one.")
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="JSON for programs instead of tables.")]
Lines: TypeAlias = Annotated[
    bool, typer.Option("--lines", help="Each row as it comes, as JSON on a line, while others are solved.")
]
Name: TypeAlias = Annotated[str, typer.Argument(help="The graph's name in the service.")]
Vertices: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="Vertex by number or label, '\"10115\"' for a label of digits; repeat for several."),
]
Supply: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="VERTEX=AMOUNT: a source supplies at most so much; repeat for each.")
]
Demand: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="VERTEX=AMOUNT: a sink takes at most so much; repeat for each.")
]


@contextmanager
def connected(url: str, key: str | None, *, patient: bool = True) -> "Iterator[Client]":
    """The client; its errors end the command with one line and their exit status.

    One that is not `patient` tells of a refusal after `FIRST_S`, in place of trying again for some minutes.
    """
    from headrace import (
        Client,
        ConnectionFailed,
        HeadraceError,
        InvalidInput,
        Retry,
        TransportError,
        Unauthorised,
        WaitTimeout,
    )

    _refuse_misspelt(os.environ)
    retry = Retry(first_s=FIRST_S) if patient else Retry(first_s=FIRST_S, patience_s=FIRST_S)
    try:
        with Client(url, api_key=key, retry=retry) as client:
            yield client
    except ConnectionFailed as error:
        hint = "; `headrace serve` starts one" if "is it running?" in str(error) else ""
        fail(f"{error}{hint}", NOT_REACHED)
    except TransportError as error:
        fail(f"what answers at {url} is no Headrace: {error}", NOT_REACHED)
    except WaitTimeout as error:
        fail(str(error), TOO_LATE)
    except InvalidInput as error:
        fail(str(error), MISWRITTEN)
    except Unauthorised as error:
        fail(str(error) if key else f"{error}; with --key or HEADRACE_API_KEY")
    except BrokenPipeError:
        raise  # nobody reads on, as with `| head`: the command ends without a word
    except (HeadraceError, OSError) as error:
        fail(reason(error))


def reason(error: Exception) -> str:
    """What has failed; of an error of the system the file and what it says, without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _refuse_misspelt(variables: Iterable[str]) -> None:
    """End the command for a variable that nothing reads: without the URL that it meant, another service is asked."""
    ours = [variable for variable in variables if variable.upper().startswith("HEADRACE_")]
    if {*ours} - {"HEADRACE_URL", "HEADRACE_API_KEY"}:
        from service.settings import SettingsError, refuse_unknown  # takes a moment

        try:
            refuse_unknown(ours)
        except SettingsError as error:
            fail(str(error), MISWRITTEN)


def fail(message: str, status: int = REFUSED) -> NoReturn:
    typer.echo(f"headrace: {message}", err=True)
    raise typer.Exit(status)


def give_up_output() -> None:
    """What could not be written to standard output goes nowhere: at its end Python would try again, and exit by 120."""
    with suppress(AttributeError, ValueError, OSError), open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def names(given: list[str] | None) -> Any:
    return None if not given else [name(text) for text in given]


def name(text: str) -> int | str:
    """A vertex or edge as written: a whole number is one, as in CSV, unless it has zeros in front or stands in double
    quotes, as a postal code may; all else is text. A quote within quotes is doubled, as there."""
    if len(text) > 2 and text.startswith('"') and text.endswith('"'):
        return text[1:-1].replace('""', '"')
    return int(text) if WHOLE_NUMBER.fullmatch(text) else text


def amount(text: str) -> Decimal:
    """An amount as written; one that is no number ends the command, and so does one with a plus before it, which
    looks like a change by so much."""
    if AMOUNT.fullmatch(text):
        return Decimal(text)
    plus = "; what is meant is the new one, without a plus" if text.startswith("+") else ""
    fail(f"{text!r} is no amount: that is a number such as 2.5, or inf{plus}", MISWRITTEN)


def factor(text: str) -> str:
    """A factor as written; one that is none ends the command."""
    if FACTOR.fullmatch(text):
        return text
    fail(f"{text!r} is no factor: that is a number, 0 or more, or a fraction such as 7/6", MISWRITTEN)


def by_name(written: list[str], option: str) -> dict[int | str, Decimal]:
    """Amounts by name, each NAME=AMOUNT; a name that is there twice ends the command, since one amount would count."""
    found: dict[int | str, Decimal] = {}
    for what, value in map(pair, written):
        if what in found:
            fail(f"{option} names {what} twice", MISWRITTEN)
        found[what] = value
    return found


def caps(supply: list[str] | None, demand: list[str] | None) -> dict[str, Any]:
    """What `--supply` and `--demand` say, where they are given, as options of the client's questions."""
    given = {"supply": supply, "demand": demand}
    return {option: by_name(written, f"--{option}") for option, written in given.items() if written}


def refuse_beside(beside: str, **options: object) -> None:
    """End the command for the first option that was given and does nothing beside another, or without it."""
    for option, given in options.items():
        if given is not None and given is not False and given != []:
            fail(f"--{option.replace('_', '-')} does nothing {beside}", MISWRITTEN)


def pair(written: str) -> tuple[int | str, Decimal]:
    """A name and an amount."""
    what, equals, value = written.rpartition("=")
    if not equals or not what:
        fail(f"{written!r} is not NAME=AMOUNT", MISWRITTEN)
    return name(what), amount(value)
