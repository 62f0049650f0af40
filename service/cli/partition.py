"""`headrace partition`: a graph in parts of about equal weight, with little between them."""

from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.connection import DEFAULT_URL, Json, Key, Name, Url, connected
from service.cli.show import say_facts, say_json, say_table

if TYPE_CHECKING:
    from headrace import PartitionOptions

app = typer.Typer()


@app.command()
def partition(
    name: Name,
    k: Annotated[int, typer.Argument(help="How many parts.")],
    epsilon: Annotated[float, typer.Option(help="By how much a part may be heavier than the k-th part of all.")] = 0.03,
    ones: Annotated[bool, typer.Option("--ones", help="Each edge weighs 1, not its capacity.")] = False,
    seed: Annotated[int, typer.Option(help="Another seed gives another partition, where one is made anew.")] = 0,
    vertices: Annotated[bool, typer.Option("--vertices", help="List the part of each vertex.")] = False,
    json: Json = False,
    key: Key = None,
    url: Url = DEFAULT_URL,
) -> None:
    """The vertices in k parts of about equal weight, with little between them."""
    options: PartitionOptions = {"epsilon": epsilon, "seed": seed, "weights": "one" if ones else "capacity"}
    options["fields"] = ["parts"] if vertices or json else []
    with connected(url, key) as client:
        found = client.graph(name).partition(k, **options)
    if json:
        say_json(found)
        return
    facts: dict[str, object] = {"between parts": found.value, "edges": found.cut_edges, "limit of a part": found.limit}
    facts |= {"balanced": "yes" if found.balanced else f"NO: {found.reason}", "mode": found.mode}
    say_facts(facts | {"proven": "yes" if found.valid else "NO"})
    typer.echo()
    say_table({"part": list(range(k)), "weight": found.part_weight, "vertices": found.n_vertices})
    if vertices:
        typer.echo()
        say_table({"vertex": found.vertices or (), "part": found.part or ()})
