"""``python -m service.worker --name NAME``."""

import sys

from service.collector import paused

with paused():
    from service.worker.process import main

sys.exit(main())
