"""Compile the kernels, once for each width and device; CuPy keeps the cubins on disk (CUPY_CACHE_DIR)."""

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import cupy

from gpu_engine.cuda.layout import CLUSTER, options

KERNELS: Final = Path(__file__).parent / "kernels"


def device_available() -> bool:
    """True if a CUDA device can be used from this process."""
    try:
        return bool(cupy.cuda.is_available())
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


def cluster_size() -> int:
    """Blocks in the leading cluster; a single block before compute capability 9.0, where clusters begin."""
    return CLUSTER if int(cupy.cuda.Device().compute_capability) >= 90 else 1


def device_name() -> str:
    """The name of the current device."""
    name: bytes = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"]
    return name.decode()


@cache
def kernel(file: str, name: str, *, wide: bool, cooperative: bool = False, device: int | None = None) -> Any:
    """The function ``name`` of ``file``, for int64 residuals if ``wide``. Compiled on first use: seconds, once.

    Who works on several devices says which ``device`` is current: a function belongs to one.
    """
    given = ("--std=c++17", f"-I{KERNELS}", f"-DHEADERS=0x{_headers()}", *options(cluster_size(), wide=wide))
    return _module(file, given, cooperative, device).get_function(name)


@cache
def _headers() -> str:
    """Digest of all headers, as an option of every compilation: CuPy's cache on disk looks at the main file only, and
    would go on with cubins of older headers."""
    digest = sha256()
    for path in sorted(KERNELS.rglob("*.cuh")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def _module(file: str, options: tuple[str, ...], cooperative: bool, device: int | None) -> Any:
    source = (KERNELS / file).read_text()
    return cupy.RawModule(code=source, options=options, enable_cooperative_groups=cooperative)
