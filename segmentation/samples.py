"""Training and validation tiles from labelled ground."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from common.errors import InputError
from segmentation.classes import NODATA
from segmentation.inputs import Inputs, Statistics, stack
from segmentation.scene import Image, Scene
from segmentation.tiles import Box, TilePlan, pad_to_tile

HELD = 1 << 27  # values of a strip that are held in memory (512 MB); a larger strip is read window by window


class Batch(NamedTuple):
    """Tiles with labels ``[B, H, W]``: positions in the list of classes, 255 where unlabelled."""

    inputs: Inputs
    labels: Tensor


@dataclass(frozen=True)
class Ground:
    """A strip of a labelled scene.

    Attributes:
        scene: The open scene.
        box: The strip.
        labels: Its labels ``[height, width]``, 255 where unlabelled.
        held: Its images, where they are small enough to be kept.
    """

    scene: Scene
    box: Box
    labels: NDArray[np.uint8]
    held: dict[str, Image] | None

    def images(self, box: Box) -> dict[str, Image]:
        """The images of a window of the strip, in pixels of the scene."""
        if self.held is None:
            return self.scene.read(box)
        rows, columns = self._local(box).slices
        return {name: Image(i.values[:, rows, columns], i.available[rows, columns]) for name, i in self.held.items()}

    def labels_in(self, box: Box) -> NDArray[np.uint8]:
        """The labels of a window of the strip, in pixels of the scene."""
        return self.labels[self._local(box).slices]

    def _local(self, box: Box) -> Box:
        return Box(box.row - self.box.row, box.column - self.box.column, box.height, box.width)


def load_ground(scene: Scene, box: Box, labels: NDArray[np.uint8], bands: int) -> Ground:
    """Bind a strip to its labels, and hold its images where they are small enough."""
    small = box.height * box.width * bands <= HELD
    return Ground(scene, box, labels, scene.read(box) if small else None)


class TileSampler:
    """Batches of random tiles, without end; which tiles a batch has follows from its number.

    A tile is drawn around a labelled pixel of a class drawn by ``pixels ** (1 - balance)``, so that neither sparse
    labels nor rare classes are missed, and is turned and mirrored at random, exactly.

    Args:
        grounds: Where to draw from.
        tile: Side of a tile; where a strip is smaller, it is filled up by reflection.
        batch_size: Tiles a batch.
        statistics: To normalise with.
        balance: 0 draws classes as frequent as they are, 1 all alike.
        seed: Seed of the draws.

    Raises:
        InputError: If nothing is labelled.
    """

    def __init__(
        self,
        grounds: Sequence[Ground],
        *,
        tile: int,
        batch_size: int,
        statistics: Mapping[str, Statistics],
        balance: float,
        seed: int,
    ) -> None:
        self._grounds, self._tile, self._batch_size = grounds, tile, batch_size
        self._statistics, self._seed = statistics, seed
        places = np.concatenate(
            [np.argwhere(ground.labels != NODATA).astype(np.int32) for ground in grounds]
        )  # [N, 2], row and column in the strip
        owners = np.repeat(np.arange(len(grounds)), [(ground.labels != NODATA).sum() for ground in grounds])
        if not len(places):
            raise InputError("no pixel of the training ground is labelled", remedy="check the labels, or the split")
        labels = np.concatenate([ground.labels[ground.labels != NODATA] for ground in grounds])
        self._by_class = [(owners[labels == each], places[labels == each]) for each in np.unique(labels)]
        shares = np.array([len(owner) for owner, _ in self._by_class], dtype=np.float64) ** (1 - balance)
        self._shares = shares / shares.sum()

    def batches(self, start: int) -> Iterator[Batch]:
        """Batches from the one of this number on."""
        for number in itertools.count(start):
            draw = np.random.default_rng((self._seed, number))
            yield _batch([self._tile_at_random(draw) for _ in range(self._batch_size)], self._statistics)

    def _tile_at_random(self, draw: np.random.Generator) -> tuple[dict[str, Image], NDArray[np.uint8]]:
        owners, places = self._by_class[draw.choice(len(self._by_class), p=self._shares)]
        chosen = draw.integers(len(places))
        ground, place = self._grounds[owners[chosen]], places[chosen]
        size = [min(self._tile, side) for side in ground.labels.shape]
        start = [
            int(np.clip(at - draw.integers(length), 0, side - length))
            for at, length, side in zip(place, size, ground.labels.shape, strict=True)
        ]
        box = Box(ground.box.row + start[0], ground.box.column + start[1], *size)
        turns, mirrored = int(draw.integers(4)), bool(draw.integers(2))
        images, labels = padded(ground, box, self._tile)
        turned = {
            name: Image(_turn(image.values, turns, mirrored), _turn(image.available, turns, mirrored))
            for name, image in images.items()
        }
        return turned, _turn(labels, turns, mirrored)


class TileGrid:
    """Batches of the tiles that cover some strips without overlap, for validation.

    Args:
        grounds: The strips.
        tile: Side of a tile.
        batch_size: Tiles a batch.
        statistics: To normalise with.

    Raises:
        InputError: If nothing is labelled.
    """

    def __init__(
        self, grounds: Sequence[Ground], *, tile: int, batch_size: int, statistics: Mapping[str, Statistics]
    ) -> None:
        self._places = [
            (ground, box)
            for ground in grounds
            for box in TilePlan(ground.box, tile, 0).boxes()
            if (ground.labels_in(box) != NODATA).any()
        ]
        self._tile, self._batch_size, self._statistics = tile, batch_size, statistics
        if not self._places:
            raise InputError("no pixel of the validation ground is labelled", remedy="check the labels, or the split")

    def __iter__(self) -> Iterator[Batch]:
        for first in range(0, len(self._places), self._batch_size):
            places = self._places[first : first + self._batch_size]
            yield _batch([padded(ground, box, self._tile) for ground, box in places], self._statistics)


def padded(ground: Ground, box: Box, tile: int) -> tuple[dict[str, Image], NDArray[np.uint8]]:
    """Images and labels of a window, filled up to a tile by reflection; filled-up labels do not count."""
    images = {name: pad_image(image, tile) for name, image in ground.images(box).items()}
    labels = np.full((tile, tile), NODATA, dtype=np.uint8)
    labels[: box.height, : box.width] = ground.labels_in(box)
    return images, labels


def pad_image(image: Image, tile: int) -> Image:
    """Fill an image up to a tile by reflection."""
    return Image(pad_to_tile(image.values, tile), pad_to_tile(image.available, tile))


def class_weights(grounds: Sequence[Ground], classes: int, balance: float) -> NDArray[np.float32]:
    """Weights ``frequency ** -balance`` of the classes, with mean one over the labelled pixels; 0 if never seen."""
    counts = sum(
        np.bincount(ground.labels[ground.labels != NODATA], minlength=classes).astype(np.float64) for ground in grounds
    )
    weights = np.zeros(classes)
    seen = np.asarray(counts) > 0
    weights[seen] = np.asarray(counts)[seen] ** -balance
    return (weights * np.sum(counts) / np.sum(weights * counts)).astype(np.float32)


def _batch(tiles: Sequence[tuple[dict[str, Image], NDArray[np.uint8]]], statistics: Mapping[str, Statistics]) -> Batch:
    labels = torch.from_numpy(np.stack([labels for _, labels in tiles]))
    return Batch(stack([images for images, _ in tiles], statistics), labels)


def _turn(values: NDArray, turns: int, mirrored: bool) -> NDArray:
    """Mirror, then turn by quarter turns, in the last two axes."""
    return np.rot90(values[..., ::-1] if mirrored else values, turns, axes=(-2, -1))
