"""``python -m service.api``, with ``--fd N`` or with ``--host`` and ``--port``: one API process."""

from service.beginning import end_at_once
from service.collector import paused
from service.left_out import without_unused

end_at_once()
with paused(), without_unused():
    from service.api.http.server import main

main()
