"""Write the OpenAPI document: ``python -m service.api.document > docs/openapi.json``."""

import json
import sys
from typing import Any

from service.api.app import create_app
from service.protocol import JSON_TYPE
from service.settings import Settings


def document() -> dict[str, Any]:
    return create_app(Settings()).openapi()


def ordered(value: Any) -> Any:
    """By name, and JSON before all other forms: generators take the first that they know for the answer."""
    if isinstance(value, dict):
        return {name: ordered(value[name]) for name in sorted(value, key=lambda name: (name != JSON_TYPE, name))}
    return [ordered(each) for each in value] if isinstance(value, list) else value


def main() -> None:
    json.dump(ordered(document()), sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
