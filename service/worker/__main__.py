"""``python -m service.worker --name NAME``."""

import sys

from service.beginning import end_at_once
from service.collector import paused
from service.left_out import leave_out, without_unused

end_at_once()
leave_out("scipy")  # Numba asks it for BLAS as it compiles, which no kernel calls: 0.2 s where it is installed
with paused(), without_unused():
    from service.worker.process import main

sys.exit(main())
