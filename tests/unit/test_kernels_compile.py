"""Every kernel compiles for each architecture we name, and in both widths; no device is needed, only nvcc or NVRTC."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gpu_engine.cuda.layout import CLUSTER, options

KERNELS = Path(__file__).parents[2] / "gpu_engine" / "cuda" / "kernels"
SOURCES = sorted(str(path.relative_to(KERNELS)) for path in KERNELS.rglob("*.cu"))


def by_nvcc(source: str, options: list[str], tmp_path: Path) -> bytes:
    out = tmp_path / "out.cubin"
    fast = ["-Xcicc=-O1", "-Xptxas=-O0"]  # it is not run: this takes seconds and not a minute
    command = ["nvcc", "-cubin", *fast, *options, str(KERNELS / source), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out.read_bytes()


def by_nvrtc(source: str, options: list[str]) -> bytes:
    """Through CuPy, which also knows where the CUDA headers are."""
    nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc", reason="neither nvcc nor CuPy's NVRTC is here")
    core = pytest.importorskip("cupy._core.core")
    compiler = pytest.importorskip("cupy.cuda.compiler")
    try:
        nvrtc.getVersion()
    except (RuntimeError, OSError) as error:
        pytest.skip(f"no nvcc on PATH, and NVRTC cannot be loaded: {error}")
    program = compiler._NVRTCProgram((KERNELS / source).read_text(), Path(source).name, method="cubin")
    cubin, _ = program.compile(core.assemble_cupy_compiler_options(tuple(options)))
    return bytes(cubin)


@pytest.mark.parametrize(
    ("source", "architecture", "width"),
    [
        *((source, *target) for source in SOURCES for target in ((80, "narrow"), (90, "wide"))),
        ("state.cu", 100, "narrow"),  # its sources are those of 90; what is asked is whether the compiler knows it
    ],
)
def test_compiles_to_a_cubin(source: str, architecture: int, width: str, tmp_path: Path) -> None:
    macros = options(CLUSTER if architecture >= 90 else 1, wide=width == "wide")  # as in gpu_engine.cuda.module
    given = ["-std=c++17", f"-I{KERNELS}", f"-arch=sm_{architecture}", *macros]
    cubin = by_nvcc(source, given, tmp_path) if shutil.which("nvcc") else by_nvrtc(source, given)
    assert cubin.startswith(b"\x7fELF")
