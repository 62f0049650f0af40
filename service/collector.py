"""Python's garbage collector in a process that serves: it looks through everything with all threads stopped."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """No collections while modules are imported: what they make stays, and looking through it takes time, in the end of
    the process as well."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


@contextmanager
def held_back() -> Iterator[None]:
    """No collections while very many objects are made that all stay for now: each would look through those that are
    there already, again and again, with all threads stopped."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def leave_alone_what_is_here() -> None:
    """Let collections pass over all objects there are now.

    Modules, routes and compiled kernels stay for as long as the process: to look through them takes 70 ms and more, in
    which nobody is answered, and it would happen again and again under load. Garbage among them is collected first.
    """
    gc.collect()
    gc.freeze()
