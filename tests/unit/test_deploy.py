"""Images and compose file, as far as they can be checked without a container engine."""

import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.cli.main import app
from service.host import redis_server
from service.host.gpus import plan
from service.settings import Settings
from service.store.connection import connect
from service.store.room import RESERVE_MOST_BYTES, Memory, Need

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service.get("build", {}).get("target") in ("cpu", "gpu")}
WORKERS = {name: service for name, service in OURS.items() if name.startswith("worker")}
STORE_URL = "redis://valkey:6379/0"
OF_OTHERS = {"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"}
"""Variables that are no settings of ours, and passed on."""
UNASKED = {"otel"}
"""Services whose images have no program that could ask whether they are well."""

FIXED = {
    "redis_url": "compose has one store, and the API and the workers find it by its name",
    "redis_wait_s": "`headrace serve` and `headrace worker` heed it; a container waits, or is restarted",
    "data_dir": "the embedded server is not used",
    "fsync": "compose hands HEADRACE_FSYNC to the store itself",
    "redis_maxmemory": "compose hands HEADRACE_REDIS_MAXMEMORY to the store itself",
    "host": "the image's command listens on every address of the container; HEADRACE_PUBLISH says where on the host",
    "port": "the image's command has it; HEADRACE_PUBLISH says which on the host",
    "api_processes": "compose starts as many containers, of one process each",
    "metrics_file": "each API process is scraped at an address of its own",
    "workers": "each is a service of its own",
    "gpus": "that of the service with the GPUs, which says all by default",
    "lock_descriptor": "`headrace serve` alone has such a file",
    "only_workers": "`headrace serve` alone has all workers there are",
    "keys_seen_file": "the containers' file systems are read-only; HEADRACE_REQUIRE_KEYS says as much",
}
"""Settings that are not the operator's in a container."""


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """(instruction, arguments), continuation lines joined and comments dropped."""
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    pairs = (line.split(maxsplit=1) for line in joined.splitlines() if line.strip())
    return [(word.upper(), " ".join(rest.split())) for word, rest in pairs]


def stages(dockerfile: str) -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """Stage name -> (the image or stage it starts from, its instructions)."""
    found: dict[str, tuple[str, list[tuple[str, str]]]] = {}
    for word, rest in instructions(dockerfile):
        if word == "FROM":
            base, name = re.fullmatch(r"(\S+) AS (\S+)", rest).groups()  # type: ignore[union-attr]
            found[name] = (base, [])
        elif found:  # before the first one stand arguments of all
            list(found.values())[-1][1].append((word, rest))
    return found


def layers(target: str) -> list[tuple[str, str]]:
    """The instructions a target consists of, those of the stages below it first."""
    base, own = stages(DOCKERFILE)[target]
    return [*(layers(base) if base in stages(DOCKERFILE) else []), *own]


def json_words(arguments: str) -> list[str]:
    words: list[str] = yaml.safe_load(arguments)
    return words


def assert_runs(words: list[str]) -> None:
    """The command exists in this checkout."""
    match words:
        case ["uvicorn", "--factory", factory, *_]:
            module, _, name = factory.partition(":")
            assert callable(getattr(importlib.import_module(module), name))
        case ["python", "-m", module, *arguments]:
            spec = importlib.util.find_spec(module)
            assert spec is not None
            assert spec.origin is not None
            options = [word for word in arguments if word.startswith("--")]
            shown = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True)
            assert [option for option in options if option not in shown.stdout] == []
        case ["headrace", command]:
            assert command in {found.name or found.callback.__name__ for found in app.registered_commands}
        case _:
            pytest.fail(f"{words} is no command of ours")


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_image_is_unprivileged_and_checked(target: str) -> None:
    words = layers(target)
    users = [rest for word, rest in words if word == "USER"]
    assert users[-1].partition(":")[0] not in ("", "root", "0")
    assert [rest for word, rest in words if word == "HEALTHCHECK"]
    assert [rest for word, rest in words if word == "VOLUME"] == ["/var/cache/headrace"]
    caches = " ".join(rest for word, rest in words if word == "ENV")
    for name in ("NUMBA_CACHE_DIR", "CUPY_CACHE_DIR"):
        assert f"{name}=/var/cache/headrace/" in caches
    assert_runs(json_words([rest for word, rest in words if word == "CMD"][-1]))


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_image_carries_the_compiled_kernels(target: str) -> None:
    """Compiled as the user who runs the worker, where it looks for them, before the folder becomes a volume, and for
    sources whose times survive the image."""
    words = layers(target)
    warm = words.index(("RUN", "headrace warm-up"))
    before, after = words[:warm], words[warm + 1 :]
    assert [rest for word, rest in before if word == "USER"]
    assert [word for word, _ in after] == ["VOLUME"]
    assert before[-1] == ("COPY", f"--from=build-{target} /opt/headrace /opt/headrace")
    build = [rest for word, rest in layers(f"build-{target}") if word == "RUN"]
    assert "touch -d" in build[-1]
    assert "/wheels/" in build[-2]


