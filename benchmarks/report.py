"""The page of figures, from the committed results: ``python -m benchmarks.report > docs/benchmarks.md``."""

from dataclasses import dataclass
from statistics import median

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
        "engines. `ecl`: ECL-MaxFlow as published, on the same instances and device, both phases, best of four. Its "
        "values on `vision` are wrong, and differ from run to run. The second table is of the CPU engine, and of real "
        "networks.",
        ("cold-device.json", "cold-device-cpu.json"),
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
        "Which engine is taken",
        "Shapes that are hard for one engine or the other, and sizes of about a million edges: both engines, and what "
        "`auto` makes of them.",
        ("auto-device.json",),
    ),
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
        ("http-rmat-20-h200.json",),
    ),
    Section(
        "Requests a second",
        "Small road networks on the CPU engine: one for one client, 16 for 64 clients, one for 64 clients in the last "
        "column; in brackets the time that one request in a hundred exceeds, in milliseconds. Driven by wrk, which "
        "shares the 16 cores with the service and its Redis (`appendfsync everysec`). An unchanged answer is given "
        "again by the API process.",
        ("rates.json",),
    ),
    Section(
        "Requests a second on several GPUs",
        "16 R-MAT networks of two million edges, 64 clients, one worker a GPU, otherwise as above. In the last column "
        "one of the graphs goes from worker to worker all the time: it answered nobody for 79 ms in the median of 8 "
        "moves, 162 ms the longest, and no request was refused.",
        ("rates-gpus.json",),
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
        "Networks on which a solver that floods from one side is slow, beside a hub and acyclic dense. Best of up to "
        "four runs, in six processes side by side on a machine of 16 cores, four rows by one process alone. The other "
        "two tables are CPU time of the solving thread, since that machine had other work; the last one is point to "
        "point: sums over 20 random pairs of each road network.",
        ("hard-cpu.json", "hard-narrow-cpu.json", "pairs-cpu.json"),
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
    Section(
        "Many pairs on a CPU core",
        "A hundred random pairs as one question, proven, beside OR-tools pair by pair on a network that it has "
        "already. Trees and global cuts are of the same networks without directions, proven, and of a random network "
        "of 300 vertices and 900 edges beside NetworkX. CPU time of one thread, since the machine had other work.",
        ("many-pairs.json",),
    ),
    Section(
        "Richer networks and changes of structure on a CPU core",
        "Every junction with a capacity, and one such capacity changed; lower bounds of a tenth of the streets in use, "
        "and one that cannot be kept; batches of 100 streets inserted and 100 deleted, warm. Proofs are in our time. "
        "OR-tools has for each the network that one would write down: vertices split in two, bounds taken out, and the "
        "whole network anew after a batch. CPU time of one thread, since the machine had other work.",
        ("richer-cpu.json",),
    ),
    Section(
        "Calls of other libraries",
        "The road network of Andorra, and the random network of 300 vertices for trees and global cuts: the call of a "
        "library answered by the service, the first time with all that it takes to bring the graph there, beside the "
        "library itself. CPU time of client and service together, since the machine had other work.",
        ("adapters-cpu.json",),
    ),
    Section("Memory", "", ("memory-medium.json",)),
    Section("Over HTTP, on a CPU core", "Embedded Redis, `appendfsync everysec`.", ("http-medium.json",)),
)

PAIRS = (
    "10,000 random pairs of one network in one question, values proven: one H100 beside one core of the same machine, "
    "both ours, from the network on the host to the values on the host. OR-tools takes 27 ms a pair on "
    "road-luxembourg (`results/many-pairs.json`, another machine)."
)

STRUCTURE = (
    "10,000 rows in a batch, 5,000 edges inserted and 5,000 deleted, of a resident network of 1 M vertices, 5 M "
    "edges and 9.9 M arcs, on one H100; medians of twelve batches. `checked and applied` is all that a batch costs "
    "beside the solve. On a CPU core, and beside other layouts: [notes](../benchmarks/NOTES.md#changes-of-structure)."
)
PARTITIONS = (
    "The cut of a partition from nothing as a part of that of METIS (`METIS_PartGraphKway` by pymetis), with an "
    "imbalance of at most 3 % and edges of weight 1, counted anew; seconds are sums over all k."
)
FOLLOWED = (
    "Through 100 changes of a grid with shortcuts, 1 M vertices and 2.3 M edges: what a partition takes to be "
    "brought up to date, the mean over all changes, beside one from nothing and METIS every tenth time. `checked` is "
    "the median with a count of all edges. Milliseconds of a processor, as other work ran on the two cores."
)
KINDS = (
    "The same with other kinds of change, on such a grid of 250,000 vertices, 40 changes each, so that the rule is not "
    "made for one of them; cuts are compared every fifth time. Where they are above 1.03: "
    "[notes](../benchmarks/NOTES.md#partitions)."
)
PAPER = (
    "After Table I of iG-kway (Lee et al.), 100 changes of 200 modifiers each, `times` from the mean over all changes. "
    "Ours runs on one CPU core, theirs on an NVIDIA A6000 beside G-kway on the same device; their circuits are not "
    "public, and the graphs here stand for the kinds of theirs: [how to read it](api.md#partition)."
)
PAPER_K = 2

DEVICE_PARTITIONS = (
    "The same networks and changes on one H200 beside METIS on a core of the same machine, by the clock on the wall. A "
    "partition from nothing has METIS divide the smallest of its graphs, in a process of its own (0.1 s or more of the "
    "time). Of the power law, many vertices have few links or none; METIS, asked for the whole, does not find how "
    "little need be cut where a part may have mostly such."
)
DEVICE_FOLLOWED = (
    "Brought up to date there, compared every twentieth time; `host ms` is what the host's partition takes in the mean "
    "beside it, for the same changes."
)


