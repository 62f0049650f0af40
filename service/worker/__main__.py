"""``python -m service.worker --name NAME``."""

import sys

from service.worker.process import main

sys.exit(main())
