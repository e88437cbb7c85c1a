"""How a raster is cut into overlapping tiles, and how their predictions are blended into rows.

The plan is a product of tile rows and tile columns, and so are the blending weights. That is why they can be
normalised beforehand, one axis at a time, and why a buffer as high as one tile is all the memory blending needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from common.errors import UsageError


class Box(NamedTuple):
    """A rectangle of pixels: first row and column, and its size."""

    row: int
    column: int
    height: int
    width: int

    @property
    def slices(self) -> tuple[slice, slice]:
        """Row and column slices that cut this box out of an array of the whole raster."""
        return slice(self.row, self.row + self.height), slice(self.column, self.column + self.width)


@dataclass(frozen=True)
class TilePlan:
    """Tiles that cover every pixel of an area.

    Tiles stand ``tile - overlap`` apart; the last of each axis is shifted inward so that none leaves the area. Where
    the area is smaller than a tile, the tile is as small as the area (pad it to :attr:`side` with :func:`pad_to_tile`).

    Attributes:
        area: The pixels to be covered.
        tile: Side of a tile in pixels.
        overlap: Pixels shared by neighbouring tiles.

    Raises:
        UsageError: If the sizes cannot make a plan.
    """

    area: Box
    tile: int
    overlap: int

    def __post_init__(self) -> None:
        if self.tile < 1 or not 0 <= self.overlap < self.tile:
            raise UsageError(
                f"tile {self.tile} with overlap {self.overlap} cannot cover a raster",
                remedy="choose an overlap of at least 0 and smaller than the tile",
            )

    @cached_property
    def rows(self) -> list[int]:
        """First row of each tile row, counted from the top of the area."""
        return _starts(self.area.height, self.tile, self.overlap)

    @cached_property
    def columns(self) -> list[int]:
        """First column of each tile column, counted from the left of the area."""
        return _starts(self.area.width, self.tile, self.overlap)

    @cached_property
    def row_weights(self) -> NDArray[np.float32]:
        """Blending weights ``[tile rows, tile height]``; those of all tiles on one pixel row sum to one."""
        return _weights(self.rows, self.area.height, self.tile, self.overlap)

    @cached_property
    def column_weights(self) -> NDArray[np.float32]:
        """Blending weights ``[tile columns, tile width]``; those of all tiles on one pixel column sum to one."""
        return _weights(self.columns, self.area.width, self.tile, self.overlap)

    @property
    def side(self) -> int:
        """Side of the square that a tile is filled up to; no larger than the area is in either direction."""
        return min(self.tile, max(self.area.height, self.area.width))

    def box(self, i: int, j: int) -> Box:
        """The tile in tile row ``i`` and tile column ``j``, in pixels of the raster."""
        height, width = min(self.tile, self.area.height), min(self.tile, self.area.width)
        return Box(self.area.row + self.rows[i], self.area.column + self.columns[j], height, width)

    def boxes(self) -> Iterator[Box]:
        """All tiles, row by row."""
        for i in range(len(self.rows)):
            for j in range(len(self.columns)):
                yield self.box(i, j)


class RowBand:
    """Accumulates weighted tiles of one tile row and gives up pixel rows as soon as they are complete.

    Args:
        plan: The tile plan; tile rows must be finished in its order.
        channels: Number of values a pixel.
    """

    def __init__(self, plan: TilePlan, channels: int) -> None:
        self._plan = plan
        self._values = np.zeros((channels, min(plan.tile, plan.area.height), plan.area.width), dtype=np.float32)

    def add(self, i: int, j: int, values: NDArray[np.float32]) -> None:
        """Add the prediction ``[channels, height, width]`` of tile ``(i, j)`` under its blending weights."""
        weights = np.outer(self._plan.row_weights[i], self._plan.column_weights[j])
        start = self._plan.columns[j]
        self._values[:, :, start : start + values.shape[2]] += weights * values

    def finish(self, i: int) -> tuple[int, NDArray[np.float32]]:
        """Close tile row ``i``.

        Returns:
            The first completed pixel row, counted from the top of the area, and the completed rows
            ``[channels, rows, width]``. They may be changed by the caller.
        """
        rows = self._plan.rows
        is_last = i + 1 == len(rows)
        done = self._plan.area.height - rows[i] if is_last else rows[i + 1] - rows[i]
        complete = self._values[:, :done].copy()
        self._values[:, : self._values.shape[1] - done] = self._values[:, done:].copy()
        self._values[:, self._values.shape[1] - done :] = 0
        return rows[i], complete


def pad_to_tile(values: NDArray[Any], tile: int) -> NDArray[Any]:
    """Fill ``[..., height, width]`` up to a tile by reflection, below and to the right."""
    missing = [max(0, tile - size) for size in values.shape[-2:]]
    if not any(missing):
        return values
    still = [(0, 0)] * (values.ndim - 2)
    return np.pad(values, [*still, (0, missing[0]), (0, missing[1])], mode="reflect")


def _starts(size: int, tile: int, overlap: int) -> list[int]:
    if size <= tile:
        return [0]
    return [*range(0, size - tile, tile - overlap), size - tile]


def _weights(starts: list[int], size: int, tile: int, overlap: int) -> NDArray[np.float32]:
    """Raised-cosine ramps over the overlap, divided by their sum over all tiles of the axis.

    The ramp is sampled at pixel centres, so it is positive at the very border and needs no floor.
    """
    length = min(tile, size)
    window = np.ones(length)
    ramp = min(overlap, length)
    if ramp:
        rise = np.sin(0.5 * np.pi * (np.arange(ramp) + 0.5) / ramp) ** 2
        window[:ramp] *= rise
        window[length - ramp :] *= rise[::-1]
    total = np.zeros(size)
    for start in starts:
        total[start : start + length] += window
    return np.stack([window / total[start : start + length] for start in starts]).astype(np.float32)
