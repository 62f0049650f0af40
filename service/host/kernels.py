"""Whether kernels are compiled, and where they are kept: looked at before a worker starts, since Numba refuses with a
traceback."""

import os
import tempfile

from gpu_engine import kernel_directory
from service.host.refusal import CannotServe


def check_kernels() -> None:
    """Raises `CannotServe` if this user may not write where compiled kernels are to be kept, as one without a home, or
    if none are to be compiled."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        raise CannotServe("NUMBA_DISABLE_JIT is set, and kernels that are not compiled compute otherwise; unset it")
    folder = kernel_directory()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        told = f"compiled kernels cannot be kept in {folder}: {error.strerror}"
        raise CannotServe(f"{told}; NUMBA_CACHE_DIR names another folder") from None
