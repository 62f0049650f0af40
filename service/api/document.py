"""Write the OpenAPI document: ``python -m service.api.document > docs/openapi.json``."""

import json
import sys
from typing import Any

from service.api.app import create_app
from service.settings import Settings


def document() -> dict[str, Any]:
    return create_app(Settings()).openapi()


def main() -> None:
    json.dump(document(), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
