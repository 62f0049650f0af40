"""``python -m service.host.store FOLDER PROGRAM ...``: mend the append-only file in FOLDER, then become PROGRAM.

For a container whose process is the store. A container that is started again, as after a power loss, runs nothing but
its own command: what runs once beside it would not run then. The store of the container before it must be down.
"""

import os
import sys
from pathlib import Path

import structlog

from service.beginning import end_at_once
from service.host import torn_log
from service.telemetry import logs

log = structlog.get_logger(__name__)


def main(words: list[str]) -> str:
    """Does not come back if all goes well; else what to say."""
    if len(words) < 2:
        return "usage: python -m service.host.store FOLDER PROGRAM [ARGUMENT ...]"
    folder, program = Path(words[0]), words[1:]
    logs.configure("store")
    try:
        for event, removed in torn_log.mend_all(folder).items():
            log.warning(event, bytes=removed)
        os.execvp(program[0], program)
    except OSError as error:
        return f"headrace: {error}"


if __name__ == "__main__":
    end_at_once()
    sys.exit(main(sys.argv[1:]))
