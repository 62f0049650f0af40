#!/bin/sh
# Prints the first Python that can run Headrace and make a virtual environment; PYTHON names the only candidate.
set -eu
here=$(dirname "$0")

reasons=
for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    command -v "$name" >/dev/null || continue
    if reason=$("$name" "$here/check_python.py" 2>/dev/null); then
        command -v "$name"
        exit
    fi
    reasons="$reasons $name: ${reason:-it is too old, or does not start}."
done
nothing="There is no ${PYTHON:-python3} on PATH (on Debian and Ubuntu: apt install python3-venv)."
echo "headrace: needs Python 3.11 to 3.14 with its venv module.${reasons:- $nothing}" >&2
exit 1
