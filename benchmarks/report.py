"""The page of figures, from the committed results: ``python -m benchmarks.report > docs/benchmarks.md``."""

from dataclasses import dataclass

from benchmarks.results import DIRECTORY, Row, read
from benchmarks.tables import markdown, render, three


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, what to know before reading, and results files; ``beside`` has other people's figures."""

    title: str
    text: str
    files: tuple[str, ...]
    beside: tuple[str, ...] = ()


SECTIONS = (
    Section(
        "Cold solves",
        "Sizes of the papers. Best of up to ten solves on resident graphs, each certified, equal values of all "
        "engines. `ecl`: ECL-MaxFlow as published, on the same instances and the same kind of GPU, both phases; "
        "`ecl_lean`: without its own timing events. Its values on `vision` are wrong, and differ from run to run.",
        ("cold-device.json",),
        ("ecl-h200.json",),
    ),
    Section(
        "Larger ones",
        "The next sizes of ECL-MaxFlow's Table I, and others. Its own times on networks of the same kinds and sizes, "
        "with other seeds, on an H200: genrmf-long-64 3,423 ms, genrmf-wide-128 8,795, rlg-long-1280 3,155, "
        "rlg-wide-2048 4,068, ac-10000 839, vision-2048 1,596 (a wrong value).",
        ("cold-large-device.json",),
    ),
    Section("Cold solves of small networks", "", ("cold-small-h200.json",)),
    Section(
        "Warm solves",
        "Update and solve in microseconds, cold over warm in brackets. From 1 % on, most of the time is the host's "
        "bookkeeping of the update, which a cold solve needs as well.",
        ("warm-rmat-20.json", "warm-device.json"),
    ),
    Section("A thousand batches on one state", "100 edges each, half of them at terminals.", ("drift-device.json",)),
    Section(
        "Over HTTP",
        "Embedded Redis, `appendfsync everysec`, engine `auto`, client and service on one machine. Every PATCH is "
        "durable, re-solved and certified before it is answered.",
        ("http-rmat-20-h200.json", "fleet-h200.json"),
    ),
    Section(
        "Presets",
        "The published systems on our data structures, certified; small networks, host loops as in the papers.",
        ("presets-small-h200.json", "presets-genrmf-small-h200.json"),
    ),
)

ON_CPU = (
    Section(
        "Cold solves on a CPU core",
        "Sizes of about a million edges; real networks below.",
        ("cold-medium.json",),
    ),
    Section(
        "Hard shapes on a CPU core",
        "Networks on which a solver that floods from one side is slow, beside a hub and acyclic dense. CPU time of the "
        "solving thread, since the machine had other work; best of up to three runs. The last table is point to point: "
        "sums over 20 random pairs of each road network.",
        ("hard-cpu.json", "pairs-cpu.json"),
    ),
    Section("Warm solves on a CPU core", "Update and solve in microseconds.", ("warm-medium.json",)),
    Section(
        "What limits a flow, on a CPU core",
        "On a solved network: its bottlenecks, beside SciPy's components of the whole residual network; the curve "
        "of the value against a factor from 0 to 3 on these, each point proven, beside OR-tools from zero at the same "
        "points; and the cheapest way to widen these for so many units more, proven, beside NetworkX's network "
        "simplex. The machine had other work.",
        ("limits-cpu.json",),
    ),
    Section(
        "Closures on a CPU core",
        "A thousand single closures as scenarios of one what-if question, beside a cold solve with its proof for each "
        "on one core; and closure studies of every edge. The machine had much other work, so CPU time says more than "
        "the time of the call: it is that of client, API, worker and Redis together.",
        ("closures-cpu.json",),
    ),
    Section("Memory", "", ("memory-medium.json",)),
    Section("Over HTTP, on a CPU core", "Embedded Redis, `appendfsync everysec`.", ("http-medium.json",)),
)

PAIRS = (
    "10,000 random pairs of one network in one question, values proven: one H100 beside one core of the same machine, "
    "both ours, from the network on the host to the values on the host. OR-tools takes 27 ms a pair on "
    "road-luxembourg (`results/many-pairs.json`, another machine)."
)


def report() -> str:
    """The whole page."""
    parts = [
        "# Figures",
        "Made by `python -m benchmarks.report > docs/benchmarks.md` from `benchmarks/results`. "
        "On the GPU: one NVIDIA H200; "
        "figures of one table are of one run, so compare within a table. How the engine came to be as it is: "
        "[notes](../benchmarks/NOTES.md).",
    ]
    parts += [page(section) for section in SECTIONS]
    parts += ["## Half a billion arcs", scale(read(DIRECTORY / "scale-rmat-24.json")["rows"])]
    parts += ["## Many pairs on a GPU", PAIRS, many_pairs(read(DIRECTORY / "pairs-device.json")["rows"])]
    parts += [page(section) for section in ON_CPU]
    return "\n\n".join(parts) + "\n"


def page(section: Section) -> str:
    """Heading, text and tables."""
    beside = [row for name in section.beside for row in read(DIRECTORY / name)["rows"]]
    tables = [render(read(DIRECTORY / name), brief=True, beside=beside) for name in section.files]
    return "\n\n".join([f"## {section.title}", *filter(None, [section.text]), *tables])


def many_pairs(rows: list[Row]) -> str:
    """One line a network: the row of the device, and that of a core behind it."""
    header = ["instance", "V", "arcs", "GPU ms", "one core ms", "times"]
    lines = []
    for device, core in zip(rows[::2], rows[1::2], strict=True):
        times = core["wall_ms"] / device["wall_ms"]
        figures = [three(value) for value in (device["wall_ms"], core["wall_ms"], times)]
        lines.append([device["instance"], str(device["n"]), str(device["arcs"]), *figures])
    return markdown(header, lines)


def scale(rows: list[Row]) -> str:
    """One line a network; warm columns are of update and solve together."""
    header = ["network", "V", "E", "arcs", "load s", "open s", "bytes / arc", "cold ms", "warm ms, by edges"]
    lines = []
    for row in rows:
        warm = {key.split("_")[1]: row[key] for key in row if key.startswith("warm_")}
        seconds = [three(row[key] / 1e3) for key in ("load_ms", "open_ms")]
        line = [row["instance"], *(str(row[key]) for key in ("n", "m", "arcs")), *seconds]
        line += [three(row["engine_bytes_per_arc"]), three(row["cold_ms_median"])]
        lines.append([*line, ", ".join(f"{k}: {three(ms)}" for k, ms in warm.items())])
    return markdown(header, lines)


if __name__ == "__main__":
    print(report(), end="")
