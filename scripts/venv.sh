#!/bin/sh
# Makes .venv and installs into it what requirements/LEVEL.txt pins:  scripts/venv.sh run | dev | all
# scripts/lock.sh says what each level holds.
set -eu
cd "$(dirname "$0")/.."
level=${1:?run, dev or all}
pins=requirements/$level.txt
log=.venv/pip.log
export PIP_USER=0 # settings of pip may say `user`, which no virtual environment allows

say() {
    echo "headrace: $*" >&2
}

fail() {
    say "$*"
    exit 1
}

pip() {
    .venv/bin/python -m pip --disable-pip-version-check --no-input "$@" >>"$log" 2>&1 || fail "$(why)"
}

free_mib() {
    df -Pk . | awk 'END { print int($4 / 1024) }'
}

# Whether the package index answers for what pip did not find: without retries pip keeps to itself that it does not. Its
# log has what is asked here, and a 404 is an answer.
answers() {
    missing=$(sed -n 's/.*No matching distribution found for \([^ ]*\).*/\1/p' "$log" | head -n 1)
    .venv/bin/python -m pip -vv --disable-pip-version-check --no-input download --no-deps --only-binary :all: \
        --dest .venv "$missing" >>"$log" 2>&1 || :
    ! grep 'Could not fetch URL' "$log" | grep -qv ': 404 '
}

# Why pip failed, in one line. On a full disk even its log may be empty.
why() {
    if grep -qi 'No space left on device' "$log" || [ "$(free_mib)" -lt 10 ]; then
        echo "the disk is full: the packages, or pip's temporary files, did not fit."
    elif grep -q 'DO NOT MATCH THE HASHES' "$log"; then
        echo "a package is not the file that $pins names; its index or a proxy serves another one. See $log."
    elif grep -qE 'Failed to establish|NameResolution|ConnectTimeout|ReadTimeout|ProxyError|SSLError' "$log" ||
        { grep -q 'No matching distribution' "$log" && ! answers; }; then
        echo "pip reaches no package index. It needs a network, or a proxy or mirror in its settings. See $log."
    elif grep -q 'No matching distribution' "$log"; then
        echo "the package index lacks a file of $pins for this machine. See $log: $(grep -m 1 'No matching' "$log")"
    else
        echo "pip failed: $(grep -im 1 '^ *error' "$log" || tail -n 1 "$log"). See $log."
    fi
}

case $level in
    run) mib=800 ;;
    dev) mib=1500 ;;
    all) mib=1850 ;;
    *) fail "scripts/venv.sh: run, dev or all, not $level" ;;
esac
case $PWD in
    *:*) fail "no virtual environment can be made below a path with a colon: $PWD" ;;
esac
[ -w . ] || fail "cannot write to $PWD, and .venv is made there."

if ! .venv/bin/python -c 'import pip' 2>/dev/null; then
    python=$(scripts/find_python.sh)
    free=$(free_mib)
    [ "$free" -ge "$mib" ] || fail "$mib MiB are needed in $PWD, and $free are free."
    say "first run: making .venv with $("$python" --version), $python."
    "$python" -m venv --clear .venv
elif ! reason=$(.venv/bin/python scripts/check_python.py); then
    fail "$reason. Remove .venv; it is made again."
fi

: >"$log"
say "installing the $(grep -c == "$pins") packages of $pins; the first time takes a minute or two."
pip install --quiet --require-hashes --no-deps --only-binary :all: --requirement "$pins"
pip install --quiet --no-deps --no-index --no-build-isolation --editable clients/python --editable .
.venv/bin/python -m pip check >>"$log" 2>&1 || fail "pyproject.toml asks for what $pins lacks: make lock. $(tail -n 1 "$log")"
touch ".venv/.$level"
