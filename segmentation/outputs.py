"""Class maps, probabilities and confidence as GeoTIFFs on the grid of a scene."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.files import atomic_path
from common.geotiff import GeoTiff, new_geotiff
from segmentation.classes import NODATA, TAG, LandClass
from segmentation.inference import Rows
from segmentation.scene import Grid


class MapWriter:
    """Writes completed rows to the outputs that were asked for; made by :func:`map_writer`."""

    def __init__(
        self, classes: GeoTiff, probabilities: GeoTiff | None, confidence: GeoTiff | None, codes: NDArray[np.uint8]
    ) -> None:
        self._classes, self._probabilities, self._confidence = classes, probabilities, confidence
        self._codes = codes

    def write(self, rows: Rows) -> None:
        """Write the next rows."""
        self._classes.write(self._codes[rows.classes][None], rows.row)
        nothing = np.float32(np.nan)
        if self._probabilities is not None:
            self._probabilities.write(np.where(rows.available, rows.probabilities, nothing), rows.row)
        if self._confidence is not None:
            best = rows.probabilities.max(axis=0, keepdims=True)
            self._confidence.write(np.where(rows.available, best, nothing), rows.row)


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
    grid_of_map = {"crs": grid.crs, "transform": grid.transform, "height": grid.height, "width": grid.width}
    # All files are closed and checked before the first gets its name.
    with ExitStack() as names, ExitStack() as files:

        def opened(path: Path, **profile: Any) -> GeoTiff:
            return files.enter_context(new_geotiff(names.enter_context(atomic_path(path)), **grid_of_map, **profile))

        floats = {"dtype": "float32", "nodata": np.nan, "predictor": 3}
        first = opened(class_map, count=1, dtype="uint8", nodata=NODATA)
        first.dataset.set_band_description(1, "class")
        first.dataset.write_colormap(1, {each.code: each.rgba for each in classes})
        first.dataset.update_tags(1, **{f"{TAG}{each.code}": each.name for each in classes})
        second = opened(probabilities, count=len(classes), **floats) if probabilities else None
        if second is not None:
            second.dataset.descriptions = [each.name for each in classes]
        third = opened(confidence, count=1, **floats) if confidence else None
        if third is not None:
            third.dataset.set_band_description(1, "confidence")
        yield MapWriter(first, second, third, codes)
