"""A fault of a kernel, after which CUDA fails each call of the process: one of its own."""

import subprocess
import sys

import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from gpu_engine.cuda.module import device_available  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not device_available(), reason="no CUDA device")]

FAULT = r"""
import cupy
from gpu_engine.devices import device_fault

well = device_fault("cuda"), device_fault("cuda-peers")
assert well == ("", ""), well
try:
    cupy.empty(1 << 50, "u1")
except cupy.cuda.memory.OutOfMemoryError:
    assert device_fault("cuda") == ""
else:
    raise AssertionError("so much memory")
write = cupy.RawKernel('extern "C" __global__ void write(long long at) { *(volatile int*)at = 1; }', "write")
write((1,), (1,), (cupy.int64(64),))
try:
    cupy.cuda.Device().synchronize()
except RuntimeError as error:
    print(error)
else:
    raise AssertionError("the kernel wrote to a place that is none")
print(device_fault("cuda"))
import os
os._exit(0 if device_fault("cuda") else 1)
"""


def test_the_fault_of_a_kernel_is_found() -> None:
    done = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "illegal" in done.stdout
