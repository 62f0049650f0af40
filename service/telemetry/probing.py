"""How `headrace serve` names itself when it asks whether its own service is ready yet: no news for the log."""

from typing import Final

SUPERVISOR: Final = "headrace-serve"
"""Its `User-Agent`."""
