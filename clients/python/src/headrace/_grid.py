"""Images as graphs: each pixel is joined to its neighbours, to a source and to a sink (Boykov and Jolly, ICCV 2001)."""

from collections.abc import Iterator
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headrace._calls import Update
from headrace._columns import GraphColumns
from headrace._errors import InvalidInput
from headrace._flows import Cut, MaxFlowResult
from headrace._options import suggesting

Weights: TypeAlias = float | NDArray[Any]
Shape: TypeAlias = tuple[int, ...]

FACES: Final = {2: 4, 3: 6}
"""Neighbours of a pixel, and of a voxel, along the axes: the default."""
ALL: Final = {2: 8, 3: 26}

EXACT_FLOAT: Final = 2**53


@suggesting
class Grid:
    """A graph for `put_graph`: a vertex for each pixel, in the order of ``numpy.ravel``, then source and sink.

    Args:
        source: capacity of the edge from the source to each pixel, which is what it costs to have that pixel on the
            sink's side: an array of the image's shape, in two or three dimensions.
        sink: capacity of the edge from each pixel to the sink, which is what it costs to have it on the source's side.
        links: capacity of the undirected edges between neighbours: a number for all; an array of the image's shape,
            whose value at a pixel is that of its links to later pixels; or an array of shape ``(k, *shape)``, one for
            each of the `directions`. What would lead out of the image is not looked at.
        neighbourhood: 4 or 8 in two dimensions, 6 or 26 in three; by default along the axes alone.

    Raises `InvalidInput` for arrays of other shapes, or with masked values. Takes 13 bytes and the capacity for each
    edge.
    """

    def __init__(
        self, source: NDArray[Any], sink: NDArray[Any], links: Weights, *, neighbourhood: int | None = None
    ) -> None:
        source = _whole(source, "source")
        self.shape: Shape = source.shape
        if source.ndim not in FACES or not source.size:
            raise InvalidInput(f"an image has two or three dimensions and some pixels, not the shape {source.shape}")
        known = (FACES[source.ndim], ALL[source.ndim])
        neighbourhood = known[0] if neighbourhood is None else neighbourhood
        if neighbourhood not in known:
            raise InvalidInput(f"in {source.ndim} dimensions neighbourhood= is {known[0]} or {known[1]}")
        self.directions = _directions(source.ndim, all_of_them=neighbourhood == known[1])
        """Steps from a pixel to its later neighbours, -1, 0 or 1 by axis; its earlier ones are the other way."""
        index = np.int32 if source.size < 2**31 - 2 else np.int64
        self._pixels: NDArray[Any] = np.arange(source.size, dtype=index).reshape(self.shape)
        terms = [self._of_pixels(source, "source"), self._of_pixels(sink, "sink")]
        self._capacity = _joined([*terms, *self._of_links(links)])

    @property
    def columns(self) -> GraphColumns:
        """What `put_graph` takes: edges from the source, edges to the sink, then the links by direction."""
        pixels, n_vertices = self._pixels.ravel(), self._pixels.size + 2
        ends = [_pair(self._pixels, step) for step in self.directions]
        source, sink = (np.full_like(pixels, terminal) for terminal in (n_vertices - 2, n_vertices - 1))
        return {
            "tail": np.concatenate([source, pixels, *(first for first, _ in ends)]),
            "head": np.concatenate([pixels, sink, *(second for _, second in ends)]),
            "capacity": self._capacity,
            "undirected": np.arange(len(self._capacity)) >= 2 * self._pixels.size,
            "n_vertices": n_vertices,
            "source": n_vertices - 2,
            "sink": n_vertices - 1,
        }

    def mask(self, answer: MaxFlowResult | Cut) -> NDArray[np.bool_]:
        """bool, of the image's shape: which pixels the minimum cut leaves on the source's side.

        Raises `InvalidInput` for an answer without a cut, or about another graph.
        """
        cut = answer if isinstance(answer, Cut) else getattr(answer, "cut", None)
        if cut is None:
            raise InvalidInput("the answer has no cut: ask with min_cut(), or max_flow(fields=['cut'])")
        side: NDArray[np.bool_] = cut.mask
        if len(side) != self._pixels.size + 2:
            raise InvalidInput(f"the answer is about {len(side)} vertices, this image has {self._pixels.size} pixels")
        return side[: self._pixels.size].reshape(self.shape)

    def update(
        self,
        *,
        source: NDArray[Any] | None = None,
        sink: NDArray[Any] | None = None,
        links: Weights | None = None,
        where: NDArray[np.bool_] | None = None,
    ) -> Update:
        """An operation for `apply` that sets these weights, each as when the graph was made, and leaves all others.

        `where`, bool of the image's shape: of these pixels alone, and of their links to later pixels.
        """
        every = self._pixels.size
        parts: list[tuple[NDArray[np.int64], NDArray[Any]]] = []
        chosen = np.flatnonzero(self._of_pixels(np.ones(self.shape, bool) if where is None else where, "where"))
        for at, given, name in ((0, source, "source"), (every, sink, "sink")):
            if given is not None:
                parts.append((at + chosen, self._of_pixels(given, name)[chosen]))
        if links is not None:
            at = 2 * every
            for step, weights in zip(self.directions, self._of_links(links), strict=True):
                first, _ = _pair(self._pixels, step)
                rows = np.arange(len(first)) if where is None else np.flatnonzero(np.isin(first, chosen))
                parts.append((at + rows, weights[rows]))
                at += len(first)
        if not parts:
            raise InvalidInput("an update of an image sets source=, sink= or links=")
        return Update(edges=np.concatenate([rows for rows, _ in parts]), set=_joined([values for _, values in parts]))

    def _of_pixels(self, given: NDArray[Any], name: str) -> NDArray[Any]:
        array = _whole(given, name)
        if array.shape != self.shape:
            raise InvalidInput(f"{name} has the shape {array.shape}, the image {self.shape}")
        return array.ravel()

    def _of_links(self, given: Weights) -> Iterator[NDArray[Any]]:
        """The weights of the links, direction by direction."""
        weights, k = _whole(given, "links"), len(self.directions)
        if weights.shape not in ((), self.shape, (k, *self.shape)):
            shapes = f"a number, or an array of the shape {self.shape} or {(k, *self.shape)}"
            raise InvalidInput(f"links is {shapes}, not {weights.shape}")
        each = np.broadcast_to(weights, (k, *self.shape))
        return (each[i][_window(self.shape, step)].ravel() for i, step in enumerate(self.directions))


