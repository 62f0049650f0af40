#!/bin/sh
# Resolves pyproject.toml into requirements/*.txt: one version of each package, with hashes, good for Python 3.11 to 3.14
# on every machine.  scripts/lock.sh keeps the versions that still fit;  scripts/lock.sh --upgrade takes the newest.
#   run         the service, its client and the embedded server       make demo, make serve
#   dev         that, the tests, linters, pages and examples          make test, make lint, make docs, make bench
#   all         that and every other tool                             make fuzz, make audit, make rehearsal
#   image       what the CPU image holds;  image-gpu12, image-gpu13  the GPU image;  build  what builds both
set -eu
cd "$(dirname "$0")/.."

if ! uv=$(command -v uv); then
    tools=$(mktemp -d)
    trap 'rm -rf "$tools"' EXIT
    "$(scripts/find_python.sh)" -m venv "$tools"
    "$tools/bin/pip" --disable-pip-version-check install --quiet uv
    uv=$tools/bin/uv
fi

lock() { # NAME OPTION...
    name=$1
    shift
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
        --no-emit-package headrace --no-emit-package headrace-server \
        --custom-compile-command 'make lock' --output-file "requirements/$name.txt" "$@"
}

client=clients/python/pyproject.toml
service="$client pyproject.toml --extra progress --extra embedded --group build"
tests="$service --group test --group lint --group docs --group examples"
# Everything at once first: the other files are parts of it.
# shellcheck disable=SC2086  # several words each
{
    lock all $tests --extra otel --extra ray --group fuzz --group audit --group deploy "$@"
    of_all="--constraints requirements/all.txt"
    lock dev $tests $of_all "$@"
    lock run $service $of_all "$@"
    lock build --group build $of_all "$@"
    lock image $client pyproject.toml --extra otel $of_all "$@"
    lock image-gpu12 $client pyproject.toml --extra otel --extra gpu12 --group cuda12 $of_all "$@"
    lock image-gpu13 $client pyproject.toml --extra otel --extra gpu13 --group cuda13 $of_all "$@"
}
