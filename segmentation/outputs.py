"""Class maps, probabilities and confidence as GeoTIFFs on the grid of a scene."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from rasterio.windows import Window

from common.files import atomic_path
from segmentation.classes import NODATA, TAG, LandClass
from segmentation.inference import Rows
from segmentation.scene import Grid

BLOCK = 256  # side of the blocks inside a file


class MapWriter:
    """Writes completed rows to the outputs that were asked for; made by :func:`map_writer`."""

    def __init__(self, classes: Any, probabilities: Any, confidence: Any, codes: np.ndarray) -> None:
        self._classes, self._probabilities, self._confidence = classes, probabilities, confidence
        self._codes = codes

    def write(self, rows: Rows) -> None:
        """Write the next rows."""
        height, width = rows.available.shape
        window = Window(0, rows.row, width, height)  # pyright: ignore[reportCallIssue]
        self._classes.write(self._codes[rows.classes], 1, window=window)
        if self._probabilities is not None:
            values = np.where(rows.available, rows.probabilities, np.float32(np.nan))
            self._probabilities.write(values, window=window)
        if self._confidence is not None:
            values = np.where(rows.available, rows.probabilities.max(axis=0), np.float32(np.nan))
            self._confidence.write(values, 1, window=window)


@contextmanager
def map_writer(
    grid: Grid,
    classes: tuple[LandClass, ...],
    *,
    class_map: Path,
    probabilities: Path | None = None,
    confidence: Path | None = None,
) -> Iterator[MapWriter]:
    """Open the outputs; they appear under their names when the block succeeds, and not otherwise.

    Args:
        grid: Grid of the outputs.
        classes: The classes.
        class_map: Uint8, the code of the class, 255 where there is no data, with colour table and names.
        probabilities: Float32, one band a class, NaN where there is no data.
        confidence: Float32, the largest probability, NaN where there is no data.
    """
    codes = np.full(256, NODATA, dtype=np.uint8)  # by position; 255 stays 255
    codes[: len(classes)] = [each.code for each in classes]
    with ExitStack() as stack:

        def opened(path: Path | None, **profile: Any) -> Any:
            if path is None:
                return None
            return stack.enter_context(_new_raster(stack.enter_context(atomic_path(path)), grid, **profile))

        first = opened(class_map, count=1, dtype="uint8", nodata=NODATA)
        first.set_band_description(1, "class")
        first.write_colormap(1, {each.code: each.rgba for each in classes})
        first.update_tags(1, **{f"{TAG}{each.code}": each.name for each in classes})
        floats = {"dtype": "float32", "nodata": np.nan, "predictor": 3}
        second = opened(probabilities, count=len(classes), **floats)
        if second is not None:
            second.descriptions = [each.name for each in classes]
        third = opened(confidence, count=1, **floats)
        if third is not None:
            third.set_band_description(1, "confidence")
        yield MapWriter(first, second, third, codes)


def _new_raster(path: Path, grid: Grid, **profile: Any) -> Any:
    return rasterio.open(
        path,
        "w",
        driver="GTiff",
        crs=grid.crs,
        transform=grid.transform,
        height=grid.height,
        width=grid.width,
        tiled=True,
        blockxsize=BLOCK,
        blockysize=BLOCK,
        interleave="band",
        compress="deflate",
        bigtiff="IF_SAFER",
        **profile,
    )
