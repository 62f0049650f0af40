"""``python -m service.worker --name NAME``."""

import os
import signal
import sys

from service.collector import paused
from service.left_out import leave_out, without_unused

for number in (signal.SIGTERM, signal.SIGINT):
    # While it imports, for a second or more, it has begun nothing that would have to be ended in order. Without these it
    # prints a traceback at SIGINT, and as the first process of a container it does not end at SIGTERM.
    signal.signal(number, lambda *_: os._exit(0))
leave_out("scipy")  # Numba asks it for BLAS as it compiles, which no kernel calls: 0.2 s where it is installed
with paused(), without_unused():
    from service.worker.process import main

sys.exit(main())
