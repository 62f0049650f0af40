"""`headrace up | down`: workers on the machines of a Ray cluster."""

import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from service.cli.connection import DEFAULT_URL, MISWRITTEN, Key, Url, connected, fail, refuse_beside

if TYPE_CHECKING:
    from service.cluster.fleet import Fleet

app = typer.Typer()

ASK_S: Final = 2.0
QUEUE_AGE_S: Final = 2.0
IDLE_S: Final = 600.0

Address = Annotated[str, typer.Option("--ray", help="The Ray cluster, as HOST:PORT; auto: of this machine.")]


@app.command()
def up(
    ray: Address,
    workers: Annotated[int, typer.Option(min=0, help="Workers on processors.")] = 0,
    gpus: Annotated[int, typer.Option(min=0, help="Workers with a GPU of their own each.")] = 0,
    at_most: Annotated[int | None, typer.Option(min=1, help="Go on, and add workers up to so many.")] = None,
    queue_age_s: Annotated[
        float | None, typer.Option("--queue-age", min=0, help="... when commands wait so long [2].")
    ] = None,
    idle_s: Annotated[
        float | None, typer.Option("--idle", min=1, help="... and end one when none waits for so long [600].")
    ] = None,
    timeout_s: Annotated[float, typer.Option("--timeout", min=0, help="Seconds until they are ready.")] = 300,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Have so many workers in a Ray cluster: it places them, and starts them again elsewhere when a machine fails.

    Each machine needs this package with the extra `ray`, and HEADRACE_REDIS_URL in the environment of `ray start`.
    """
    if (workers == 0) == (gpus == 0):
        fail("say --workers N or --gpus N: they are scaled as one kind", MISWRITTEN)
    least = workers or gpus
    if at_most is not None and at_most < least:
        fail(f"--at-most {at_most} is less than the {least} workers to begin with", MISWRITTEN)
    if at_most is None:
        refuse_beside("without --at-most", queue_age=queue_age_s, idle=idle_s)
    kind = "ray-gpu-" if gpus else "ray-"
    with joined(ray) as fleet:
        have(fleet, kind, least, timeout_s)
        if at_most is not None:
            with connected(url, key) as client:
                pace = QUEUE_AGE_S if queue_age_s is None else queue_age_s, IDLE_S if idle_s is None else idle_s
                scale(fleet, client, kind, (least, at_most, *pace), timeout_s)


@app.command()
def down(
    ray: Address,
    names: Annotated[list[str] | None, typer.Argument(help="Workers; without any, all.")] = None,
) -> None:
    """End workers of a Ray cluster: each hands its graphs to those that stay."""
    with joined(ray) as fleet:
        for name in names or reversed(fleet.names()):
            leave(fleet, name)


def joined(address: str) -> "Fleet":
    try:
        from service.cluster.fleet import Fleet, NoCluster
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        fail("this needs Ray: pip install 'headrace-server[ray]'")
    try:
        return Fleet(address)
    except NoCluster as error:
        fail(str(error))


def have(fleet: "Fleet", kind: str, count: int, timeout_s: float) -> None:
    """Start what is missing of so many, and wait until they are ready."""
    from service.cluster.fleet import NoCluster

    names = [f"{kind}{number}" for number in range(count)]
    for name in names:
        fleet.start(name, gpu=kind == "ray-gpu-")
    try:
        for name in fleet.wait_ready(names, timeout_s):
            typer.echo(f"{name} is ready")
    except NoCluster as error:
        fail(str(error))


def leave(fleet: "Fleet", name: str) -> None:
    from service.cluster.fleet import NoCluster

    try:
        fleet.leave(name)
    except NoCluster as error:
        fail(str(error))
    typer.echo(f"{name} has left")


def scale(fleet: "Fleet", client: Any, kind: str, bounds: tuple[int, int, float, float], timeout_s: float) -> None:
    """Until Ctrl-C."""
    from service.cluster.scaling import Scale

    rule, running = Scale(*bounds), bounds[0]
    while True:
        loads = [worker for worker in client.status().workers if worker["name"].startswith(kind)]
        wanted = rule.wanted(running, [Seen(worker) for worker in loads], time.monotonic())
        if wanted > running:
            have(fleet, kind, wanted, timeout_s)
        elif wanted < running:
            leave(fleet, f"{kind}{running - 1}")
        running = wanted
        time.sleep(ASK_S)


class Seen:
    """A worker as `/status` has it."""

    def __init__(self, worker: dict[str, Any]) -> None:
        self.alive: bool = worker["alive"]
        self.waiting: int = worker["waiting"]
        self.oldest_s: float = worker["oldest_s"]