SCENARIOS = (
    "64 scenarios that give so many edges another capacity, each value proven, on one H100 with 16 cores; the time of "
    "one. A fork is made once for all; trials are those on the host's cores, which leave some of the 64 to overlays. "
    "Why it is so: [notes](../benchmarks/NOTES.md#scenarios-on-a-device)."
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
    parts += ["## Scenarios on a GPU", SCENARIOS, scenarios(read(DIRECTORY / "scenarios-device.json")["rows"])]
    parts += [
        "## Changes of structure on a GPU",
        STRUCTURE,
        structure(read(DIRECTORY / "structure-device.json")["rows"]),
    ]
    parts += [page(section) for section in ON_CPU]
    device = read(DIRECTORY / "partition-cuts-device.json")["rows"]
    parts += ["## Partitions on a GPU", DEVICE_PARTITIONS, cuts(device)]
    parts += [DEVICE_FOLLOWED, followed(read(DIRECTORY / "partition-follow-device.json")["summary"])]
    parts += ["## Partitions on a CPU core", PARTITIONS, cuts(read(DIRECTORY / "partition-cuts.json")["rows"])]
    parts += [FOLLOWED, followed(read(DIRECTORY / "partition-follow.json")["summary"])]
    parts += [KINDS, followed(read(DIRECTORY / "partition-kinds.json")["summary"])]
    parts += [PAPER, beside_the_paper(read(DIRECTORY / "partition-table1.json")["summary"])]
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


def scenarios(rows: list[Row]) -> str:
    """One line for each network and number of edges."""
    names = ["host_fork_ms", "fork_ms", "host_overlay_ms", "trials_ms", "left", "overlay_ms"]
    heads = [
        "fork on the host ms",
        "on the GPU ms",
        "overlay on the host ms",
        "trials ms",
        "left",
        "overlay on the GPU ms",
    ]
    lines = [
        [row["instance"], str(row["arcs"]), str(row["edges"])]
        + [str(row[name]) if name == "left" else three(row[name]) for name in names]
        for row in rows
    ]
    return markdown(["instance", "arcs", "edges", *heads], lines)


def structure(rows: list[Row]) -> str:
    """One line: medians over all batches, and the cold solve that none of them needed."""
    batches = [row for row in rows if "mode" in row]
    columns = ("checked and applied", "solve", "proof")
    cold = next(row["cold solve and proof"] for row in rows if "cold solve and proof" in row)
    figures = [three(median(batch[column] for batch in batches)) for column in columns]
    modes = sorted({batch["mode"] for batch in batches})
    header = [*(f"{column} ms" for column in columns), "mode", "cold solve and proof ms"]
    return markdown(header, [[*figures, ", ".join(modes), three(cold)]])


def cuts(rows: list[Row]) -> str:
    """One line a network: the ratio of the cuts for each k."""
    ks = sorted({row["k"] for row in rows})
    lines = []
    for network in dict.fromkeys(row["network"] for row in rows):
        found = {row["k"]: row for row in rows if row["network"] == network}
        ratios = [f"{found[k]['ratio']:.3f}" for k in ks]
        seconds = [three(sum(row[key] for row in found.values())) for key in ("ours_s", "metis_s")]
        lines.append([network, str(found[ks[0]]["n"]), str(found[ks[0]]["m"]), *ratios, *seconds])
    header = ["network", "V", "E", *(f"k = {k}" for k in ks), "headrace s", "METIS s"]
    return markdown(header, lines)


def followed(rows: list[Row]) -> str:
    """One line for each kind and size of change and each k."""
    header = ["change", "k", "at once", "median ms", "mean ms", "checked ms", "from nothing / mean", "METIS / mean"]
    lines = []
    for row in rows:
        times = [1e3 * row["s"], 1e3 * row["mean_s"], 1e3 * row["s_checked"]]
        shown = [three(value) for value in (*times, row["mean_times_full"], row["mean_times_metis"])]
        made, most = str(row["of"] - row["incremental"]), f"{max(row['cut_to_full']):.3f}"
        host = [three(1e3 * row["host_mean_s"])] if "host_mean_s" in row else []
        lines.append([row["kind"], str(row["k"]), str(row["modifiers"]), *shown, made, most, *host])
    last = ["host ms"] if "host_mean_s" in rows[0] else []
    return markdown([*header, "made from nothing", "cut / that from nothing, most", *last], lines)


def beside_the_paper(rows: list[Row]) -> str:
    """One line for each graph and k; what the paper has is for k = 2."""
    header = ["graph", "V", "E", "k", "mean ms", "from nothing ms", "METIS ms", "times", "METIS times", "cut"]
    lines = []
    for row in rows:
        times = [1e3 * row["mean_s"], 1e3 * row["full_s"], 1e3 * row["metis_s"]]
        shown = [three(value) for value in (*times, row["mean_times_full"], row["mean_times_metis"])]
        cuts = [str(row[name]) for name in ("cut", "full_cut", "metis_cut")]
        theirs = row["published"]
        paper = f"{theirs['name']}: {theirs['times']}, {theirs['cut']:.2f}" if row["k"] == PAPER_K else ""
        ratio = f"{median(row['cut_to_full']):.3f}"
        lines.append([row["network"], str(row["n"]), str(row["m"]), str(row["k"]), *shown, *cuts, ratio, paper])
    return markdown([*header, "from nothing", "METIS", "cut / from nothing", "paper: times, cut"], lines)


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
