"""Whether Headrace runs with this Python on this machine: if not, one line says why, and the status is 1."""

import importlib.util
import platform
import struct
import sys
import sysconfig

OLDEST, NEWEST = (3, 11), (3, 14)
MACHINES = ("x86_64", "aarch64")
OLDEST_GLIBC = (2, 28)


def why_not() -> "str | None":
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        return f"Python {version} is not one of 3.11 to 3.14"
    if platform.python_implementation() != "CPython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return f"Python {version} is not the usual CPython, for which Numba is made"
    if platform.system() != "Linux" or platform.machine() not in MACHINES or struct.calcsize("P") != 8:
        bits = struct.calcsize("P") * 8
        here = f"a {bits}-bit Python on {platform.system()} on {platform.machine()}"
        return f"Headrace is for 64-bit Linux on x86_64 and aarch64, and this is {here}"
    name, glibc = platform.libc_ver()
    if name != "glibc" or tuple(map(int, glibc.split(".")[:2])) < OLDEST_GLIBC:
        return f"Numba and PyArrow need glibc 2.28 or later, and this system has {name or 'another C library'} {glibc}"
    if not (importlib.util.find_spec("ensurepip") and importlib.util.find_spec("venv")):
        return f"Python {version} has no venv module (on Debian and Ubuntu: apt install python{version}-venv)"
    return None


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print(reason)
        sys.exit(1)
