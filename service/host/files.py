"""The limit of open files, as `headrace serve` and `headrace worker` hand it on to what they start."""

from service import machine
from service.host.refusal import CannotServe


def take_files() -> None:
    """Let what is started here open as many files as the machine allows. Raises `CannotServe` if these are too few.

    For Redis as well, which takes as many connections as it may open files."""
    try:
        machine.take_files()
    except machine.TooFewFiles as error:
        raise CannotServe(str(error)) from None
