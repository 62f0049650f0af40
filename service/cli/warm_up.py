"""`headrace warm-up`: the kernels are compiled before anybody waits for them."""

import sys
import time
from contextlib import suppress
from functools import partial

import typer

from gpu_engine import kernel_directory
from gpu_engine.kernels.compiling import Compiling
from gpu_engine.select import open_engine
from service.cli.meter import Meter
from service.worker.compile import compile_kernels


def run(choice: str) -> None:
    """Compile what is not in the cache, for the CPU and for the device that there may be.

    Raises `EngineError` if the engine of this `choice` cannot be had here.
    """
    began, compiled = time.perf_counter(), 0

    def tell(now: Compiling) -> None:
        nonlocal compiled
        compiled = now.done
        meter.show(now.done, now.of, "kernels compiled", now.seconds)

    with Meter(sys.stderr) as meter:
        engine = compile_kernels(partial(open_engine, choice=choice), choice, tell)
    seconds = time.perf_counter() - began
    what = f"{compiled} kernels were compiled" if compiled else "all kernels were there"
    with suppress(OSError):  # as where nobody reads it
        typer.echo(f"{what}, in {seconds:.1f} s, engine {engine}; they are kept in {kernel_directory()}", err=True)
