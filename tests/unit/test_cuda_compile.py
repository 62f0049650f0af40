"""Every kernel compiles for each architecture we name; no device is needed, only nvcc."""

import shutil
import subprocess
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[2] / "gpu_engine" / "cuda" / "kernels"

pytestmark = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no CUDA compiler (nvcc) on PATH")


@pytest.mark.parametrize("width", ["narrow", "wide"])
@pytest.mark.parametrize("architecture", [80, 90, 100])
@pytest.mark.parametrize("source", sorted(path.name for path in KERNELS.glob("*.cu")))
def test_compiles_to_a_cubin(source: str, architecture: int, width: str, tmp_path: Path) -> None:
    cluster = 8 if architecture >= 90 else 1  # as in gpu_engine.cuda.module
    options = ["-std=c++17", f"-DCLUSTER={cluster}", "-DTHREADS=512", *(["-DWIDE"] if width == "wide" else [])]
    command = ["nvcc", "-cubin", f"-arch=sm_{architecture}", *options, str(KERNELS / source)]
    done = subprocess.run([*command, "-o", str(tmp_path / "out.cubin")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.cubin").stat().st_size > 0
