"""Which workers `headrace serve` and `headrace worker` start: one for each GPU that was asked for, named by it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gpu_engine.devices import PEERS, VISIBLE, devices, only, why_none
from service.host.refusal import CannotServe
from service.settings import Settings

NO_GPU: Final = "no CUDA device can be used here: is the driver there, and CuPy (extra gpu12 or gpu13)?"

WANTED: Final = re.compile(r"all|[1-9][0-9]{0,3}|[0-9]{1,4}(,[0-9]{1,4})+|[0-9]{1,4},")
"""All, how many, or which: a list of numbers, with a comma behind one alone."""

ListDevices = Callable[[], Sequence[str]]


class NoSuchGpu(ValueError):
    """GPUs were asked for that are not there; one line."""


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """One worker that is to run: its name, the GPU it is bound to, and what its environment has beside the settings."""

    name: str
    gpu: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def arguments(self) -> list[str]:
        """The arguments of ``python -m service.worker``."""
        return ["--name", self.name, *([] if self.gpu is None else ["--gpu", str(self.gpu)])]


def plan(settings: Settings, prefix: str = "", list_devices: ListDevices = devices) -> list[WorkerPlan]:
    """The workers of these settings, `gpu-N` with a device and `cpu-N` without one, behind ``prefix``.

    Without `gpus` they are `cpu-0` and on, and what their engine is to be is the engine's setting. With it, `workers`
    counts those without a device, and there are none unless it is set. If the engine is for several devices, one worker
    has them all. Raises `NoSuchGpu`.
    """
    if not settings.gpus:
        return [WorkerPlan(f"{prefix}cpu-{number}") for number in range(settings.workers)]
    if settings.engine == "cpu":
        raise NoSuchGpu(f"HEADRACE_GPUS is {settings.gpus}, and HEADRACE_ENGINE is cpu: leave one of them out")
    numbers = choose(settings.gpus, list_devices())
    if settings.engine == PEERS:
        chosen = [WorkerPlan(f"{prefix}gpu-{numbers[0]}", environment={VISIBLE: only(numbers)})]
    else:
        chosen = [WorkerPlan(f"{prefix}gpu-{number}", number) for number in numbers]
    beside = settings.workers if "workers" in settings.model_fields_set else 0
    on_host = {"HEADRACE_ENGINE": "cpu"}
    return chosen + [WorkerPlan(f"{prefix}cpu-{number}", environment=on_host) for number in range(beside)]


def check_engine(settings: Settings, why_no_device: Callable[[], str] = why_none) -> None:
    """Look whether there is a device, if the engine needs one. Raises `CannotServe`: else each worker would find out,
    and be started again."""
    if settings.engine not in ("auto", "cpu") and (lacking := why_no_device()):
        raise CannotServe(f"HEADRACE_ENGINE is {settings.engine}: {lacking}. HEADRACE_ENGINE=auto or cpu does without")


def choose(wanted: str, there: Sequence[str]) -> list[int]:
    """The numbers of the GPUs of ``there`` that are meant: `all`, the first N, or those of a list such as `0,2`.

    Raises `NoSuchGpu`: there is none, or not so many, or one is named twice.
    """
    if not WANTED.fullmatch(wanted):
        raise NoSuchGpu(f"--gpus {wanted}: say all, how many, or which, as in 0,2 (number 2 alone: 2,)")
    if not there:
        raise NoSuchGpu(f"--gpus {wanted}: {NO_GPU}")
    if wanted == "all":
        return list(range(len(there)))
    shown = ", ".join(f"{number} ({name})" for number, name in enumerate(there))
    if "," not in wanted:
        if int(wanted) > len(there):
            raise NoSuchGpu(f"--gpus {wanted}: there are not so many, but {shown}")
        return list(range(int(wanted)))
    numbers = [int(number) for number in wanted.split(",") if number]
    for number in numbers:
        if number >= len(there):
            raise NoSuchGpu(f"--gpus {wanted}: there is no GPU {number}, but {shown}")
        if numbers.count(number) > 1:
            raise NoSuchGpu(f"--gpus {wanted}: GPU {number} is named twice, and gets one worker")
    return numbers
