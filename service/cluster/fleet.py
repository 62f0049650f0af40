"""The workers of a Ray cluster as one who starts and ends them sees them."""

import logging
import time
from collections.abc import Iterator
from typing import Any, Final

import ray
from ray.util import list_named_actors

from service.cluster.actor import WorkerActor

NAMESPACE: Final = "headrace"
LOOK_S: Final = 0.2
CALL_S: Final = 5.0
LEAVE_S: Final = 120.0
"""How long a worker may take to hand its graphs over."""


class NoCluster(RuntimeError):
    """The cluster cannot be reached, or has no room; one line."""


class Fleet:
    """Workers by name, detached from the process that started them. A context manager; one at a time in a process."""

    def __init__(self, address: str) -> None:
        """Connects to ``address``, as `ray start` has it. Raises `NoCluster`."""
        try:
            ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise NoCluster(f"no Ray cluster at {address}: {error}") from None

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, *_: object) -> None:
        ray.shutdown()

    def names(self) -> list[str]:
        """The workers there are, in order of their numbers."""
        found: list[dict[str, str]] = list_named_actors(all_namespaces=True)
        names = [each["name"] for each in found if each["namespace"] == NAMESPACE]
        return sorted(names, key=lambda name: (len(name), name))

    def start(self, name: str, *, gpu: bool) -> None:
        """Have a worker of this name, wherever there is room: on a GPU of its own, or on a machine's processor.

        One that waits for room runs when a machine joins. One that is there already stays as it is.
        """
        options: dict[str, Any] = {"num_gpus": 1} if gpu else {"scheduling_strategy": "SPREAD"}
        ray.remote(WorkerActor).options(
            name=name,
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            max_restarts=-1,
            max_task_retries=0,
            max_concurrency=4,
            num_cpus=0,
            **options,
        ).remote(name, gpu)

    def where(self, name: str) -> dict[str, Any] | None:
        """What `WorkerActor.where` says; None while it is not there. Raises `NoCluster` if it cannot start."""
        try:
            actor: Any = ray.get_actor(name, NAMESPACE)
            said: dict[str, Any] = ray.get(actor.where.remote(), timeout=CALL_S)
        except ray.exceptions.GetTimeoutError:
            return None
        except ray.exceptions.ActorDiedError as error:
            reason = str(error).strip().splitlines()
            raise NoCluster(f"worker {name} cannot start: {reason[-1] if reason else error}") from None
        except (ray.exceptions.RayError, ValueError):
            return None
        return said

    def wait_ready(self, names: list[str], timeout_s: float) -> Iterator[str]:
        """Each of these workers as it becomes ready. Raises `NoCluster` in the end, if some do not."""
        ends_at, waiting = time.monotonic() + timeout_s, list(names)
        while waiting:
            for name in list(waiting):
                said = self.where(name)
                if said is not None and said["ready"]:
                    waiting.remove(name)
                    yield name
            if waiting and time.monotonic() > ends_at:
                told = ", ".join(waiting)
                raise NoCluster(f"not ready in {timeout_s:.0f} s: {told}; they start when a machine has room for them")
            time.sleep(LOOK_S)

    def leave(self, name: str) -> None:
        """Have a worker hand its graphs over and end. Raises `NoCluster` if it does not in time; it goes on then."""
        try:
            ray.get(ray.get_actor(name, NAMESPACE).leave.remote(), timeout=LEAVE_S)
        except ray.exceptions.GetTimeoutError:
            raise NoCluster(f"worker {name} has not left in {LEAVE_S:.0f} s") from None
        except ray.exceptions.ActorDiedError:
            pass  # as it should
        except ValueError:
            raise NoCluster(f"there is no worker {name}") from None
