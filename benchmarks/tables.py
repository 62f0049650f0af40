"""Results as Markdown tables."""

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from benchmarks.results import Row


def render(document: Row, brief: bool = False, beside: Sequence[Row] = ()) -> str:
    """The table of one results document, with the machine above; ``brief`` shortens the warm one.

    ``beside`` are rows of other solvers on some of the instances, from other files.
    """
    machine = document["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    head = (
        f"{document['kind']}, {document['date'][:10]}: {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_bytes'] / 2**30:.0f} GiB; {versions}; commit {machine['commit'] or 'unknown'}."
    )
    kind = document["kind"]
    table = BRIEF.get(kind, TABLES[kind]) if brief else TABLES[kind]
    rows = document["rows"]
    drawn = {row.get("instance") for row in rows}
    return f"{head}\n\n{table([*rows, *(row for row in beside if row['instance'] in drawn)])}"


def markdown(header: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """One table."""
    columns = list(header)
    rows = [columns, ["---"] * len(columns), *(list(line) for line in lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def three(value: float | None) -> str:
    """Three significant digits without an exponent; empty for None."""
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def cold(rows: list[Row]) -> str:
    """Best solve milliseconds of each solver, one line an instance; median of ours beside it."""
    solvers = list(dict.fromkeys(row["solver"] for row in rows))
    header = ["instance", "V", "E", "arcs", "value", *(f"{solver} ms" for solver in solvers)]
    header += ["best / best peer", "median ms", "certificate ms", "build ms"]
    lines = []
    for instance in dict.fromkeys(row["instance"] for row in rows):
        found = {row["solver"]: row for row in rows if row["instance"] == instance}
        ours, *others = (found[solver] for solver in solvers if solver in found)
        peers = [row for row in others if "value" in row and not row["solver"].startswith("headrace")]
        best = min((row["solve_ms_best"] for row in peers), default=None)
        times = [three(found[solver].get("solve_ms_best")) if solver in found else "" for solver in solvers]
        line = [instance, *(str(ours[key]) for key in ("n", "m", "arcs", "value")), *times]
        line.append(three(best and ours["solve_ms_best"] / best))
        lines.append(line + [three(ours[key]) for key in ("solve_ms_median", "certificate_ms_median", "build_ms")])
    return markdown(header, lines)


def pairs(rows: list[Row]) -> str:
    """Sums of the best milliseconds over all pairs, one line an instance. The last columns set ours against the best
    peer of each pair: the sums, and the pair where ours does worst."""
    solvers = list(dict.fromkeys(row["solver"] for row in rows))
    header = [
        "instance",
        "V",
        "arcs",
        "pairs",
        *(f"{solver} ms" for solver in solvers),
        "ours / best peer",
        "worst pair",
    ]
    lines = []
    for instance in dict.fromkeys(row["instance"] for row in rows):
        found = {row["solver"]: row for row in rows if row["instance"] == instance}
        ours, *peers = (found[solver] for solver in solvers if solver in found)
        line = [instance, *(str(ours[key]) for key in ("n", "arcs", "pairs"))]
        line += [three(found[solver]["solve_ms_sum"]) if solver in found else "" for solver in solvers]
        best = [min(times) for times in zip(*(row["pair_ms"] for row in peers), strict=True)]
        worst = max((mine / other for mine, other in zip(ours["pair_ms"], best, strict=bool(best))), default=None)
        lines.append([*line, three(ours["solve_ms_sum"] / sum(best) if best else None), three(worst)])
    return markdown(header, lines)


def warm(rows: list[Row]) -> str:
    """One line a cell."""
    header = "instance, drawn, change, size, edges, update us, solve us, p90 us, undo us, cold ms, cold / warm, worst"
    keys = ("update_us_median", "solve_us_median", "solve_us_p90", "undo_us_median", "cold_ms_median", "ratio", "worst")
    lines = [
        [row["instance"], row["drawn"], row["change"], row["size"], str(row["k"])]
        + [three(row[key]) for key in keys]
        + [", ".join(f"{count} {mode}" for mode, count in row["modes"].items()), three(row["certificate_ms_median"])]
        for row in rows
    ]
    return markdown([*header.split(", "), "modes", "certificate ms"], lines)


def warm_brief(rows: list[Row]) -> str:
    """One line for each instance, way of drawing and size: update and solve microseconds, and cold over warm."""
    changes = list(dict.fromkeys(row["change"] for row in rows))
    cells: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        cells.setdefault((row["instance"], row["drawn"], row["size"], str(row["k"])), {})[row["change"]] = row
    lines = []
    for key, found in cells.items():
        cold_ms = median(row["cold_ms_median"] for row in found.values())
        times = [f"{three(row['total_us_median'])} ({three(row['ratio'])}x)" for row in found.values()]
        lines.append([*key, three(cold_ms), *times, three(max(row["worst"] for row in found.values()))])
    return markdown(["instance", "drawn", "size", "edges", "cold ms", *(f"{c} us" for c in changes), "worst"], lines)


def drift(rows: list[Row]) -> str:
    """One line an instance."""
    header = ["instance", "engine", "batches", "edges", "first tenth us", "last tenth us", "last / first", "modes"]
    keys = ("first_us_median", "last_us_median", "late_over_early")
    lines = []
    for row in rows:
        line = [row["instance"], row["engine"], str(row["batches"]), str(row["k"]), *(three(row[key]) for key in keys)]
        lines.append([*line, ", ".join(f"{count} {mode}" for mode, count in row["modes"].items())])
    return markdown(header, lines)


def http(rows: list[Row]) -> str:
    """One line a request kind."""
    header = ["instance", "request", "clients", "requests", "p50 ms", "p90 ms", "p99 ms", "requests / s"]
    return markdown(
        header,
        [
            [row["instance"], row["request"], str(row["clients"]), str(row["requests"])]
            + [three(row[key]) for key in ("p50_ms", "p90_ms", "p99_ms", "per_s")]
            for row in rows
        ],
    )


def rates(rows: list[Row]) -> str:
    """One line a service and number of clients: requests a second and, in brackets, the 99th percentile in ms."""
    size = {"gpus": "GPUs"} if "gpus" in rows[0] else {"api_processes": "API processes", "workers": "workers"}
    names = list(dict.fromkeys((row["request"], row["graphs"] == 1 and row["clients"] > 1) for row in rows))
    lines: dict[tuple[int, ...], dict[tuple[str, bool], str]] = {}
    for row in rows:
        line = lines.setdefault((row["clients"], *(row[name] for name in size)), {})
        name = row["request"], row["graphs"] == 1 and row["clients"] > 1
        line[name] = f"{row['per_s']:,.0f} ({three(row['p99_ms'])})"
    header = ["clients", *size.values(), *(f"{name}, one graph" if one else name for name, one in names)]
    return markdown(header, [[*map(str, key), *(lines[key].get(name, "") for name in names)] for key in sorted(lines)])


def limits(rows: list[Row]) -> str:
    """One line a network and kind of work, ours beside the peer's."""
    header = ["network", "edges", "work", "found", "headrace ms", "peer", "peer ms"]
    found: dict[str, Callable[[Row], str]] = {
        "bottlenecks": lambda row: f"{row['bottlenecks']} edges",
        "parametric": lambda row: f"{row['segments']} segments, {row['flows']} flows",
        "expansion": lambda row: f"{row['raise_by']} more at {row['price']}",
    }
    peers = {"bottlenecks": "SciPy", "parametric": "OR-tools", "expansion": "NetworkX"}
    lines = []
    for row in rows:
        work, peer = row["work"], peers[row["work"]]
        line = [row["network"], str(row["n_edges"]), work, found[work](row), three(row["headrace_ms"])]
        lines.append([*line, peer, three(row[f"{peer.lower().replace('-', '')}_ms"])])
    return markdown(header, lines)


def memory(rows: list[Row]) -> str:
    """One line an instance, bytes per arc."""
    keys = ("engine_bytes_per_arc", "resident_bytes_per_arc", "peak_bytes_per_arc")
    header = ["instance", "V", "E", "arcs", "engine B / arc", "resident B / arc", "peak B / arc"]
    counts = [[str(row[key]) for key in ("instance", "n", "m", "arcs")] for row in rows]
    lines = [count + [three(row[key]) for key in keys] for count, row in zip(counts, rows, strict=True)]
    return markdown(header, lines)


def closures(rows: list[Row]) -> str:
    """One line a question. CPU time is that of all processes; beside it that of cold solves, if they were measured."""
    header = ["instance", "question", "top", "closures", "solved", "call ms", "cpu ms", "cold cpu ms", "cold / cpu"]
    lines = []
    for row in rows:
        top = "" if "top" not in row else str(row["top"] or "all")
        line = [row["instance"], row["question"], top, str(row["closures"]), str(row.get("solved", row["closures"]))]
        lines.append(line + [three(row.get(key)) for key in ("call_ms", "cpu_ms", "cold_cpu_ms", "cpu_speedup")])
    return markdown(header, lines)


def many_pairs(rows: list[Row]) -> str:
    """One line a network and question, ours beside the peer's: CPU time of one thread."""
    header = ["network", "question", "found", "headrace ms", "peer", "peer ms"]
    peers = {row["instance"]: row["thread_ms"] for row in rows if row.get("solver") == "ortools"}
    lines = []
    for row in rows:
        name = row.get("instance", row.get("of"))
        if "of" in row:
            stoer_wagner = three(row.get("networkx_stoer_wagner_ms"))
            lines.append(
                [name, "all pairs, as a tree", "", three(row["thread_ms"]), "NetworkX", three(row["networkx_ms"])]
            )
            lines.append([name, "global cut", "", three(row.get("global_cut_thread_ms")), "NetworkX", stoer_wagner])
        elif row.get("question") == "gomory-hu-tree":
            lines.append(
                [name, f"tree of {row['terminals']} vertices", f"{row['rows']} rows", three(row["thread_ms"]), "", ""]
            )
        elif row.get("question") == "global-min-cut":
            lines.append([name, "global cut", str(row["value"]), three(row["thread_ms"]), "", ""])
        elif row["solver"] == "headrace" and row["threads"] == 1:
            line = [name, f"{row['pairs']} pairs", "", three(row["thread_ms"])]
            lines.append([*line, "OR-tools", three(peers[name])])
    return markdown(header, lines)


def richer(rows: list[Row]) -> str:
    """One line a network and kind of work, ours beside OR-tools, CPU time of one thread."""
    header = ["network", "V", "E", "work", "found", "headrace ms", "OR-tools build ms", "OR-tools solve ms"]
    lines = []
    for row in rows:
        found = str(row["value"]) if "value" in row else "a flow" if row["feasible"] else "a proof that there is none"
        line = [row["network"], str(row["n"]), str(row["m"]), row["work"], found]
        lines.append(line + [three(row[key]) for key in ("thread_ms", "ortools_build_ms", "ortools_ms")])
    return markdown(header, lines)


def adapters(rows: list[Row]) -> str:
    """One line a call, ours beside that of the library, CPU time."""
    header = ["call", "found", "headrace, first ms", "again ms", "the library ms"]
    lines = []
    for row in rows:
        times = [three(row[key]) for key in ("first_ms", "again_ms", "peer_ms")]
        lines.append([f"`{row['call']}`", str(int(row["value"])), *times])
    return markdown(header, lines)


TABLES: dict[str, Callable[[list[Row]], str]] = {
    "cold": cold,
    "pairs": pairs,
    "warm": warm,
    "drift": drift,
    "http": http,
    "rates": rates,
    "limits": limits,
    "memory": memory,
    "closures": closures,
    "many-pairs": many_pairs,
    "richer": richer,
    "adapters": adapters,
}
BRIEF = {"warm": warm_brief}
