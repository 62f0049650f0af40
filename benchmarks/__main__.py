"""The command line: measure into a JSON file, or print one as tables."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path

from benchmarks import cold, http, instances, memory, pairs, warm
from benchmarks.batches import Change, Drawn
from benchmarks.instances import Instance
from benchmarks.peers import installed
from benchmarks.results import Results, Row, read
from benchmarks.serve import service
from benchmarks.tables import render
from gpu_engine.networks.edgelist import EdgeList

KINDS = ("cold", "pairs", "warm", "drift", "memory", "http")


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0 if every answer was right."""
    options = parser().parse_args(arguments)
    if options.command == "table":
        beside = [row for path in options.beside for row in read(path)["rows"]]
        print("\n\n".join(render(read(path), options.brief, beside) for path in options.files))
        return 0
    for kind in KINDS if options.command == "all" else [options.command]:
        results = Results(kind, settings(options), options.out if options.command != "all" else None)
        print(f"{kind}: results go to {results.path}", file=sys.stderr)
        cold.warm_up()
        for rows in RUNNERS[kind](options):
            results.extend(rows)
        print(render(results.document, brief=True), end="\n\n")
    return 0


def parser() -> argparse.ArgumentParser:
    """The options; a real network is looked for in --real, HEADRACE_BENCH_REAL and examples/."""
    top = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    for kind in (*KINDS, "all"):
        command = commands.add_parser(kind)
        command.add_argument("--size", choices=list(instances.SIZES), default="small")
        command.add_argument("--only", type=names, default=[], help="instance names, separated by commas")
        command.add_argument("--real", type=Path, help="directory with the real networks (npz)")
        command.add_argument("--out", type=Path, help="the JSON file; benchmarks/results/KIND-SIZE.json if absent")
        command.add_argument(
            "--engines", type=names, default=["cpu"], help="ours: cpu, cuda, auto; pairs, warm: the first"
        )
        command.add_argument("--no-peers", action="store_true", help="cold, pairs: ours only")
        command.add_argument("--drawn", type=names, default=list(Drawn), help="warm: where edges come from")
        command.add_argument("--changes", type=names, default=list(Change), help="warm: what happens to them")
        command.add_argument("--repeats", type=int, default=5, help="cold, pairs: runs of each solver, the best counts")
        command.add_argument(
            "--limit-s", type=float, default=20.0, help="cold, pairs: no further run after these seconds"
        )
        command.add_argument("--batches", type=int, default=20, help="warm: batches in each cell")
        command.add_argument("--requests", type=int, default=200, help="http: requests of each kind")
        command.add_argument("--url", help="http: a service that runs already, else one is started")
    table = commands.add_parser("table")
    table.add_argument("--brief", action="store_true", help="warm: one line for the three kinds of change")
    table.add_argument("--beside", type=Path, nargs="*", default=[], help="cold: files with figures of others")
    table.add_argument("files", type=Path, nargs="+")
    return top


def names(text: str) -> list[str]:
    """``a,b`` as a list."""
    return [name for name in text.split(",") if name]


def settings(options: argparse.Namespace) -> Row:
    """The options that a figure depends on."""
    return {
        key: getattr(options, key) for key in ("size", "only", "engines", "repeats", "limit_s", "batches", "requests")
    }


def loaded(options: argparse.Namespace, default: Iterable[str]) -> Iterator[tuple[Instance, EdgeList]]:
    """The instances asked for, each with its network; an absent file is a line on stderr."""
    for instance in instances.choose(options.size, options.only or list(default)):
        edges = instance.load(instances.real_directory(options.real))
        if edges is None:
            print(f"  {instance.name}: skipped, no {instance.file}", file=sys.stderr)
        else:
            print(f"  {instance.name}", file=sys.stderr, flush=True)
            yield instance, edges


def run_cold(options: argparse.Namespace) -> Iterator[list[Row]]:
    effort = cold.Effort(options.repeats, options.limit_s)
    peers = {} if options.no_peers else installed()
    for instance, edges in loaded(options, []):
        yield cold.measure(instance, edges, options.engines, peers, effort)


def run_pairs(options: argparse.Namespace) -> Iterator[list[Row]]:
    effort = cold.Effort(options.repeats, options.limit_s)
    peers = {} if options.no_peers else installed()
    for instance, edges in loaded(options, [real.name for real in instances.REAL]):
        yield pairs.measure(instance, edges, options.engines[0], peers, effort)


def run_warm(options: argparse.Namespace) -> Iterator[list[Row]]:
    for instance, edges in loaded(options, instances.WARM):
        for row in warm.measure(instance, edges, warm_plan(options)):
            yield [row]


def run_drift(options: argparse.Namespace) -> Iterator[list[Row]]:
    for instance, edges in loaded(options, instances.DRIFT):
        yield [warm.measure_drift(instance, edges, warm_plan(options))]


def warm_plan(options: argparse.Namespace) -> warm.Plan:
    drawn = tuple(Drawn(name) for name in options.drawn)
    changes = tuple(Change(name) for name in options.changes)
    return warm.Plan(batches=options.batches, engine=options.engines[0], drawn=drawn, changes=changes)


def run_memory(options: argparse.Namespace) -> Iterator[list[Row]]:
    for instance in instances.choose(options.size, options.only):
        yield memory.measure(instance, instances.real_directory(options.real))


def run_http(options: argparse.Namespace) -> Iterator[list[Row]]:
    """One network: the first that is there of those asked for, by default Heidelberg or else Andorra."""
    instance, edges = next(loaded(options, ("osm-heidelberg", "osm-andorra", "road")))
    with nullcontext(options.url) if options.url else service() as url:
        yield http.measure(instance, edges, url, http.Load(requests=options.requests))


RUNNERS = {
    "cold": run_cold,
    "pairs": run_pairs,
    "warm": run_warm,
    "drift": run_drift,
    "memory": run_memory,
    "http": run_http,
}

if __name__ == "__main__":
    raise SystemExit(main())