def test_image_copies_what_is_there_and_not_ignored() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for word, rest in instructions(DOCKERFILE):
        if word == "COPY" and "--from" not in rest:
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert source in kept


@pytest.mark.parametrize(
    ("target", "lock"),
    [("build-cpu", "image"), ("build-gpu", "image-gpu${CUDA_VERSION%%.*}"), ("wheels", "build")],
)
def test_images_hold_what_is_locked(target: str, lock: str) -> None:
    """Nothing is installed but from a lock file, from the wheels made here, or as the CUDA version asked for."""
    words = layers(target)
    assert any("PIP_NO_DEPS=1" in rest and "PIP_ONLY_BINARY=:all:" in rest for word, rest in words if word == "ENV")
    runs = [rest for word, rest in words if word == "RUN"]
    locked, *others = [found for rest in runs for found in re.findall(r"pip install (.*?)(?= &&|$)", rest)]
    assert locked.replace('"', "") == f"--require-hashes --requirement requirements/{lock}.txt"
    for major in ("12", "13"):
        assert (ROOT / "requirements" / f"{lock.replace('${CUDA_VERSION%%.*}', major)}.txt").is_file()
    for other in others:
        assert other.startswith("--no-cache-dir --no-index /wheels/*.whl") or "${CUDA_VERSION}" in other


@pytest.mark.parametrize("major", ["12", "13"])
def test_the_image_holds_the_cuda_that_it_is_named_by(major: str) -> None:
    """Of each major version the lock file has CuPy, and NVRTC of the minor version that the Dockerfile and the README
    name with the driver it needs."""
    pins = (ROOT / "requirements" / f"image-gpu{major}.txt").read_text()
    assert f"\ncupy-cuda{major}x==" in pins
    suffix = "-cu12" if major == "12" else ""
    (version,) = set(re.findall(rf"^nvidia-cuda-(?:nvrtc|runtime){suffix}==(\d+\.\d+)\.", pins, re.MULTILINE))
    assert f"CUDA_VERSION={version}" in DOCKERFILE
    assert version in (ROOT / "deploy" / "README.md").read_text()
    assert 'NVIDIA_REQUIRE_CUDA="cuda>=${CUDA_VERSION}"' in " ".join(rest for word, rest in layers("gpu"))


def test_the_store_mends_its_file_before_each_start() -> None:
    """In the container's own command, as nothing else of compose runs when an engine starts a container again."""
    image = json_words([rest for word, rest in layers("store") if word == "CMD"][-1])
    start = ["python", "-m", "service.host.store", "/data", "valkey-server"]
    assert SERVICES["valkey"]["command"][: len(start)] == image[: len(start)] == start
    users = [rest for word, rest in layers("store") if word == "USER"]
    assert users[-1] == "999:999", "the owner of volumes that the official image has begun"
    assert importlib.util.find_spec("service.host.store") is not None


def test_images_are_pinned() -> None:
    names = stages(DOCKERFILE)
    images = [base for base, _ in names.values() if base not in names]
    images += [service["image"] for service in SERVICES.values()]
    for image in images:
        _, _, tag = image.rpartition("/")[2].partition(":")
        assert re.search(r"\d", tag), f"{image} names no version"


