"""The TypeScript client, generated from the OpenAPI document and built here, against a real service."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CLIENT = Path(__file__).parents[2] / "clients" / "typescript"
NPM = shutil.which("npm")
UNREACHABLE = ("ENOTFOUND", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EAI_AGAIN", "E404", "E403")


def npm(folder: Path, *words: str, **environment: str) -> str:
    """What it prints. Skips the test if its packages cannot be had here."""
    command = [NPM or "npm", *words, "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=folder, env=os.environ | environment, capture_output=True, text=True)
    if words[0] == "ci" and done.returncode and any(code in done.stderr for code in UNREACHABLE):
        pytest.skip(f"npm cannot fetch its packages: {done.stderr.strip().splitlines()[0]}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(NPM is None, reason="there is no npm")
def test_it_is_built_and_speaks_to_the_service(service_url: str, tmp_path: Path) -> None:
    """In a copy, so that a build beside it is not disturbed."""
    folder = tmp_path / "clients" / "typescript"
    left = shutil.ignore_patterns("node_modules", "dist", "generated")
    shutil.copytree(CLIENT, folder, ignore=left)
    (tmp_path / "docs").mkdir()
    shutil.copy(CLIENT.parents[1] / "docs" / "openapi.json", tmp_path / "docs")
    npm(folder, "ci", "--fetch-timeout=20000", "--fetch-retries=1")
    npm(folder, "run", "build")
    said = npm(folder, "test", HEADRACE_URL=service_url)
    assert "# fail 0" in said
    assert "# pass 23" in said
    shutil.rmtree(folder / "dist")  # what is packed is built for it
    npm(folder, "pack")
    (packed,) = folder.glob("*.tgz")
    program = tmp_path / "program"
    program.mkdir()
    npm(program, "install", "--offline", str(packed))
    asked = "import { connect, Refused } from 'headrace'; console.log(typeof connect, typeof Refused)"
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", asked], cwd=program, capture_output=True, text=True, check=True
    )
    assert done.stdout == "function function\n"
    (program / "package.json").write_text('{"type": "module"}')
    (program / "asked.ts").write_text((CLIENT / "README.md").read_text().split("```ts\n")[1].split("```")[0])
    strict = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--target", "es2022"]
    modules = ["--module", "nodenext", "--types", "node", "--typeRoots", str(folder / "node_modules" / "@types")]
    tsc = folder / "node_modules" / ".bin" / "tsc"
    command = [tsc, *strict, *modules, "asked.ts"]
    done = subprocess.run(command, cwd=program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