def _whole(given: Any, name: str) -> NDArray[Any]:
    """As an array. Raises `InvalidInput` for one of which something is masked: what lies below a mask is no value."""
    masked = np.count_nonzero(np.ma.getmaskarray(given)) if isinstance(given, np.ma.MaskedArray) else 0
    if masked:
        raise InvalidInput(f"{name} is a masked array, of which {masked} of {given.size} have no value")
    return np.asarray(given)


def _directions(n_axes: int, *, all_of_them: bool) -> tuple[Shape, ...]:
    steps = product((0, 1, -1), repeat=n_axes)
    later = [step for step in steps if next((s for s in step if s), 0) > 0]
    return tuple(step for step in later if all_of_them or sum(map(abs, step)) == 1)


def _window(shape: Shape, step: Shape) -> tuple[slice, ...]:
    """The pixels from which the step does not lead out of the image."""
    return tuple(slice(max(0, -s), n - max(0, s)) for n, s in zip(shape, step, strict=True))


def _pair(pixels: NDArray[Any], step: Shape) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both ends of all links in one direction."""
    back = tuple(-s for s in step)
    return pixels[_window(pixels.shape, step)].ravel(), pixels[_window(pixels.shape, back)].ravel()


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """One column of amounts: int64 if all are whole, else float64 where that loses nothing."""
    wrong = next((part for part in parts if part.dtype.kind not in "biuf"), None)
    if wrong is not None:
        raise InvalidInput(f"weights are numbers, not {wrong.dtype}")
    large = any(part.size and part.dtype.kind in "iu" and int(part.max()) >= EXACT_FLOAT for part in parts)
    if all(part.dtype.kind != "f" for part in parts):
        if large and any(part.size and int(part.max()) >= 2**63 for part in parts):
            raise InvalidInput("weights are below 2**63")
        return np.concatenate([part.astype(np.int64) for part in parts])
    if large:
        raise InvalidInput("weights of 2**53 or more beside fractions would be rounded: scale them all to integers")
    return np.concatenate([_widened(part) for part in parts])


def _widened(part: NDArray[Any]) -> NDArray[np.float64]:
    """A narrow float is meant as its own shortest decimal: 0.1, not 0.10000000149011612."""
    narrow = part.dtype.kind == "f" and part.dtype.itemsize < 8
    return part.astype(str).astype(np.float64) if narrow else part.astype(np.float64)
