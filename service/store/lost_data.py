"""Whether the files of the Redis that `headrace serve` starts are still there.

Redis goes on writing files that were removed, and answers as before. The supervisor notices, and says so in its lock
file, which its children have open, so that they can read it wherever it is by now.
"""

import json
import os
from contextlib import suppress
from typing import Final

from service.settings import Settings

MOST_BYTES: Final = 4096


def data_is_gone(settings: Settings) -> bool:
    """Whether somebody has said that the data are lost. Takes a few microseconds. Returns False where nobody has said
    so, as with a Redis of one's own."""
    if settings.lock_descriptor is None:
        return False
    with suppress(OSError, ValueError, AttributeError):  # it may be written just now
        return bool(json.loads(os.pread(settings.lock_descriptor, MOST_BYTES, 0)).get("data_gone"))
    return False
