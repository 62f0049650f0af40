#!/bin/sh
# scripts/release.sh [FOLDER]: what a release is made of, in FOLDER [dist]: the wheels of service and client, the package of the
# TypeScript client where there is npm, a bill of materials (CycloneDX) and the notices of what they run with, and checksums.
# Refuses versions that differ, a version without an entry in CHANGELOG.md, and changes that are not committed.
set -eu
cd "$(dirname "$0")/.."
out=${1:-dist}

fail() {
    echo "release: $1" >&2
    exit 1
}

version_of() {
    sed -n 's/^ *"\{0,1\}version"\{0,1\} *[=:] *"\([^"]*\)".*/\1/p' "$1" | head -n 1
}

version=$(version_of pyproject.toml)
for file in clients/python/pyproject.toml clients/typescript/package.json; do
    [ "$(version_of "$file")" = "$version" ] || fail "$file has version $(version_of "$file"), pyproject.toml has $version"
done
grep -q "^## $version" CHANGELOG.md || fail "CHANGELOG.md has no entry '## $version'"
[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=$(scripts/find_python.sh)
mkdir -p "$out"

# What is built is built from the tag's files alone, with the tools that are locked.
git archive --format tar HEAD | tar -x -C "$work" --one-top-level=source
"$python" -m venv "$work/run"
pip="$work/run/bin/pip --disable-pip-version-check --quiet"
$pip install --require-hashes --requirement requirements/build.txt
$pip wheel --no-deps --no-build-isolation --wheel-dir "$out" "$work/source/clients/python" "$work/source"

# The environment that it runs in, and nothing beside: what the bill and the notices are of.
rm -rf "$work/run"
"$python" -m venv "$work/run"
$pip install --require-hashes --requirement requirements/image.txt
$pip install --no-deps "$out/headrace-$version-"*.whl "$out/headrace_server-$version-"*.whl
rm -f "$work"/run/lib/python*/site-packages/headrace*.dist-info/direct_url.json # where this machine had them
"$work/run/bin/python" scripts/notices.py >"$out/THIRD_PARTY_NOTICES.txt"
"$python" -m venv "$work/tools"
"$work/tools/bin/pip" --disable-pip-version-check --quiet install 'cyclonedx-bom>=7,<8'
"$work/tools/bin/cyclonedx-py" environment --output-format JSON --output-reproducible \
    --pyproject pyproject.toml --output-file "$out/headrace-$version.cdx.json" "$work/run/bin/python"

if command -v npm >/dev/null; then
    (cd "$work/source/clients/typescript" && npm ci --silent --no-audit --no-fund &&
        npm pack --silent --pack-destination "$work" >/dev/null)
    cp "$work/headrace-$version.tgz" "$out"
fi

(cd "$out" && sha256sum -- *"$version"* THIRD_PARTY_NOTICES.txt >SHA256SUMS)
echo "release $version is in $out:"
ls -l "$out"
