"""Whether the files of the Redis that `headrace serve` starts are still there.

Redis goes on writing files that were removed, and answers as before. The supervisor notices, and says so in its lock
file, which its children have open, so that they can read it wherever it is by now.
"""

import json
import os
from contextlib import suppress
from typing import Final

from service.errors import DATA_GONE, ServiceError
from service.settings import Settings

MOST_BYTES: Final = 32_768
"""A path of 4,096 bytes stands in the file, of which each byte may be written as six."""


def data_is_gone(settings: Settings) -> bool:
    """Whether somebody has said that the data are lost. Takes a few microseconds. Returns False where nobody has said
    so, as with a Redis of one's own."""
    if settings.lock_descriptor is None:
        return False
    with suppress(OSError, ValueError, AttributeError):  # it may be written just now
        return bool(json.loads(os.pread(settings.lock_descriptor, MOST_BYTES, 0)).get("data_gone"))
    return False


def refuse_if_lost(settings: Settings) -> None:
    """Raises data_gone where what is acknowledged now would be lost when the service ends."""
    if data_is_gone(settings):
        raise ServiceError("data_gone", DATA_GONE)
