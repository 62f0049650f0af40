"""What a compose file or a set of manifests wants to have run: containers, as far as a process can stand for one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DEPLOY: Final = ROOT / "deploy"


@dataclass(frozen=True, slots=True)
class Get:
    """A health check by HTTP: healthy if the answer is below 400. `https` checks no certificate, as a kubelet does."""

    scheme: str
    port: int
    path: str


@dataclass(frozen=True, slots=True)
class Container:
    name: str
    names: tuple[str, ...]
    """By which others find it."""
    image: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    check: tuple[str, ...] | Get | None
    """A command that ends with 0 once it is healthy, or what to ask; None: its image has nothing to ask with."""
    alive: tuple[str, ...] | Get | None = None
    """The same for whether it is to be started again, where that is asked."""
    after: tuple[str, ...] = ()
    """Names of which one has to be healthy before it starts."""
    volumes: Mapping[str, str] = field(default_factory=dict)
    """Path in the container -> name of a volume. The same name is the same folder."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Path in the container -> file or folder of this machine."""