def test_healthcheck_imports_what_exists() -> None:
    path = ROOT / "docker" / "healthcheck.py"
    compile(path.read_text(), str(path), "exec")
    names = re.findall(r"^ *from (service\S*) import", path.read_text(), re.MULTILINE)
    assert [name for name in names if importlib.util.find_spec(name) is None] == []


@pytest.mark.parametrize("name", SERVICES)
def test_service_is_hardened_and_checked(name: str) -> None:
    service = SERVICES[name]
    assert name in UNASKED or service["healthcheck"]["test"][0] == "CMD"
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["restart"] == "unless-stopped"
    assert set(service["networks"]) <= set(COMPOSE["networks"])
    for volume in service.get("volumes", []):
        default = re.sub(r"^\$\{\w+:-([\w-]+)\}", r"\1", volume)
        source = default.partition(":")[0]
        if "/" in source or "$" in source:
            source = re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", volume.rpartition(":ro")[0].rpartition(":")[0])
            assert (ROOT / "deploy" / source).exists(), source
        else:
            assert source in COMPOSE["volumes"]


@pytest.mark.parametrize("name", OURS)
def test_our_services_start_what_exists(name: str) -> None:
    service = OURS[name]
    assert service["build"]["target"] in stages(DOCKERFILE)
    assert (ROOT / "deploy" / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    assert service["depends_on"] == {"valkey": {"condition": "service_healthy"}}
    if "command" in service:
        assert_runs(service["command"])


@pytest.mark.parametrize("name", WORKERS)
def test_worker_is_checked_under_its_own_name(name: str) -> None:
    """One worker by its name, or those of all GPUs by what their names begin with."""
    service = WORKERS[name]
    kind = name.removeprefix("worker-")
    assert service["profiles"] == [kind]
    if service["command"] == ["headrace", "worker"]:
        assert service["environment"]["HEADRACE_GPUS"] == "${HEADRACE_GPUS:-all}"
        assert plan(Settings(gpus="all", engine="auto"), list_devices=lambda: ["H200"])[0].name.startswith(f"{kind}-")
        assert service["healthcheck"]["test"][-2:] == ["workers", f"{kind}-"]
        return
    own_name = service["command"][service["command"].index("--name") + 1]
    assert own_name.startswith(f"{kind}-")
    assert service["healthcheck"]["test"][-2:] == ["worker", own_name]


def test_store_is_durable_and_out_of_reach() -> None:
    valkey = SERVICES["valkey"]
    words = valkey["command"]
    assert words[words.index("--appendonly") + 1] == "yes"
    assert words[words.index("--maxmemory-policy") + 1] == "noeviction"
    assert "ports" not in valkey
    assert COMPOSE["networks"]["inside"]["internal"] is True
    assert valkey["networks"] == ["inside"]
    assert valkey["volumes"] == ["valkey:/data"]


def test_store_has_a_limit_and_so_a_reserve(tmp_path: Path) -> None:
    """The server that reads the file's default keeps room for deletes, as `service.store.room` asks for it."""
    words = SERVICES["valkey"]["command"]
    given = words[words.index("--maxmemory") + 1]
    default = re.fullmatch(r"\$\{HEADRACE_REDIS_MAXMEMORY:-(\w+)\}", given)
    assert default is not None
    settings = Settings(data_dir=tmp_path, redis_url=None, redis_maxmemory=default[1])
    process = redis_server.start(settings)
    try:
        redis_server.wait_until_ready(settings, process)
        client: Any = connect(settings.model_copy(update={"redis_url": settings.redis_location}))
        memory = Memory.of(client.info("memory"))
        client.close()
    finally:
        process.terminate()
        process.wait()
    assert memory.limit == 4 << 30
    assert memory.reserve == RESERVE_MOST_BYTES
    assert not memory.has_room(memory.limit - memory.used, Need.GROWTH)
    assert "HEADRACE_REDIS_MAXMEMORY" in (ROOT / "deploy" / "README.md").read_text()


@pytest.mark.parametrize("name", OURS)
def test_every_setting_of_the_operator_reaches_the_container(name: str) -> None:
    """A variable of the shell is seen by a container only if the file passes it on: by its name without a value, which
    is left out where it is not set, so that the default is the one of `Settings`."""
    environment = dict(OURS[name]["environment"])
    assert environment.pop("HEADRACE_REDIS_URL") == f"${{HEADRACE_REDIS_URL:-{STORE_URL}}}"
    assert [environment.pop(other) for other in sorted(OF_OTHERS)] == [None] * len(OF_OTHERS)
    if name == "worker-cpu":
        assert environment["HEADRACE_ENGINE"] == "cpu"
        environment["HEADRACE_ENGINE"] = None
    if name == "worker-gpu":
        assert environment.pop("HEADRACE_GPUS")
    assert FIXED.keys() <= Settings.model_fields.keys()
    operators = [field for field in Settings.model_fields if field not in FIXED]
    assert environment == {f"HEADRACE_{field.upper()}": None for field in operators}


@pytest.mark.parametrize("name", OURS)
def test_a_misspelt_name_of_the_operator_reaches_the_container_too(name: str) -> None:
    """From the file `.env` everything does, and what no setting reads stops the start; a file that is not there is no
    error."""
    assert OURS[name]["env_file"] == [{"path": ".env", "required": False}]
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines(), "it may hold what is nobody else's business"


def test_the_store_of_the_file_is_the_one_that_counts() -> None:
    """REDIS_URL of a `.env` would go to the containers, and another store would be split between them."""
    settings = Settings(_env_file=None, HEADRACE_REDIS_URL=STORE_URL, REDIS_URL="redis://elsewhere/0")  # type: ignore[call-arg]  # names of the environment
    assert settings.redis_location == STORE_URL


def test_a_certificate_is_where_the_api_looks_for_it() -> None:
    """What the settings name lies under the folder that is mounted, and only to be read."""
    (volume,) = SERVICES["api"]["volumes"]
    assert volume == "${HEADRACE_TLS_DIR:-no-certificates}:/etc/headrace:ro"
    readme = (ROOT / "deploy" / "README.md").read_text()
    for line in ("HEADRACE_TLS_DIR=", "HEADRACE_TLS_CERT=/etc/headrace/", "HEADRACE_TLS_KEY=/etc/headrace/"):
        assert line in readme
    assert SERVICES["api"]["healthcheck"]["test"] == ["CMD", "python", "/opt/healthcheck.py", "api"]
    healthcheck = (ROOT / "docker" / "healthcheck.py").read_text()
    (port,) = re.findall(r"^PORT = (\d+)$", healthcheck, re.MULTILINE)
    command = json_words([rest for word, rest in layers("cpu") if word == "CMD"][-1])
    assert command[command.index("--port") + 1] == port
    assert all(published.endswith(f":{port}") for published in SERVICES["front"]["ports"])
    assert "ports" not in SERVICES["api"], "it has several processes, of which one port of the host would reach one"


def test_what_is_said_of_a_full_store_is_what_happens() -> None:
    """The comment of the file, the page for operators and the code name one reserve and one policy."""
    operations = (ROOT / "docs" / "operations.md").read_text()
    comment = (ROOT / "deploy" / "compose.yaml").read_text()
    reserve = f"last {RESERVE_MOST_BYTES >> 20} MiB"
    for text in (operations, comment):
        for words in (reserve, "507", "HEADRACE_REDIS_MAXMEMORY", "noeviction", "HeadraceRedisNearlyFull"):
            assert words in text


def test_only_the_gpu_worker_reserves_a_gpu() -> None:
    reserving = {name for name, service in SERVICES.items() if "resources" in service.get("deploy", {})}
    assert reserving == {"worker-gpu"}
    (device,) = SERVICES["worker-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device["driver"] == "nvidia"
    assert "gpu" in device["capabilities"]


def test_compose_accepts_the_file() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True).returncode:
        pytest.skip("no docker compose here")
    file = str(ROOT / "deploy" / "compose.yaml")
    command = [docker, "compose", "--file", file, "--profile", "*", "config", "--quiet"]
    subprocess.run(command, check=True, timeout=60)
