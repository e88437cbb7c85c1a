"""Tiled inference: any area of a scene, in memory that does not grow with its height."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segmentation.classes import NODATA
from segmentation.predictor import Predictor
from segmentation.samples import pad_image
from segmentation.scene import Scene
from segmentation.tiles import Box, RowBand, TilePlan

TILE, OVERLAP, BATCH_SIZE = 256, 32, 4


class Rows(NamedTuple):
    """Completed rows of a prediction.

    Attributes:
        row: The first of them, in pixels of the scene.
        probabilities: ``[classes, rows, width]``; zero where there is no data.
        available: ``[rows, width]``: the primary modality has data there.
    """

    row: int
    probabilities: NDArray[np.float32]
    available: NDArray[np.bool_]

    @property
    def classes(self) -> NDArray[np.uint8]:
        """Position of the most probable class, 255 where there is no data, ``[rows, width]``."""
        best = self.probabilities.argmax(axis=0).astype(np.uint8)
        return np.where(self.available, best, np.uint8(NODATA))


def predict_rows(predictor: Predictor, scene: Scene, plan: TilePlan, *, batch_size: int) -> Iterator[Rows]:
    """Predict the area of a plan, from top to bottom.

    Args:
        predictor: The model.
        scene: An open scene with its modalities.
        plan: The tile plan.
        batch_size: Tiles a forward pass; it changes the speed, not the result.

    Yields:
        Rows as soon as no further tile reaches them.
    """
    # Availability is blended as one more channel: its weights sum to one, so it comes out as 0 or 1.
    band = RowBand(plan, len(predictor.classes) + 1)
    for i in range(len(plan.rows)):
        for first in range(0, len(plan.columns), batch_size):
            columns = range(first, min(first + batch_size, len(plan.columns)))
            _predict_tiles(predictor, scene, plan, i, columns, band)
        row, values = band.finish(i)
        available = values[-1] > 0.5
        yield Rows(plan.area.row + row, values[:-1] * available, available)


def predict_area(predictor: Predictor, scene: Scene, area: Box, *, tile: int = TILE) -> NDArray[np.uint8]:
    """Positions of the classes in an area that fits into memory, ``[height, width]``; 255 where there is no data."""
    plan = TilePlan(area, tile, OVERLAP)
    return np.concatenate([rows.classes for rows in predict_rows(predictor, scene, plan, batch_size=BATCH_SIZE)])


def _predict_tiles(predictor: Predictor, scene: Scene, plan: TilePlan, i: int, columns: range, band: RowBand) -> None:
    places, tiles = [], []
    for j in columns:
        images = scene.read(plan.box(i, j))
        if images[predictor.reference].available.any():  # an empty tile adds nothing
            places.append(j)
            tiles.append(images)
    if not tiles:
        return
    padded = [{name: pad_image(image, plan.side) for name, image in tile.items()} for tile in tiles]
    height, width = tiles[0][predictor.reference].available.shape
    probabilities = predictor.probabilities(padded)[:, :, :height, :width]
    for j, tile, values in zip(places, tiles, probabilities, strict=True):
        available = tile[predictor.reference].available[None].astype(np.float32)
        band.add(i, j, np.concatenate([values, available]))
