#!/bin/sh
# Says so where PYTHON names another Python than the one of .venv, which stays as it is.
set -eu
cd "$(dirname "$0")/.."
tell='import os, sys; print("%d.%d.%d, %s" % (sys.version_info[:3] + (os.path.realpath(sys.base_prefix),)))'

own=$(.venv/bin/python -c "$tell" 2>/dev/null) || exit 0 # there is none, or it is made again
if ! command -v "${PYTHON:?}" >/dev/null; then
    named="PYTHON names $PYTHON, which is not on PATH"
elif ! found=$("$PYTHON" -c "$tell" 2>/dev/null); then
    named="PYTHON names $PYTHON, which does not start"
elif [ "$found" != "$own" ]; then
    named="PYTHON names $PYTHON (${found%%,*} of ${found#*, })"
else
    exit 0
fi
echo "headrace: .venv has Python ${own%%,*} of ${own#*, } and keeps it, though $named. Remove .venv; it is made again." >&2
