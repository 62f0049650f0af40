"""`PYTHON scripts/notices.py > THIRD_PARTY_NOTICES.txt`: what that Python has installed, with the licence of each.

For the environment of a release: each distribution beside our own, by name, with the texts that its licence asks to be
passed on. Fails if one of them says nothing of its licence.
"""

import sys
from importlib.metadata import Distribution, distributions
from typing import Final

OURS: Final = frozenset({"headrace", "headrace-server", "pip", "setuptools"})
RULE: Final = "-" * 100


def licence_of(package: Distribution) -> str:
    """By its expression, else its classifiers, else the first line of the old field; "" if there is none."""
    metadata = package.metadata
    expression = metadata.get("License-Expression")
    classifiers = [line for line in metadata.get_all("Classifier", []) if line.startswith("License")]
    named = ", ".join(line.rpartition(" :: ")[2] for line in classifiers)
    return expression or named or (metadata.get("License") or "").strip().partition("\n")[0]


def texts_of(package: Distribution) -> list[str]:
    """The licence files that its metadata names, or that lie beside it under a usual name."""
    named = {name.rpartition("/")[2] for name in package.metadata.get_all("License-File", [])}
    usual = ("LICENSE", "LICENCE", "COPYING", "NOTICE")
    found = [
        path
        for path in package.files or ()
        if ".dist-info" in str(path) and (path.name in named or path.name.upper().startswith(usual))
    ]
    return [path.locate().read_text(encoding="utf-8", errors="replace").strip() for path in sorted(found)]


def main() -> int:
    packages = {package.metadata["Name"]: package for package in distributions()}
    silent = []
    for name in sorted(packages, key=str.lower):
        if name.lower() in OURS:
            continue
        package = packages[name]
        licence, texts = licence_of(package), texts_of(package)
        if not licence and not texts:
            silent.append(name)
        print(RULE, f"{name} {package.version}: {licence or 'see below'}", *texts, sep="\n\n")
    if silent:
        print(f"no licence is known of {', '.join(silent)}", file=sys.stderr)
    return bool(silent)


if __name__ == "__main__":
    sys.exit(main())
